package sandbox

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// reportSize is how much a report file holds, in bytes.
const reportSize = 4 << 20

// reportFile is a file in memory that a process writes its report on. Nobody wakes up for each line,
// as the reader of a pipe does.
type reportFile struct {
	file *os.File
	to   io.Writer
}

// newReportFile makes one that can't grow, however much a process writes.
func newReportFile(to io.Writer) (*reportFile, error) {
	fd, err := unix.MemfdCreate("report", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, err
	}
	s := &reportFile{file: os.NewFile(uintptr(fd), "report"), to: to}
	if err = unix.Ftruncate(fd, reportSize); err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_GROW|unix.F_SEAL_SHRINK|unix.F_SEAL_SEAL)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// duplicate is the descriptor of the process, which has its place in the file in common with ours.
func (s *reportFile) duplicate() (*os.File, error) {
	fd, err := unix.FcntlInt(s.file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("dup", err)
	}
	return os.NewFile(uintptr(fd), "report"), nil
}

// finish hands on what the process has written, now that it has ended.
func (s *reportFile) finish() {
	defer s.close()
	n, err := s.file.Seek(0, io.SeekCurrent)
	if err == nil {
		_, _ = io.Copy(s.to, io.NewSectionReader(s.file, 0, min(n, reportSize)))
	}
}

func (s *reportFile) close() { _ = s.file.Close() }

package sandbox

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// reportSize bounds a report file, in bytes.
const reportSize = 4 << 20

// reportFile is a file in memory that a process writes its report to. Unlike with a pipe, no reader wakes up
// for each line.
type reportFile struct {
	file *os.File
	to   io.Writer
}

// newReportFile creates a report file that can't grow beyond its size.
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

// duplicate returns a descriptor for the process that shares its file offset with ours.
func (s *reportFile) duplicate() (*os.File, error) {
	fd, err := unix.FcntlInt(s.file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("dup", err)
	}
	return os.NewFile(uintptr(fd), "report"), nil
}

// finish passes on the report of the ended process.
func (s *reportFile) finish() {
	defer s.close()
	n, err := s.file.Seek(0, io.SeekCurrent)
	if err == nil {
		_, _ = io.Copy(s.to, io.NewSectionReader(s.file, 0, min(n, reportSize)))
	}
}

func (s *reportFile) close() { _ = s.file.Close() }

package testkit

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// Disk is a small separate disk, in a folder.
type Disk struct{ Dir string }

// NewDisk mounts a disk of the given size. It needs root. Remove it after use.
func NewDisk(size string) (*Disk, error) {
	dir, err := os.MkdirTemp("/tmp", "inspan-disk-")
	if err != nil {
		return nil, err
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size+",mode=0777"); err != nil {
		_ = os.Remove(dir)
		return nil, err
	}
	return &Disk{dir}, nil
}

// Remove unmounts it.
func (d *Disk) Remove() error {
	if err := syscall.Unmount(d.Dir, 0); err != nil {
		return err
	}
	return os.Remove(d.Dir)
}

func (d *Disk) filler() string { return filepath.Join(d.Dir, "filler") }

// Fill fills the disk up to the given rest.
func (d *Disk) Fill(left int64) error {
	f, err := os.Create(d.filler())
	if err != nil {
		return err
	}
	defer f.Close()
	var disk syscall.Statfs_t
	if err := syscall.Statfs(d.Dir, &disk); err != nil {
		return err
	}
	_, err = io.CopyN(f, zeros{}, max(int64(disk.Bavail)*disk.Bsize-left, 0))
	if errors.Is(err, syscall.ENOSPC) { // others were faster
		return nil
	}
	return err
}

// Empty frees the space again.
func (d *Disk) Empty() error { return os.Remove(d.filler()) }

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

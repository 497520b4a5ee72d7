package sandbox

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Detached is never created on this platform.
type Detached struct{}

// Detach always fails.
func Detach(string, []string, *os.File, []byte, ...string) (*Detached, error) {
	return nil, fmt.Errorf("detach: %w", errUnsupported)
}

// Report is never called, nor are Wait and Close.
func (*Detached) Report(context.Context) ([]byte, error) { return nil, errUnsupported }

// Wait is never called.
func (*Detached) Wait() (int, error) { return -1, errUnsupported }

// Close is never called.
func (*Detached) Close() {}

// Ordered always returns fs.ErrNotExist.
func Ordered() ([]byte, io.WriteCloser, error) { return nil, nil, fs.ErrNotExist }

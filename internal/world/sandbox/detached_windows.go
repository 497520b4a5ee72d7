package sandbox

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Detached is never made here.
type Detached struct{}

// Detach always fails.
func Detach(string, []string, *os.File, []byte, ...string) (*Detached, error) {
	return nil, fmt.Errorf("detach: %w", errUnsupported)
}

// Report is never called, as are the next two.
func (*Detached) Report(context.Context) ([]byte, error) { return nil, errUnsupported }

// Wait is never called.
func (*Detached) Wait() (int, error) { return -1, errUnsupported }

// Close is never called.
func (*Detached) Close() {}

// Ordered knows of no order.
func Ordered() ([]byte, io.WriteCloser, error) { return nil, nil, fs.ErrNotExist }

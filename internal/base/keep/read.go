package keep

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/inspan/inspan/internal/base/text"
)

// Errors of [ReadFile]. [ErrTooBig] is wrapped with the bound.
var (
	ErrNoFile = errors.New("it is not a regular file")
	ErrTooBig = errors.New("it is too long")
)

// ReadFile reads a regular file of at most most bytes below a root. It never blocks: a pipe or a device is
// [ErrNoFile]. It follows links inside the root, but none out of it. A file that grows meanwhile is read up to
// the bound.
func ReadFile(root *os.Root, name string, most int) ([]byte, error) {
	f, err := OpenFile(root, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, ErrNoFile
	case info.Size() > int64(most):
		return nil, tooBig(most)
	}
	data, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	if err == nil && len(data) > most {
		err = tooBig(most)
	}
	return data, err
}

func tooBig(most int) error {
	return fmt.Errorf("%w: more than %s bytes", ErrTooBig, text.Thousands(most))
}

package keep

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/inspan/inspan/internal/base/text"
)

// Why [ReadFile] reads nothing. [ErrTooBig] is wrapped with the bound.
var (
	ErrNoFile = errors.New("it is not a regular file")
	ErrTooBig = errors.New("it is too long")
)

// ReadFile reads a regular file of at most so many bytes below a root. It never waits: a
// pipe or a device is [ErrNoFile]. No link leads out of the root; one that stays in it is
// followed. A file that grows meanwhile is read up to the bound.
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

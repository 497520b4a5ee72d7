//go:build !linux && !darwin

package console

import (
	"errors"
	"os"
)

// single is not supported here: answers are lines.
func single(*os.File) (func(), error) { return nil, errors.ErrUnsupported }

// discard is not supported here.
func discard(*os.File) {}

//go:build unix && !linux

package sandbox

import (
	"errors"
	"io"
	"os"
)

// reportFile is not used on this platform: a pipe is.
type reportFile struct{}

func newReportFile(io.Writer) (*reportFile, error) { return nil, errors.ErrUnsupported }

func (*reportFile) duplicate() (*os.File, error) { return nil, errors.ErrUnsupported }
func (*reportFile) finish()                      {}
func (*reportFile) close()                       {}

package keep

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"strings"
)

// Unpack is what was compressed by gzip.
func Unpack(packed string) ([]byte, error) {
	r, err := gzip.NewReader(strings.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// Archive opens a zip archive that was compressed as a whole: that is smaller than one whose files are, as
// files are alike.
func Archive(packed string) (*zip.Reader, error) {
	raw, err := Unpack(packed)
	if err != nil {
		return nil, err
	}
	return zip.NewReader(bytes.NewReader(raw), int64(len(raw)))
}

package testkit

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"maps"
	"os"
	"slices"
)

// PackAll writes files, by name, as keep.Archive reads them.
func PackAll(path string, files map[string]string) error {
	var raw bytes.Buffer
	w := zip.NewWriter(&raw)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		file, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
		if err == nil {
			_, err = file.Write([]byte(files[name]))
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(w.Close(), Pack(path, raw.Bytes()))
}

// Pack writes data as keep.Unpack reads it.
func Pack(path string, data []byte) error {
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err == nil {
		_, err = w.Write(data)
	}
	return errors.Join(err, w.Close(), os.WriteFile(path, packed.Bytes(), 0o644))
}

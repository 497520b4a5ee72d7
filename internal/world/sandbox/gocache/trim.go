package gocache

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
)

// The times at which the go command itself trims: it notes a use once an hour, and removes each
// day what nobody has used for five.
const (
	noteEvery  = time.Hour
	trimEvery  = 24 * time.Hour
	keepUnused = 5 * 24 * time.Hour
)

// markUsed notes that a file of the upper layer is in use.
func markUsed(path string) {
	now := time.Now()
	if info, err := os.Stat(path); err == nil && now.Sub(info.ModTime()) > noteEvery {
		_ = os.Chtimes(path, now, now) // then it goes earlier
	}
}

// trim removes from the upper layer what nobody has used for long, once a day.
func (c Cache) trim(now time.Time) error {
	mark := filepath.Join(c.Top, "trim.txt")
	data, err := keep.Read(mark)
	if err == nil {
		at, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
		if since := now.Sub(time.Unix(at, 0)); err == nil && since >= 0 && since < trimEvery {
			return nil
		}
	}
	if _, err := os.Stat(c.Top); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for i := range 256 {
		dir := filepath.Join(c.Top, hexByte(i))
		list, _ := os.ReadDir(dir)
		for _, e := range list {
			info, err := e.Info()
			if err == nil && info.Mode().IsRegular() && now.Sub(info.ModTime()) > keepUnused+noteEvery {
				_ = os.Remove(filepath.Join(dir, e.Name())) // another one may have done it
			}
		}
	}
	return writeWhole(mark, strings.NewReader(strconv.FormatInt(now.Unix(), 10)))
}

// hexByte is the name of one of the folders of a cache.
func hexByte(i int) string {
	const digits = "0123456789abcdef"
	return string([]byte{digits[i>>4], digits[i&15]})
}

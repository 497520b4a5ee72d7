package gocache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
)

// The go command's own trim intervals: it records a use once an hour, and once a day removes files unused for
// five days.
const (
	noteEvery  = time.Hour
	trimEvery  = 24 * time.Hour
	keepUnused = 5 * 24 * time.Hour
)

// markUsed records the use of a file in the upper layer.
func markUsed(path string) {
	now := time.Now()
	if info, err := os.Stat(path); err == nil && now.Sub(info.ModTime()) > noteEvery {
		_ = os.Chtimes(path, now, now) // on failure it is removed earlier
	}
}

// trim removes long unused files from the upper layer, once a day.
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
		dir := filepath.Join(c.Top, fmt.Sprintf("%02x", i))
		list, _ := os.ReadDir(dir)
		for _, e := range list {
			info, err := e.Info()
			if err == nil && info.Mode().IsRegular() && now.Sub(info.ModTime()) > keepUnused+noteEvery {
				_ = os.Remove(filepath.Join(dir, e.Name())) // another process may have removed it
			}
		}
	}
	return writeWhole(mark, strings.NewReader(strconv.FormatInt(now.Unix(), 10)))
}

//go:build !linux

package session

import (
	"os"
	"path/filepath"
)

// Stats looks files up one by one.
func (osDisk) Stats(dir string) (stats, error) {
	return stats{
		of: func(path string) (stamp, error) {
			info, err := os.Stat(filepath.Join(dir, path))
			if err != nil {
				return stamp{}, err
			}
			return stamp{info.Size(), info.ModTime()}, nil
		},
		done: func() error { return nil },
	}, nil
}

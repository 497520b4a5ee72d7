package main

import (
	"path/filepath"
	"testing"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/harnesstest"
)

func TestFile(t *testing.T) {
	harnesstest.TestLog(t, harnesstest.Logs{Open: func(t *testing.T) event.Log {
		l, err := openFile(filepath.Join(t.TempDir(), "log.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return l
	}})
}

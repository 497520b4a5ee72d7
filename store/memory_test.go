package store_test

import (
	"testing"

	"github.com/inspan/inspan/harnesstest"
	"github.com/inspan/inspan/store"
)

func TestMemory(t *testing.T) {
	harnesstest.TestStore(t, harnesstest.Stores{
		Open:      func(*testing.T) store.Store { return &store.Memory{} },
		LoseLease: func(_ *testing.T, s store.Store, l store.Log) { s.(*store.Memory).Lose(l.ID()) },
	})
}

package event_test

import (
	"testing"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/harnesstest"
)

func TestMemory(t *testing.T) {
	harnesstest.TestLog(t, harnesstest.Logs{Open: func(*testing.T) event.Log { return event.NewMemory("20261121-131502-k3f9") }})
}

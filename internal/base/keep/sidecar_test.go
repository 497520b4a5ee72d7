package keep_test

import (
	"bytes"
	"math"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
)

// TestSidecar checks that stored data is read back, and no data that was changed anywhere.
func TestSidecar(t *testing.T) {
	at := time.Date(2026, 11, 21, 13, 15, 2, 345, time.FixedZone("", 3600))
	s := keep.NewSidecar("test 1")
	s.PutInt(math.MinInt64)
	s.PutText("a text")
	s.PutText("")
	s.PutTime(at)
	s.PutTime(time.Time{})
	data := s.Bytes()
	got, ok := keep.OpenSidecar(bytes.Clone(data), "test 1")
	if !ok {
		t.Fatal("it can't be opened")
	}
	if n, a, b := got.Int(), got.Text(), got.Text(); n != math.MinInt64 || a != "a text" || b != "" {
		t.Errorf("read %d, %q, %q", n, a, b)
	}
	if first, second := got.Time(), got.Time(); !first.Equal(at) || !second.IsZero() || !got.Good() || got.More() {
		t.Errorf("read %v, %v; good %v, more %v", first, second, got.Good(), got.More())
	}
	if got.Int() != 0 || got.Text() != "" || got.Good() {
		t.Error("it goes on behind its end")
	}
	if _, ok := keep.OpenSidecar(bytes.Clone(data), "test 2"); ok {
		t.Error("it is opened in another format")
	}
	for i := range data {
		if _, ok := keep.OpenSidecar(bytes.Clone(data[:i]), "test 1"); ok {
			t.Errorf("it is opened with %d of %d bytes", i, len(data))
		}
		wrong := bytes.Clone(data)
		wrong[i] ^= 1
		if _, ok := keep.OpenSidecar(wrong, "test 1"); ok {
			t.Errorf("it is opened with byte %d changed", i)
		}
	}
}

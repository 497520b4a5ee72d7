package keep_test

import (
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/inspan/inspan/internal/base/keep"
)

// TestFull fails when too much waits, and does not wait itself.
func TestFull(t *testing.T) {
	in := keep.NewInput(10)
	if n, err := in.Write([]byte("0123456789")); n != 10 || err != nil {
		t.Fatal(n, err)
	}
	if n, err := in.Write([]byte("x")); n != 0 || !errors.Is(err, keep.ErrFull) {
		t.Error("more than may wait was taken:", n, err)
	}
	p := make([]byte, 4)
	if n, err := in.Read(p); n != 4 || err != nil || string(p) != "0123" {
		t.Error(n, err, string(p))
	}
	if _, err := in.Write([]byte("abcde")); !errors.Is(err, keep.ErrFull) {
		t.Error("a part of it would have fitted:", err)
	}
	if n, err := in.Write([]byte("abcd")); n != 4 || err != nil {
		t.Error("there is room again:", n, err)
	}
	if err := in.Close(); err != nil {
		t.Error(err)
	}
	if got, err := io.ReadAll(in); err != nil || string(got) != "456789abcd" {
		t.Errorf("after Close it reads %q, %v", got, err)
	}
}

func TestClosed(t *testing.T) {
	in := keep.NewInput(10)
	for range 2 {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
		for _, data := range []string{"", "x", "more than ten"} {
			if n, err := in.Write([]byte(data)); n != 0 || !errors.Is(err, keep.ErrClosed) {
				t.Errorf("%q: %d, %v", data, n, err)
			}
		}
		if n, err := in.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
			t.Error(n, err)
		}
	}
}

// TestWaiting has readers that are there before anything is written.
func TestWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := keep.NewInput(100)
		var got, ends atomic.Int64
		for range 3 {
			go func() {
				p := make([]byte, 7)
				for {
					n, err := in.Read(p)
					got.Add(int64(n))
					if err != nil {
						ends.Add(1)
						return
					}
				}
			}()
		}
		for n := range int64(10) {
			synctest.Wait()
			if got.Load() != n*30 || ends.Load() != 0 {
				t.Errorf("%d bytes, %d ends; want %d, 0", got.Load(), ends.Load(), n*30)
			}
			for range 3 {
				if _, err := in.Write([]byte("some text\n")); err != nil {
					t.Error(err)
				}
			}
		}
		synctest.Wait()
		_ = in.Close()
		synctest.Wait()
		if got.Load() != 300 || ends.Load() != 3 {
			t.Errorf("%d bytes, %d ends", got.Load(), ends.Load())
		}
	})
}

// TestWhatIsWrittenIsKept also if the writer uses its buffer again.
func TestWhatIsWrittenIsKept(t *testing.T) {
	in, end := keep.NewInput(100), &keep.Tail{}
	for _, w := range []io.Writer{in, end} {
		buf := []byte("first")
		if n, err := w.Write(buf); n != 5 || err != nil {
			t.Error(n, err)
		}
		copy(buf, "later")
	}
	p := make([]byte, 10)
	if n, _ := in.Read(p); string(p[:n]) != "first" || end.Text() != "first" {
		t.Errorf("%q, %q", p[:n], end.Text())
	}
}

func TestTail(t *testing.T) {
	const kept = 4 << 10
	var end keep.Tail
	if end.Text() != "" {
		t.Error("it begins with something")
	}
	said := ""
	for _, text := range []string{"a", "", strings.Repeat("b", kept-1), "last words", strings.Repeat("c", 3*kept) + "d", "e"} {
		if n, err := end.Write([]byte(text)); n != len(text) || err != nil {
			t.Error(n, err)
		}
		said += text
		if want := said[max(0, len(said)-kept):]; end.Text() != want {
			t.Errorf("after %d bytes: %d bytes, want %d", len(said), len(end.Text()), len(want))
		}
	}
}

package running_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/install/running"
)

// TestPrinted writes far more than a file may hold.
func TestPrinted(t *testing.T) {
	f, err := os.OpenFile(filepath.Join(t.TempDir(), "log"), os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := &running.Printed{File: f, Most: 1000}
	for i := range 5000 {
		if n, err := fmt.Fprintf(out, "line %d\n", i); n == 0 || err != nil {
			t.Fatal(n, err)
		}
		if info, err := f.Stat(); err != nil || info.Size() > out.Most || info.Size() != out.Size() {
			t.Fatalf("%d bytes, want %d and at most %d: %v", info.Size(), out.Size(), out.Most, err)
		}
	}
	raw, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(raw), "\n"), "\n")
	if lines[0] != "(earlier output was dropped)" || lines[len(lines)-1] != "line 4999" || len(raw) < 500 {
		t.Errorf("%q", raw)
	}
	for i, line := range lines[1:] {
		if want := fmt.Sprintf("line %d", 5000-len(lines)+1+i); line != want {
			t.Fatalf("%q, want %q", line, want)
		}
	}
	if n, err := out.Write(make([]byte, 5000)); n != 5000 || err != nil {
		t.Errorf("a long write: %d, %v", n, err)
	}
}

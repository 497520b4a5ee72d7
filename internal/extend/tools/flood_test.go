package tools_test

import (
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/extend/tools"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/tool"
)

// nullBlobs is a store that forgets, so that only the tools use memory.
type nullBlobs struct{ size *int64 }

func (n nullBlobs) Put(_ context.Context, r io.Reader) (string, error) {
	size, err := io.Copy(io.Discard, r)
	*n.size = size
	return "sha256-" + strings.Repeat("0", 64), err
}

func (nullBlobs) Get(context.Context, string) (io.ReadCloser, error) {
	return nil, errors.New("forgotten")
}

// TestMain lets the test binary run a flood by itself, so that its memory can
// be measured.
func TestMain(m *testing.M) {
	if n := os.Getenv("TOOLS_TEST_FLOOD"); n != "" {
		flood(n)
		return
	}
	os.Exit(m.Run())
}

// flood runs a command that prints n bytes, and returns the result and the peak memory.
func flood(n string) {
	var stored int64
	env, err := sandbox.Local(os.TempDir(), nullBlobs{&stored}, sandbox.Options{})
	if err != nil {
		panic(err)
	}
	sh := &tools.Shell{}
	defer sh.Close()
	for _, tl := range tools.Core(sh, "") {
		if tl.Name != "bash" {
			continue
		}
		r, err := tl.Run(context.Background(), &tool.Call{
			Args: []byte(`{"command":"yes 0123456789abcdef | head -c ` + n + `"}`), Env: env, Cwd: env.Root,
		})
		status, readErr := os.ReadFile("/proc/self/status")
		if err != nil || readErr != nil {
			panic(errors.Join(err, readErr))
		}
		_, peak, _ := strings.Cut(string(status), "VmHWM:")
		text := r.Parts.Text()
		println(strings.Fields(peak)[0], stored, len(text), text[len(text)-200:])
	}
}

// runFlood starts a flood of n bytes and returns its peak memory in KiB and the end of the model's text.
func runFlood(t testing.TB, n int64) (peak int, stored int64, shown int, end string) {
	t.Helper()
	env, err := sandbox.Local(t.TempDir(), nil, sandbox.Options{})
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	p, err := env.Procs.Start(t.Context(), tool.Command{
		Args: []string{self}, Env: append(os.Environ(), "TOOLS_TEST_FLOOD="+strconv.FormatInt(n, 10)), Dir: env.Root, Output: &out,
	})
	if err != nil {
		t.Fatal(err)
	}
	if code, err := p.Wait(); code != 0 || err != nil {
		t.Fatalf("exit code %d, %v: %s", code, err, &out)
	}
	words := strings.SplitN(out.String(), " ", 4)
	if len(words) != 4 {
		t.Fatalf("printed %q", &out)
	}
	peak, err1 := strconv.Atoi(words[0])
	stored, err2 := strconv.ParseInt(words[1], 10, 64)
	shown, err3 := strconv.Atoi(words[2])
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	return peak, stored, shown, words[3]
}

// TestFlood checks that memory stays small whatever a command prints.
func TestFlood(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("memory cannot be measured here")
	}
	from := time.Now()
	peak, stored, shown, end := runFlood(t, 1<<30)
	t.Logf("1 GiB in %v, peak %d KiB", time.Since(from), peak)
	if peak > 100<<10 {
		t.Errorf("peak memory is %d KiB", peak)
	}
	if stored != 256<<20 || shown > 30_400 {
		t.Errorf("stored %d bytes, showed %d", stored, shown)
	}
	says(t, end, "[the first 256.0 MiB are in blob:sha256-000", "[exit code 0]")
}

// BenchmarkFlood measures a command that prints 20 GB.
func BenchmarkFlood(b *testing.B) {
	for b.Loop() {
		peak, _, _, _ := runFlood(b, 20e9)
		b.ReportMetric(float64(peak)/1024, "peak-MiB")
	}
	b.SetBytes(20e9)
}

//go:build linux

package keep_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/base/keep"
)

const childEnv = "KEEP_TEST_CHILD" // what to do, and a path

func TestMain(m *testing.M) {
	if what, path, ok := strings.Cut(os.Getenv(childEnv), " "); ok {
		runtime.LockOSThread() // strace counts the calls of each thread
		if err := child(what, path); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child does one thing in a process of its own.
func child(what, path string) error {
	switch what {
	case "remove":
		return keep.Remove(path)
	case "hold":
		return hold(path)
	case "lockless":
		return lockless(path)
	}
	if err := keep.MakeDir(filepath.Dir(path)); err != nil {
		return err
	}
	return keep.Write(path, []byte("new"))
}

// traced does something in a process of its own, and returns the calls of that.
func traced(t *testing.T, what, path string, options ...string) (trace string, err error) {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err == nil {
		err = exec.CommandContext(t.Context(), strace, "-f", "-o", os.DevNull, "true").Run()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "SKIPPED %s: strace is not installed or can not trace here (apt-get install strace): %v\n", t.Name(), err)
		t.Skip("no strace")
	}
	self, err := os.Executable()
	must(t, err)
	file := filepath.Join(t.TempDir(), "trace")
	cmd := exec.CommandContext(t.Context(), strace, append(append([]string{"-f", "-qq", "-o", file}, options...), self)...)
	cmd.Env = append(os.Environ(), childEnv+"="+what+" "+path)
	err = cmd.Run()
	data, readErr := os.ReadFile(file)
	must(t, readErr)
	return string(data), err
}

// TestOrder checks that all data is on the disk before the step that makes it count, and at the end.
func TestOrder(t *testing.T) {
	top := t.TempDir()
	call := regexp.MustCompile(`(\w+)\((?:\d+<([^>]*)>|AT_FDCWD<[^>]*>, "([^"]*)")`)
	for _, tc := range []struct {
		what string
		want []string
	}{
		{"write", []string{
			"mkdirat /a", "fsync ", "mkdirat /a/b", "fsync /a",
			"write /a/b/x.new", "fsync /a/b/x.new", "renameat /a/b/x.new", "fsync /a/b",
		}},
		{"remove", []string{"unlinkat /a/b/x", "fsync /a/b"}},
	} {
		trace, err := traced(t, tc.what, filepath.Join(top, "a", "b", "x"), "-y", "-e", "trace=mkdirat,write,fsync,renameat,unlinkat")
		must(t, err)
		var got []string
		for _, m := range call.FindAllStringSubmatch(trace, -1) {
			if at, ours := strings.CutPrefix(m[2]+m[3], top); ours {
				at, _, _ = strings.Cut(at, "-")
				got = append(got, m[1]+" "+at)
			}
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %q, want %q\n%s", tc.what, got, tc.want, trace)
		}
	}
}

// TestFaults fails each call that matters, by an error or by the end of the process.
func TestFaults(t *testing.T) {
	for _, tc := range []struct {
		fault string
		when  int
		want  string
	}{
		{"write:error=ENOSPC", 1, "old"},
		{"write:signal=SIGKILL", 1, "old"},
		{"fsync:error=EIO", 1, "old"},
		{"fsync:signal=SIGKILL", 1, "old"},
		{"renameat:error=EIO", 1, "old"},
		{"renameat:signal=SIGKILL", 1, "old"},
		{"fsync:error=EIO", 2, "new"},
		{"fsync:signal=SIGKILL", 2, "new"},
	} {
		t.Run(fmt.Sprint(strings.ReplaceAll(tc.fault, ":", " "), " ", tc.when), func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "x")
			must(t, keep.Write(path, []byte("old")))
			call, _, _ := strings.Cut(tc.fault, ":")
			trace, err := traced(t, "write", path, "-e", "trace="+call, "-e", fmt.Sprintf("inject=%s:when=%d", tc.fault, tc.when))
			if err == nil {
				t.Errorf("it went unnoticed: %s", trace)
			}
			killed := strings.Contains(tc.fault, "SIGKILL")
			if killed {
				keep.Sweep(path)
			}
			if got := names(t, dir); !slices.Equal(got, []string{"x"}) {
				t.Error(got)
			}
			// A call that a signal comes with may be done before the process ends.
			got, err := os.ReadFile(path)
			if must(t, err); string(got) != tc.want && (!killed || call != "renameat" || string(got) != "new") {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

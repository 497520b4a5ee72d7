package gocache_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/world/sandbox/gocache"
)

// below names, in the environment of this program, the lower layer that it is to serve.
const below = "INSPAN_TEST_BELOW"

// TestMain serves the go command, if that has started this program.
func TestMain(m *testing.M) {
	dir, ok := os.LookupEnv(below)
	if !ok || len(os.Args) != 2 || os.Args[1] != "serve" {
		os.Exit(m.Run())
	}
	if err := (gocache.Cache{Top: os.Getenv("GOCACHE"), Below: dir}).Serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// built runs the real go command, and returns the packages that it had to compile. Without a lower layer it keeps its
// cache itself.
func built(t *testing.T, source, top, lower string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "build", "-v", "./...")
	cmd.Dir = source
	cmd.Env = append(os.Environ(), "GOCACHE="+top, "GOFLAGS=", "GOTOOLCHAIN=local", "GOCACHEPROG=", "GOWORK=off")
	if lower != "" {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Env = append(cmd.Env, "GOCACHEPROG='"+self+"' serve", below+"="+lower)
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return strings.Fields(string(out))
}

// source is a module that imports nothing.
func source(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module m\n\ngo 1.24\n")
	write(t, filepath.Join(dir, "m.go"), "package m\n\nfunc F() int { return 1 }\n")
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// state lists all files of a folder with their times.
func state(t *testing.T, dir string) string {
	t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			fmt.Fprintln(&out, path, info.Size(), info.ModTime())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestGoBuilds has the go command fill a cache of its own, which is then read below another. That other one serves
// the go command later without this program.
func TestGoBuilds(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no Go: ", err)
	}
	src, top, lower := source(t), filepath.Join(t.TempDir(), "top"), t.TempDir()
	if got := built(t, src, lower, ""); len(got) != 1 {
		t.Fatalf("the first build compiled %q", got)
	}
	old := time.Now().Add(-3 * time.Hour)
	if err := filepath.WalkDir(lower, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chtimes(path, old, old)
	}); err != nil {
		t.Fatal(err)
	}
	before := state(t, lower)
	if got := built(t, src, top, lower); len(got) != 0 {
		t.Errorf("compiled %q, which is in the lower layer", got)
	}
	write(t, filepath.Join(src, "m.go"), "package m\n\nfunc F() int { return 2 }\n")
	if got := built(t, src, top, lower); len(got) != 1 {
		t.Errorf("compiled %q after a change", got)
	}
	if got := built(t, src, top, lower); len(got) != 0 {
		t.Errorf("compiled %q, which is in the upper layer", got)
	}
	if got := built(t, src, top, ""); len(got) != 0 {
		t.Errorf("without the program the upper layer lacks %q", got)
	}
	if after := state(t, lower); after != before {
		t.Errorf("the lower layer has changed:\n%s\n%s", before, after)
	}
}

// line is a request as the go command sends it.
func line(t testing.TB, id int, command string, action, output, body []byte) string {
	t.Helper()
	ask := map[string]any{"ID": id, "Command": command}
	if action != nil {
		ask["ActionID"] = action
	}
	if output != nil {
		ask["OutputID"] = output
	}
	if body != nil {
		ask["BodySize"] = len(body)
	}
	data, err := json.Marshal(ask)
	if err != nil {
		t.Fatal(err)
	}
	out := string(data) + "\n\n"
	if len(body) > 0 {
		out += `"` + base64.StdEncoding.EncodeToString(body) + "\"\n"
	}
	return out
}

func served(t testing.TB, l gocache.Cache, in string) ([]map[string]any, error) {
	t.Helper()
	var out bytes.Buffer
	err := l.Serve(strings.NewReader(in), &out)
	var answers []map[string]any
	for text := range strings.Lines(out.String()) {
		var a map[string]any
		if err := json.Unmarshal([]byte(text), &a); err != nil {
			t.Fatalf("%v: %q", err, text)
		}
		answers = append(answers, a)
	}
	return answers[1:], err // the first says what is known
}

// TestBadRequests: each has its answer, and the one after it is still served.
func TestBadRequests(t *testing.T) {
	id := bytes.Repeat([]byte{7}, 32)
	for name, c := range map[string]struct{ in, said string }{
		"short action":    {line(t, 1, "get", []byte("x"), nil, nil), "no SHA-256"},
		"no action":       {line(t, 1, "get", nil, nil, nil), "no SHA-256"},
		"short output":    {line(t, 1, "put", id, []byte("../x"), []byte("body")), "no SHA-256"},
		"unknown command": {line(t, 1, "burn", id, nil, nil), `unknown command "burn"`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			answers, err := served(t, gocache.Cache{Top: dir}, c.in+line(t, 2, "put", id, id, []byte("kept"))+line(t, 3, "get", id, nil, nil))
			if err != nil || len(answers) != 3 {
				t.Fatalf("%v, %v", answers, err)
			}
			if said, _ := answers[0]["Err"].(string); !strings.Contains(said, c.said) {
				t.Errorf("said %q", said)
			}
			path, _ := answers[2]["DiskPath"].(string)
			if data, err := os.ReadFile(path); err != nil || string(data) != "kept" {
				t.Errorf("%q, %v", data, err)
			}
		})
	}
}

// TestBrokenConnections: nothing half is kept.
func TestBrokenConnections(t *testing.T) {
	id := bytes.Repeat([]byte{7}, 32)
	whole := line(t, 1, "put", id, id, []byte("some longer body"))
	for name, in := range map[string]string{
		"no JSON":         "get me\n",
		"half a request":  `{"ID":1,"Com`,
		"half a body":     whole[:len(whole)-12],
		"no body":         strings.SplitAfter(whole, "\n\n")[0],
		"a longer body":   strings.TrimSuffix(whole, "\"\n") + "AAAA\"\n",
		"no string":       strings.Replace(whole, "\n\n\"", "\n\n", 1),
		"no base64":       strings.Replace(whole, "\n\n\"", "\n\n\"!", 1),
		"less than none":  strings.Replace(whole, `"BodySize":16`, `"BodySize":-1`, 1),
		"an endless line": strings.Repeat("x", 1<<20),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if answers, err := served(t, gocache.Cache{Top: dir}, in); err == nil {
				t.Errorf("no error, but %v", answers)
			}
			if name == "a longer body" {
				return // what was announced has come
			}
			if kept, err := filepath.Glob(filepath.Join(dir, "*", "*")); err != nil || len(kept) > 0 {
				t.Errorf("kept %q, %v", kept, err)
			}
		})
	}
}

// TestDamaged: an entry that differs from what was written is not a hit.
func TestDamaged(t *testing.T) {
	id := bytes.Repeat([]byte{7}, 32)
	name := hex.EncodeToString(id)
	record := fmt.Sprintf("v1 %x %x %20d %20d\n", id, id, 4, 1)
	for what, c := range map[string]struct{ record, output string }{
		"none":             {"", ""},
		"another version":  {strings.Replace(record, "v1", "v2", 1), "body"},
		"another action":   {strings.Replace(record, "07", "08", 1), "body"},
		"a cut record":     {record[:100], "body"},
		"a shorter output": {record, "bod"},
		"no size":          {strings.Replace(record, " 4 ", " x ", 1), "body"},
	} {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "07"), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "07", name+"-a"), c.record)
		write(t, filepath.Join(dir, "07", name+"-d"), c.output)
		answers, err := served(t, gocache.Cache{Top: t.TempDir(), Below: dir}, line(t, 1, "get", id, nil, nil))
		if err != nil || len(answers) != 1 || answers[0]["Miss"] != true {
			t.Errorf("%s: %v, %v", what, answers, err)
		}
	}
}

// TestTrim: entries unused for days are removed once a day, from the upper layer only.
func TestTrim(t *testing.T) {
	top, lower := t.TempDir(), t.TempDir()
	id := func(b byte) []byte { return bytes.Repeat([]byte{b}, 32) }
	has := func(b byte) bool {
		answers, err := served(t, gocache.Cache{Top: top}, line(t, 1, "get", id(b), nil, nil))
		if err != nil {
			t.Fatal(err)
		}
		return answers[0]["Miss"] == nil
	}
	put := line(t, 1, "put", id(1), id(1), []byte("old")) + line(t, 2, "put", id(2), id(2), []byte("new"))
	for _, dir := range []string{top, lower} {
		if _, err := served(t, gocache.Cache{Top: dir}, put); err != nil {
			t.Fatal(err)
		}
		old := time.Now().Add(-6 * 24 * time.Hour)
		for _, kind := range []string{"a", "d"} {
			path := filepath.Join(dir, "01", hex.EncodeToString(id(1))+"-"+kind)
			if err := os.Chtimes(path, old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	before := state(t, lower)
	if _, err := served(t, gocache.Cache{Top: top, Below: lower}, line(t, 1, "close", nil, nil, nil)); err != nil {
		t.Fatal(err)
	}
	if has(1) || !has(2) {
		t.Errorf("old: %v, new: %v", has(1), has(2))
	}
	if after := state(t, lower); after != before {
		t.Errorf("the lower layer has changed:\n%s\n%s", before, after)
	}
}

func FuzzServe(f *testing.F) {
	id := bytes.Repeat([]byte{7}, 32)
	f.Add(line(f, 1, "put", id, id, []byte("body")) + line(f, 2, "get", id, nil, nil) + line(f, 3, "close", nil, nil, nil))
	f.Add(`{"ID":1,"Command":"put","BodySize":9223372036854775807}` + "\n\"AA")
	f.Fuzz(func(t *testing.T, in string) {
		dir := t.TempDir()
		_, _ = served(t, gocache.Cache{Top: filepath.Join(dir, "top")}, in)
		list, err := os.ReadDir(dir)
		if err != nil || len(list) > 1 {
			t.Errorf("it wrote beside its folder: %v, %v", list, err)
		}
	})
}

//go:build unix

package acp_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	wire "github.com/coder/acp-go-sdk"
	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/harnesstest"
	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/tool"
)

var both = wire.ClientCapabilities{Fs: wire.FileSystemCapabilities{ReadTextFile: true, WriteTextFile: true}}

// open gives an editor files that are open in it, by their path in the workspace, and
// returns the files that its agent works with.
func (e *editor) open(buffers map[string]string, change func(*inspan.Agent)) (tool.Files, *[]string) {
	var mu sync.Mutex
	var log []string
	e.read = func(path string) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		rel, err := filepath.Rel(e.root, path)
		if err != nil {
			return "", err
		}
		log = append(log, "read "+rel)
		text, ok := buffers[rel]
		switch {
		case text == "FAIL":
			return "", errors.New("the window is closed")
		case ok:
			return text, nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return "", &wire.RequestError{Code: -32002, Message: "not found"}
		}
		return strings.ReplaceAll(string(data), "\r\n", "\n"), nil
	}
	e.write = func(path, text string) error {
		mu.Lock()
		defer mu.Unlock()
		rel, _ := filepath.Rel(e.root, path)
		log = append(log, "write "+rel)
		if buffers[rel] == "FAIL" {
			return errors.New("read only")
		}
		buffers[rel] = text
		if rel == "unsaved.txt" {
			return nil
		}
		return os.WriteFile(path, []byte(text), 0o644)
	}
	var files tool.Files
	probe := tool.New("probe", "", func(_ context.Context, c *tool.Call, _ struct{}) (tool.Result, error) {
		files = c.Env.Files
		return tool.Text("ok"), nil
	})
	probe.Effects = nil // anything, so that files are as they were made
	e.server.Host = serverIn(e.server.App.StateDir, func(a *inspan.Agent) {
		a.Tools, a.Mode = append(a.Tools, probe), "yolo"
		if change != nil {
			change(a)
		}
	}).Host
	made, err := e.conn.NewSession(e.t.Context(), wire.NewSessionRequest{Cwd: e.root, McpServers: []wire.McpServer{}})
	if err != nil {
		e.t.Fatal(err)
	}
	e.session = made.SessionId
	e.prompt("call: probe {}")
	if files == nil {
		e.t.Fatal("no files: " + e.text())
	}
	return files, &log
}

func TestBuffers(t *testing.T) {
	e := start(t, serverIn(t.TempDir(), nil), folder(t), both)
	for name, text := range map[string]string{
		"a.txt": "on the disk\n", "dos.txt": "one\r\ntwo\r\n", "fails.txt": "old", "bin": "\x00\x01", "latin.txt": "caf\xe9", ".git/config": "x",
		"plain.txt": "same\n", "big.txt": strings.Repeat("x", 10<<20+1),
	} {
		put(t, filepath.Join(e.root, name), text)
	}
	outside := filepath.Join(folder(t), "else.txt")
	put(t, outside, "elsewhere")
	if err := os.Symlink(outside, filepath.Join(e.root, "link")); err != nil {
		t.Fatal(err)
	}
	files, log := e.open(map[string]string{
		"a.txt": "in the buffer\n", "fails.txt": "FAIL", "new.txt": "never saved", "sub": "FAIL",
		"bin": "FAIL", "latin.txt": "FAIL", "dos.txt": "one\ntwo\n",
	}, nil)
	for name, want := range map[string]string{
		"a.txt": "in the buffer\n", "dos.txt": "one\r\ntwo\r\n", "bin": "\x00\x01", "latin.txt": "caf\xe9", ".git/config": "x",
		"plain.txt": "same\n", "link": "elsewhere",
	} {
		data, err := fs.ReadFile(fsOf{t, files, e.root}, name)
		if err != nil || string(data) != want {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
	if f, err := files.Open(t.Context(), filepath.Join(e.root, "big.txt")); err != nil {
		t.Error(err)
	} else {
		f.Close()
	}
	for name, want := range map[string]string{"fails.txt": "the window is closed", "gone.txt": "no such file", "new.txt": "no such file"} {
		if data, err := fs.ReadFile(fsOf{t, files, e.root}, name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
	if entries, err := fs.ReadDir(fsOf{t, files, e.root}, "."); err != nil || len(entries) != 9 {
		t.Errorf("%d entries, %v", len(entries), err)
	}
	slices.Sort(*log)
	if diff := cmp.Diff([]string{"read a.txt", "read dos.txt", "read fails.txt", "read plain.txt"}, slices.Compact(*log)); diff != "" {
		t.Error(diff)
	}
}

// fsOf is files as an [fs.FS].
type fsOf struct {
	t     *testing.T
	files tool.Files
	root  string
}

func (f fsOf) Open(name string) (fs.File, error) {
	return f.files.Open(f.t.Context(), filepath.Join(f.root, name))
}

func TestBuffersChange(t *testing.T) {
	e := start(t, serverIn(t.TempDir(), nil), folder(t), both)
	for name, text := range map[string]string{
		"a.txt": "disk", "unsaved.txt": "disk", "fails.txt": "disk", "bin": "\x00",
		".env.secret": "disk", "gone.txt": "disk",
	} {
		put(t, filepath.Join(e.root, name), text)
	}
	if err := os.Symlink("a.txt", filepath.Join(e.root, "link")); err != nil {
		t.Fatal(err)
	}
	guarded := filepath.Join(e.root, "guarded")
	put(t, filepath.Join(guarded, "key"), "disk")
	buffers := map[string]string{"a.txt": "buffer", "unsaved.txt": "buffer", "fails.txt": "FAIL", "guarded/key": "disk"}
	files, log := e.open(buffers, func(a *inspan.Agent) {
		env, err := sandbox.Local(e.root, nil, sandbox.Options{Map: places.Map{Root: e.root, State: []string{guarded}}})
		if err != nil {
			t.Error(err)
		}
		a.Env.Files = env.Files
	})
	at := func(name string) string { return filepath.Join(e.root, name) }
	digest := func(text string) string { return tool.Digest([]byte(text)) }
	for _, tc := range []struct {
		name   string
		change tool.Change
		fails  string // in the words of the error; empty means it is made
		said   string // to the editor
		disk   string
	}{
		{
			"by the buffer",
			tool.Change{Path: at("a.txt"), Data: []byte("next"), IfDigest: digest("buffer"), Exact: true},
			"", "read a.txt write a.txt", "next",
		},
		{
			"by the disk",
			tool.Change{Path: at("unsaved.txt"), Data: []byte("next"), IfDigest: digest("disk")},
			"has changed", "read unsaved.txt", "disk",
		},
		{
			"not to be there",
			tool.Change{Path: at("unsaved.txt"), Data: []byte("next"), IfDigest: tool.NoFile},
			"has changed", "read unsaved.txt", "disk",
		},
		{
			"not saved by the editor",
			tool.Change{Path: at("unsaved.txt"), Data: []byte("next"), IfDigest: digest("buffer")},
			"",
			"read unsaved.txt write unsaved.txt", "next",
		},
		{"refused", tool.Change{Path: at("fails.txt"), Data: []byte("next")}, "the window is closed", "read fails.txt", "disk"},
		{"new", tool.Change{Path: at("sub/new.txt"), Data: []byte("next"), IfDigest: tool.NoFile}, "", "", "next"},
		{"no text", tool.Change{Path: at("bin"), Data: []byte("\x00next")}, "", "", "\x00next"},
		{"removed", tool.Change{Path: at("gone.txt"), Remove: true}, "", "", ""},
		{"guarded", tool.Change{Path: at("guarded/key"), Data: []byte("next")}, "tools may not touch this", "", "disk"},
		{"by a link", tool.Change{Path: at("link"), Data: []byte("linked"), IfDigest: digest("next")}, "", "read a.txt write a.txt", "linked"},
		{"by a link that was not judged", tool.Change{Path: at("link"), Data: []byte("next"), Exact: true}, "has changed", "", "linked"},
	} {
		*log = nil
		err := files.Change(t.Context(), tc.change)
		if (err == nil) != (tc.fails == "") || err != nil && !strings.Contains(err.Error(), tc.fails) {
			t.Errorf("%s: %v", tc.name, err)
		}
		if said := strings.Join(*log, " "); said != tc.said {
			t.Errorf("%s: the editor was told %q", tc.name, said)
		}
		if data, _ := os.ReadFile(tc.change.Path); string(data) != tc.disk {
			t.Errorf("%s: on the disk is %q", tc.name, data)
		}
	}
}

// TestSearchesAreOfTheDisk checks that a search does not open every file in the editor.
func TestSearchesAreOfTheDisk(t *testing.T) {
	e := start(t, serverIn(t.TempDir(), nil), folder(t), both)
	put(t, filepath.Join(e.root, "a.txt"), "needle\n")
	_, log := e.open(map[string]string{"a.txt": "hay"}, nil)
	e.prompt("call: search_files {\"pattern\":\"needle\"}\ncall: find_files {\"pattern\":\"*.txt\"}\ncall: list_files {}")
	if got := strings.Join(*log, " "); got != "" {
		t.Errorf("the editor was asked: %s", got)
	}
	if all := shown(e.calls()[1]); !strings.Contains(all, "needle") {
		t.Errorf("%s", all)
	}
}

// TestLinkedWorkspace calls files by the names that the editor has for them.
func TestLinkedWorkspace(t *testing.T) {
	real := folder(t)
	link := filepath.Join(folder(t), "work")
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(real, "a.txt"), "disk")
	e := start(t, serverIn(t.TempDir(), nil), link, both)
	files, log := e.open(map[string]string{"a.txt": "buffer"}, nil)
	data, err := fs.ReadFile(fsOf{t, files, real}, "a.txt")
	if err != nil || string(data) != "buffer" || strings.Join(*log, " ") != "read a.txt" {
		t.Errorf("%q %v %v", data, err, *log)
	}
}

// TestFilesOfAnEditor runs the suite for files. The editor has no buffers of its own and saves at once.
func TestFilesOfAnEditor(t *testing.T) {
	harnesstest.TestEnv(t, func(t *testing.T) tool.Env {
		e := start(t, serverIn(t.TempDir(), nil), folder(t), both)
		var env tool.Env
		files, _ := e.open(map[string]string{}, func(a *inspan.Agent) { env = a.Env })
		env.Files, env.Procs = files, nil
		return env
	})
}

package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/install/config"
)

// TestServersComeAndGo adds servers to a file and takes them out again: all else of
// the file stays as it is.
func TestServersComeAndGo(t *testing.T) {
	for name, before := range map[string]string{
		"no file": "", "a file": "# mine\nmode = \"ask\"\n\n[skills]\noff = true # yes\n", "no line end": "mode = \"plan\"",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "sub", "config.toml")
			if before != "" {
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(before), 0o640); err != nil {
					t.Fatal(err)
				}
			}
			one := config.MCPServer{
				Command: []string{"npx", "-y", "a \"b\""},
				Env:     map[string]string{"KEY": "${KEY}"}, Hosts: []string{"x.example"}, Bare: true,
			}
			two := config.MCPServer{URL: "https://mcp.example.com/mcp", Headers: map[string]string{"X-Team": "[env]"}}
			for name, s := range map[string]config.MCPServer{"one": one, "two": two} {
				if err := config.AddServer(path, name, s); err != nil {
					t.Fatal(err)
				}
			}
			c, err := config.Load(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(map[string]config.MCPServer{"one": one, "two": two}, c.MCP.Servers); diff != "" {
				t.Error(diff)
			}
			if err := config.AddServer(path, "one", two); err == nil || !strings.Contains(err.Error(), "already") {
				t.Error(err)
			}
			for _, name := range []string{"one", "two"} {
				if err := config.RemoveServer(path, name); err != nil {
					t.Fatal(err)
				}
			}
			if err := config.RemoveServer(path, "one"); err == nil {
				t.Error("what is not there was removed")
			}
			data, err := os.ReadFile(path)
			if err != nil || strings.TrimSpace(string(data)) != strings.TrimSpace(before) {
				t.Errorf("%q, %v", data, err)
			}
			if info, err := os.Stat(path); err != nil || before != "" && info.Mode().Perm() != 0o640 {
				t.Error(info.Mode(), err)
			}
		})
	}
	path := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(path, []byte("mcp = { servers = { one = { command = [\"x\"] } } }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := config.RemoveServer(path, "one"); err == nil {
		t.Error("an inline table was removed")
	}
	if _, err := config.Load(path); err != nil {
		t.Error(err)
	}
}

// TestManyEditAtOnce checks that concurrent edits lose no change, even if some go through a link.
func TestManyEditAtOnce(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "config.toml"), filepath.Join(dir, "link.toml")
	if err := config.AddServer(path, "gone", config.MCPServer{Command: []string{"true"}}); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path, link); err != nil {
		t.Skip(err)
	}
	const n = 20
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			if err := config.AddServer([]string{path, link}[i%2], fmt.Sprintf("s%d", i), config.MCPServer{Command: []string{"true"}}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Go(func() {
		if err := config.RemoveServer(link, "gone"); err != nil {
			t.Error(err)
		}
	})
	all.Wait()
	c, err := config.Load(path)
	if err != nil || len(c.MCP.Servers) != n {
		t.Errorf("%d servers, %v", len(c.MCP.Servers), err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Error("the link is none any more", err)
	}
}

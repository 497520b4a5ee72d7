package oauth_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/extend/oauth"
)

// TestStore checks the promises of every store.
func TestStore(t *testing.T) {
	for name, open := range map[string]func(dir string) oauth.Store{
		"file":     func(dir string) oauth.Store { return &oauth.File{Dir: dir} },
		"keychain": func(dir string) oauth.Store { return &oauth.Keychain{Dir: dir} },
	} {
		t.Run(name, func(t *testing.T) {
			noBus(t)
			ctx, dir := t.Context(), filepath.Join(t.TempDir(), "a", "b")
			s := open(dir)
			if names, err := s.Names(ctx); err != nil || len(names) != 0 {
				t.Error(names, err)
			}
			if _, _, err := s.Get(ctx, "x"); !errors.Is(err, fs.ErrNotExist) {
				t.Error(err)
			}
			must(t, s.Delete(ctx, "x"))
			all := []string{"mcp:linear", "../../etc/passwd", "a b", "ünïcode", strings.Repeat("x", 256), "MCP:LINEAR", "CON"}
			for _, name := range all {
				must(t, s.Set(ctx, name, []byte(`"old"`)))
				must(t, s.Set(ctx, name, []byte(`{"of":"`+name+`"}`)))
			}
			names, err := s.Names(ctx)
			must(t, err)
			slices.Sort(names)
			slices.Sort(all)
			if !slices.Equal(names, all) {
				t.Error(names)
			}
			for _, name := range all {
				data, where, err := open(dir).Get(ctx, name)
				if err != nil || string(data) != `{"of":"`+name+`"}` || where == "" {
					t.Errorf("%s: %s %s %v", name, data, where, err)
				}
			}
			must(t, s.Delete(ctx, "a b"))
			if _, _, err := s.Get(ctx, "a b"); !errors.Is(err, fs.ErrNotExist) {
				t.Error(err)
			}
			for _, bad := range []oauth.Store{open("")} {
				if err := bad.Set(ctx, "x", []byte("1")); err == nil {
					t.Error("a store without a folder keeps things")
				}
			}
			modes(t, dir)
		})
	}
}

// modes fails if other users can read a file in a folder.
func modes(t *testing.T, dir string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		return
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		must(t, err)
		info, err := d.Info()
		must(t, err)
		want := fs.FileMode(0o600)
		if d.IsDir() {
			want = 0o700
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s: %s", path, info.Mode())
		}
		if strings.Contains(d.Name(), ".new-") {
			t.Error("left behind:", path)
		}
		return nil
	})
}

// TestStoreIsWary has files that are damaged, or that others could have written.
func TestStoreIsWary(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes are of Unix")
	}
	const name = "mcp:x"
	for _, tt := range []struct {
		name  string
		spoil func(t *testing.T, dir, file string)
		want  string // the error; empty means none
	}{
		{"others can read the file", func(t *testing.T, _, file string) { must(t, os.Chmod(file, 0o644)) }, ""},
		{"others can read the folder", func(t *testing.T, dir, _ string) { must(t, os.Chmod(dir, 0o755)) }, ""},
		{"others can write the file", func(t *testing.T, _, file string) { must(t, os.Chmod(file, 0o622)) }, "other users"},
		{"others can write the folder", func(t *testing.T, dir, _ string) { must(t, os.Chmod(dir, 0o777)) }, "other users"},
		{"a link", func(t *testing.T, dir, file string) {
			must(t, os.Rename(file, filepath.Join(dir, "real")))
			must(t, os.Symlink("real", file))
		}, "inspan did not write"},
		{"cut off", func(t *testing.T, _, file string) { must(t, os.Truncate(file, 20)) }, "damaged"},
		{"empty", func(t *testing.T, _, file string) { must(t, os.Truncate(file, 0)) }, "damaged"},
		{"of a later version", func(t *testing.T, _, file string) {
			must(t, os.WriteFile(file, []byte(`{"version":2,"name":"mcp:x","data":{}}`), 0o600))
		}, "another version"},
		{"of another account", func(t *testing.T, _, file string) {
			must(t, os.WriteFile(file, []byte(`{"version":1,"name":"mcp:y","data":{}}`), 0o600))
		}, "another account"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "oauth")
			c := &oauth.Client{Store: &oauth.File{Dir: dir}}
			kept := `{"name":"mcp:x","resource":"https://x.test","access":"a"}`
			must(t, c.Store.Set(t.Context(), name, []byte(kept)))
			files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
			tt.spoil(t, dir, files[0])
			_, err := access(t.Context(), c, oauth.Account{Name: name, Resource: "https://x.test"})
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if tt.want == "" {
				modes(t, dir)
			}
		})
	}
}

// TestLeftovers removes the files that a killed writer left behind.
func TestLeftovers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "oauth")
	s := &oauth.File{Dir: dir}
	must(t, s.Set(t.Context(), "x", []byte("1")))
	files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	must(t, os.WriteFile(files[0]+".new-KILLED", []byte("torn"), 0o600))
	if names, err := s.Names(t.Context()); err != nil || len(names) != 1 {
		t.Error(names, err)
	}
	must(t, s.Set(t.Context(), "x", []byte("2")))
	modes(t, dir)
}

// TestLogoutLeavesNothing of tokens, also where a writer was killed before it was done.
func TestLogoutLeavesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "oauth")
	s := &oauth.File{Dir: dir}
	c := &oauth.Client{Store: s}
	must(t, s.Set(t.Context(), "x", []byte(`{"name":"x"}`)))
	files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	for range 2 { // the second time the writer was the first of the account
		must(t, os.WriteFile(files[0]+".new-KILLED", []byte("tokens"), 0o600))
		must(t, c.Logout(t.Context(), "x"))
		if left, _ := filepath.Glob(filepath.Join(dir, "*.json*")); len(left) > 0 {
			t.Error(left)
		}
	}
}

// TestDamagedLogin asks for a person if the stored login makes no sense.
func TestDamagedLogin(t *testing.T) {
	c := newClient(t)
	for _, data := range []string{`7`, `{}`, `{"name":"other","access":"theirs"}`, `{"name":"mcp:x","access":5}`} {
		must(t, c.Store.Set(context.Background(), "mcp:x", []byte(data)))
		if _, err := access(t.Context(), c, oauth.Account{Name: "mcp:x"}); !errors.Is(err, oauth.ErrLogin) {
			t.Error(data, err)
		}
	}
}

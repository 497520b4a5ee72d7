//go:build unix

package files_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/inspan/inspan/tool"
)

const (
	aCert = "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUQ0FURUdPUlkxMjM0NTY3ODkwMAoGCCqGSM49BAMCMBYx\n-----END CERTIFICATE-----\n"
	aKey  = "-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgVcB2UcbPzPqVUWnW\n-----END PRIVATE KEY-----\n"
)

func putFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestFilesByContent has a repository try to pass a secret off for something
// public, and a machine make it hard to look.
func TestFilesByContent(t *testing.T) {
	env := guarded(t)
	in := func(name string) string { return filepath.Join(env.Root, name) }
	elsewhere := filepath.Join(t.TempDir(), ".ssh", "id_rsa")
	putFile(t, elsewhere, aKey)
	for name, text := range map[string]string{
		"ca.pem": aCert, "pair.pem": aCert + aKey, "late.pem": strings.Repeat(aCert, (1<<20)/len(aCert)) + aKey,
		"long.pem": strings.Repeat(aCert, 2*(1<<20)/len(aCert)), "key.pem": aKey, "empty.pem": "", ".env": "PORT=1\n",
	} {
		putFile(t, in(name), text)
	}
	if err := os.Truncate(in("long.pem"), 1<<30); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"cert.pem": elsewhere, "link.pem": "key.pem", "fine.pem": "ca.pem"} {
		if err := os.Symlink(to, in(name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(in("pipe.pem"), 0o644); err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{
		"ca.pem": true, "empty.pem": true, ".env": true, "fine.pem": true,
		"pair.pem": false, "late.pem": false, "long.pem": false, "key.pem": false, "cert.pem": false, "link.pem": false, "pipe.pem": false,
	}
	for name, open := range want {
		f, err := env.Files.Open(t.Context(), in(name))
		if err == nil {
			f.Close()
		}
		if open != (err == nil) || err != nil && !errors.Is(err, fs.ErrPermission) {
			t.Errorf("open %s: %v", name, err)
		}
	}
	for name, open := range want {
		if name == "fine.pem" || name == "link.pem" || name == "cert.pem" {
			continue
		}
		if err := env.Files.Change(t.Context(), tool.Change{Path: in(name), Data: []byte("new")}); open != (err == nil) {
			t.Errorf("change %s: %v", name, err)
		}
	}
	if err := env.Files.Change(t.Context(), tool.Change{Path: in("new/server.key"), Data: []byte(aKey), IfDigest: tool.NoFile}); err != nil {
		t.Error("a new file is an ordinary one: ", err)
	}
}

// TestLookIsWhatIsRead checks that text that gets into a file after its scan is not read.
func TestLookIsWhatIsRead(t *testing.T) {
	env := guarded(t)
	path := filepath.Join(env.Root, "ca.pem")
	putFile(t, path, aCert)
	f, err := env.Files.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	putFile(t, path, aCert+aKey)
	var copied strings.Builder
	if _, err := io.Copy(&copied, f); copied.String() != aCert || err != nil {
		t.Errorf("read %q, %v", copied.String(), err)
	}
	if _, err := env.Files.Open(t.Context(), path); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("opened by what was in it before: %v", err)
	}
}

// TestOwnFiles checks that a session may read and change its own files until someone else has written to them.
func TestOwnFiles(t *testing.T) {
	env := guarded(t)
	path := filepath.Join(env.Root, "server.key")
	change := func(text string) error {
		return env.Files.Change(t.Context(), tool.Change{Path: path, Data: []byte(text)})
	}
	for _, text := range []string{aKey, aKey + aKey} {
		if err := change(text); err != nil {
			t.Fatal(err)
		}
		if f, err := env.Files.Open(t.Context(), path); err != nil {
			t.Error(err)
		} else if data, err := io.ReadAll(f); string(data) != text || err != nil {
			t.Errorf("%q, %v", data, err)
		}
	}
	putFile(t, path, "the person's: "+aKey)
	if err := os.Chtimes(path, time.Time{}, time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := env.Files.Open(t.Context(), path); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("what somebody else wrote was read: %v", err)
	}
	if err := change("x"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("what somebody else wrote was changed: %v", err)
	}
}

// TestOpened checks that an approval opens single files that are secret only by name, and with All everything except
// inspan's own files and places closed by rules.
func TestOpened(t *testing.T) {
	env := guarded(t)
	in := func(name string) string { return filepath.Join(env.Root, name) }
	for _, name := range []string{".env", "other.key", ".ssh/id_rsa", ".git/config"} {
		putFile(t, in(name), aKey)
	}
	for _, tc := range []struct {
		pass         tool.Pass
		read, change []string
	}{
		{tool.Pass{}, []string{".git/config"}, nil},
		{tool.Pass{Read: []string{in(".env"), in(".ssh/id_rsa")}}, []string{".env", ".git/config"}, nil},
		{tool.Pass{Write: []string{in(".env"), in(".git/config")}}, []string{".env", ".git/config"}, []string{".env"}},
		{
			tool.Pass{All: true},
			[]string{".env", ".git/config", ".ssh/id_rsa", "other.key"},
			[]string{".env", ".git/config", ".ssh/id_rsa", "other.key"},
		},
	} {
		files := env.Files.(interface{ Opened(p tool.Pass) tool.Files }).Opened(tc.pass)
		for _, name := range []string{".env", ".git/config", ".ssh/id_rsa", "other.key"} {
			f, err := files.Open(t.Context(), in(name))
			if err == nil {
				f.Close()
			}
			if slices.Contains(tc.read, name) != (err == nil) {
				t.Errorf("%+v: open %s: %v", tc.pass, name, err)
			}
			if err := files.Change(t.Context(), tool.Change{Path: in(name), Data: []byte(aKey)}); slices.Contains(tc.change, name) != (err == nil) {
				t.Errorf("%+v: change %s: %v", tc.pass, name, err)
			}
			putFile(t, in(name), aKey+"again")
			putFile(t, in(name), aKey)
		}
	}
}

package permission

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/kernel/redact"
	"github.com/inspan/inspan/internal/safety/secret"
)

// leastKey is the minimum length of a key for placeholders, in bytes.
const leastKey = 16

// PlaceholderKey returns the key for the placeholders of this user's secrets, see [inspan.Agent]. It is stored
// in the state folder, which no tool reads, and created on first use. If several processes create it at once,
// one of them wins.
func (s *Set) PlaceholderKey() ([]byte, error) {
	path := filepath.Join(s.StateDir, "placeholder.key")
	key, err := readKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if err := keep.MakeDir(s.StateDir); err != nil {
		return nil, err
	}
	made := path + "-" + rand.Text()
	if err := keep.Write(made, []byte(rand.Text()+rand.Text()+"\n")); err != nil {
		return nil, err
	}
	defer os.Remove(made)
	if err := os.Link(made, path); err != nil && !errors.Is(err, fs.ErrExist) {
		if err := os.Rename(made, path); err != nil { // the file system has no hard links
			return nil, err
		}
	}
	return readKey(path)
}

// Redacted returns a body without this user's secrets, for the log of a session that another process drives.
// That process can't resolve placeholders of secrets that it has not seen itself, such as a token that only
// appears in the body.
func (s *Set) Redacted(body event.Body) event.Body {
	return redact.MapText(body, s.vault().Redact)
}

// Clean is [tool.Env.Clean] for use before a session exists, as Redacted is for bodies.
func (s *Set) Clean(r io.Reader) io.Reader {
	raw, err := io.ReadAll(r)
	if err != nil {
		failed, to := io.Pipe()
		_ = to.CloseWithError(err)
		return failed
	}
	return strings.NewReader(s.vault().Redact(string(raw)))
}

// vault returns a vault with this user's secrets.
func (s *Set) vault() *secret.Vault {
	key, err := s.PlaceholderKey()
	if err != nil {
		key = []byte(rand.Text())
	}
	vault, known := &secret.Vault{Key: key}, s.secrets()
	for _, name := range slices.Sorted(maps.Keys(known)) {
		vault.Add(name, known[name])
	}
	return vault
}

// readKey reads a key. One that is too short is an error: the file was truncated or emptied.
func readKey(path string) ([]byte, error) {
	raw, err := keep.Read(path)
	if err != nil {
		return nil, err
	}
	key := bytes.TrimSpace(raw)
	if len(key) < leastKey {
		short := errors.New("it is too short; remove the file, and inspan makes a new key")
		return nil, &fs.PathError{Op: "read the key for placeholders in", Path: path, Err: short}
	}
	return key, nil
}

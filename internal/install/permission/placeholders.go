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
	"github.com/inspan/inspan/internal/safety/secret"
)

// leastKey is how many bytes a key for placeholders has at least.
const leastKey = 16

// PlaceholderKey is what the placeholders of this user's secrets are made with, see
// [inspan.Agent]. It lies in a file of the state folder, which no tool reads, and is made when it
// is first needed. Of processes that make it at the same time, one does.
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
		if err := os.Rename(made, path); err != nil { // there are no hard links here
			return nil, err
		}
	}
	return readKey(path)
}

// Redacted is a body without the secrets of this user, for the log of a session that another
// process drives. What that process has not seen itself, such as a token that stands in the body
// alone, its placeholder does not stand for there.
func (s *Set) Redacted(body event.Body) event.Body {
	return event.MapText(body, s.vault().Redact)
}

// Clean is [tool.Env.Clean] before there is a session, as Redacted is for bodies.
func (s *Set) Clean(r io.Reader) io.Reader {
	raw, err := io.ReadAll(r)
	if err != nil {
		failed, to := io.Pipe()
		_ = to.CloseWithError(err)
		return failed
	}
	return strings.NewReader(s.vault().Redact(string(raw)))
}

// vault knows the secrets of this user.
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

// readKey reads a key. What is too short to be one is not: it was cut off or emptied.
func readKey(path string) ([]byte, error) {
	raw, err := keep.Read(path)
	if err != nil {
		return nil, err
	}
	key := bytes.TrimSpace(raw)
	if len(key) < leastKey {
		short := errors.New("it is too short; remove the file, and a new key is made")
		return nil, &fs.PathError{Op: "read the key for placeholders in", Path: path, Err: short}
	}
	return key, nil
}

package oauth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/inspan/inspan/internal/base/keep"
)

// ErrSealed says that stored data can't be decrypted: its key is in a keychain that does not release it here.
var ErrSealed = errors.New("it is sealed with a key of the keychain")

// Store keeps a small secret text for each account. It is safe for concurrent use, even by several processes; a
// caller that changes an account holds its lock.
type Store interface {
	// Get returns the data of an account and, for people, where it is stored. The error is fs.ErrNotExist if
	// there is none, ErrSealed if it can't be decrypted here.
	Get(ctx context.Context, name string) (data []byte, where string, err error)
	// Set stores data atomically. It is on the disk when Set returns.
	Set(ctx context.Context, name string, data []byte) error
	// Delete deletes an account. It is no error if there is none.
	Delete(ctx context.Context, name string) error
	// Names lists the accounts, in any order.
	Names(ctx context.Context) ([]string, error)
	// Locks is a folder for locks, on a disk of this machine.
	Locks() string
}

var _, _ Store = (*File)(nil), (*Keychain)(nil)

// File is a [Store] with one file for each account that only this user can read.
type File struct {
	// Dir is a folder that no tool can reach. It is created when first needed.
	Dir string
}

const (
	version = 1
	maxFile = 4 << 20
	ending  = ".json"
)

// envelope is the form of a file. It has either Data or Sealed.
type envelope struct {
	Version int             `json:"version"`
	Name    string          `json:"name"`
	Data    json.RawMessage `json:"data,omitempty"`
	Sealed  []byte          `json:"sealed,omitempty"`
}

// digest makes a file name of any name.
func digest(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:16])
}

func (s *File) path(name string) string { return filepath.Join(s.Dir, digest(name)+ending) }

// Locks implements [Store].
func (s *File) Locks() string { return filepath.Join(s.Dir, "locks") }

// Get implements [Store].
func (s *File) Get(_ context.Context, name string) (data []byte, where string, err error) {
	e, err := s.read(s.path(name))
	switch {
	case err != nil:
		return nil, "", err
	case e.Name != name:
		return nil, "", fmt.Errorf("%s belongs to another account", s.path(name))
	case len(e.Sealed) > 0:
		return nil, "", ErrSealed
	}
	return e.Data, s.path(name), nil
}

// Set implements [Store]. The data is a JSON value.
func (s *File) Set(_ context.Context, name string, data []byte) error {
	return s.write(envelope{Version: version, Name: name, Data: data})
}

// Delete implements [Store].
func (s *File) Delete(_ context.Context, name string) error {
	keep.Sweep(s.path(name))
	if err := keep.Remove(s.path(name)); err != nil {
		return fmt.Errorf("forget %s: %w", name, err)
	}
	return nil
}

// Names implements [Store]. It leaves out damaged files.
func (s *File) Names(context.Context) ([]string, error) {
	entries, err := os.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var out []string
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ending) {
			continue
		}
		e, err := s.read(filepath.Join(s.Dir, entry.Name()))
		if err == nil && digest(e.Name)+ending == entry.Name() {
			out = append(out, e.Name)
		}
	}
	return out, err
}

// read reads a file that belongs to this user alone.
func (s *File) read(path string) (envelope, error) {
	if s.Dir == "" {
		return envelope{}, errors.New("oauth: the store has no folder")
	}
	if err := checkMine(s.Dir, fs.ModeDir); err != nil {
		return envelope{}, err
	}
	if err := checkMine(path, 0); err != nil {
		return envelope{}, err
	}
	f, err := os.Open(path)
	if err != nil {
		return envelope{}, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return envelope{}, err
	}
	var e envelope
	if err := json.Unmarshal(data, &e); err != nil {
		return envelope{}, fmt.Errorf("%s is damaged: remove it and log in again", path)
	}
	if e.Version != version {
		return envelope{}, fmt.Errorf("%s was written by another version of inspan; use that, or remove it and log in again", path)
	}
	return e, nil
}

// checkMine refuses a path of the wrong type or that others can change, and removes others' permission to read
// it.
func checkMine(path string, want fs.FileMode) error {
	info, err := os.Lstat(path)
	if err == nil && want == fs.ModeDir && info.Mode()&fs.ModeSymlink != 0 {
		info, err = os.Stat(path) // the folder may be elsewhere
	}
	switch {
	case err != nil:
		return err
	case info.Mode().Type() != want:
		return fmt.Errorf("inspan did not write %s: look at it, then remove it", path)
	case runtime.GOOS == "windows" || info.Mode().Perm()&0o077 == 0:
		return nil
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("%s can be changed by other users: remove it, and log in again", path)
	}
	if err := os.Chmod(path, info.Mode().Perm()&0o700); err != nil {
		return fmt.Errorf("other users can read tokens, and that can't be changed: %w", err)
	}
	return nil
}

// write replaces a file as a whole.
func (s *File) write(e envelope) error {
	if s.Dir == "" {
		return errors.New("oauth: the store has no folder")
	}
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if len(data) > maxFile {
		return errors.New("it is too big")
	}
	if err := makeDir(s.Dir); err != nil {
		return err
	}
	if err := checkMine(s.Dir, fs.ModeDir); err != nil {
		return err
	}
	// The caller holds the account's lock, so no other process is writing here.
	keep.Sweep(s.path(e.Name))
	return keep.Write(s.path(e.Name), data)
}

// makeDir makes a folder for this user alone.
func makeDir(dir string) error {
	if err := keep.MakeDir(dir); err != nil {
		return fmt.Errorf("make the folder for tokens: %w", err)
	}
	return nil
}

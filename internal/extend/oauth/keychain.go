package oauth

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/zalando/go-keyring"

	"github.com/inspan/inspan/internal/base/keep"
)

// Keychain is a [Store] of files encrypted with a key in the operating system's keychain. The keychain does not
// hold the tokens themselves: macOS limits entries to about 3 KB and Windows to 2.5, less than many servers'
// tokens, and replacing an entry is not atomic.
//
// Without a keychain, or if it does not answer, files are written like those of [File], and Get says so.
// Encrypted files stay so until a login replaces them. All fields but Dir are optional. A Keychain must not be
// copied after first use.
type Keychain struct {
	// Dir is as in [File].
	Dir string
	// Wait is how long the keychain may take to answer, such as while a person unlocks it. It is asked once; if it
	// does not answer, it is not asked again. 0 means 2 s.
	Wait time.Duration

	mu    sync.Mutex
	known []byte // the key
	gone  error  // why there is none
}

const keyBytes = 32

var errNoKey = errors.New("the keychain has no key")

func (s *Keychain) file() *File { return &File{s.Dir} }

// Locks implements [Store].
func (s *Keychain) Locks() string { return s.file().Locks() }

// Names implements [Store].
func (s *Keychain) Names(ctx context.Context) ([]string, error) { return s.file().Names(ctx) }

// Has reports whether an account is stored. It does not ask the keychain.
func (s *Keychain) Has(name string) bool {
	_, err := os.Lstat(s.file().path(name))
	return err == nil
}

// Delete implements [Store].
func (s *Keychain) Delete(ctx context.Context, name string) error {
	return s.file().Delete(ctx, name)
}

// Get implements [Store].
func (s *Keychain) Get(ctx context.Context, name string) (data []byte, where string, err error) {
	data, where, err = s.file().Get(ctx, name)
	if !errors.Is(err, ErrSealed) {
		return data, where, err
	}
	e, err := s.file().read(s.file().path(name))
	if err != nil {
		return nil, "", err
	}
	key, err := s.key(ctx, false)
	if err != nil {
		return nil, "", fmt.Errorf("%w, which is unavailable here (%w)", ErrSealed, err)
	}
	data, err = open(key, e.Sealed, name)
	if err != nil {
		return nil, "", fmt.Errorf("%w, which is not the current key", ErrSealed)
	}
	return data, "the keychain", nil
}

// Set implements [Store].
func (s *Keychain) Set(ctx context.Context, name string, data []byte) error {
	key, err := s.key(ctx, true)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return s.file().Set(ctx, name, data)
	}
	sealed, err := seal(key, data, name)
	if err != nil {
		return err
	}
	return s.file().write(envelope{Version: version, Name: name, Sealed: sealed})
}

// key asks the keychain for the key, once, and creates one if wanted.
func (s *Keychain) key(ctx context.Context, wanted bool) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known != nil || s.gone != nil && (!wanted || !errors.Is(s.gone, errNoKey)) {
		return s.known, s.gone
	}
	key, err := s.ask(ctx)
	if wanted && errors.Is(err, errNoKey) {
		key, err = s.create(ctx)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err() // that says nothing of the keychain
	}
	s.known, s.gone = key, err
	return key, err
}

// ask reads the key.
func (s *Keychain) ask(ctx context.Context) ([]byte, error) {
	if err := bus(); err != nil {
		return nil, err
	}
	text, err := s.within(ctx, func() (string, error) { return keyring.Get(service, s.user()) })
	if errors.Is(err, keyring.ErrNotFound) {
		return nil, errNoKey
	}
	if err != nil {
		return nil, err
	}
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(key) != keyBytes {
		return nil, errNoKey
	}
	return key, nil
}

// create adds a key to the keychain, unless another process has just done so.
func (s *Keychain) create(ctx context.Context) ([]byte, error) {
	if err := makeDir(s.Locks()); err != nil {
		return nil, err
	}
	l, err := keep.LockFile(ctx, filepath.Join(s.Locks(), "key.lock"), 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = l.Close() }()
	if key, err := s.ask(ctx); !errors.Is(err, errNoKey) {
		return key, err
	}
	key := make([]byte, keyBytes)
	_, _ = rand.Read(key) // never fails
	text := base64.StdEncoding.EncodeToString(key)
	if _, err := s.within(ctx, func() (string, error) { return "", keyring.Set(service, s.user(), text) }); err != nil {
		return nil, err
	}
	return s.ask(ctx) // what can't be read back must seal nothing
}

// service is the name of the key in the keychain.
const service = "inspan"

// user distinguishes the keys of several folders.
func (s *Keychain) user() string { return "tokens " + digest(s.Dir) }

// within waits for the keychain for a limited time. The library can't be interrupted, so a call that never ends
// is abandoned, at most one or two in a process.
func (s *Keychain) within(ctx context.Context, call func() (string, error)) (string, error) {
	wait := s.Wait
	if wait <= 0 {
		wait = 2 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	type result struct {
		text string
		err  error
	}
	done := make(chan result, 1)
	go func() {
		text, err := call()
		done <- result{text, err}
	}()
	select {
	case r := <-done:
		return r.text, r.err
	case <-ctx.Done():
		return "", errors.New("the keychain does not answer")
	}
}

// bus gives the reason why there is no keychain, if that is known without asking. Asking would start a private bus.
func bus() error {
	switch runtime.GOOS {
	case "darwin", "windows":
		return nil
	}
	if at := os.Getenv("DBUS_SESSION_BUS_ADDRESS"); at != "" && !strings.HasPrefix(at, "autolaunch:") {
		return nil
	}
	for _, name := range []string{"bus", "dbus-session"} {
		if _, err := os.Stat(fmt.Sprintf("/run/user/%d/%s", os.Getuid(), name)); err == nil {
			return nil
		}
	}
	return errors.New("no session bus is running")
}

func gcm(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// seal encrypts data for the account with that name.
func seal(key, data []byte, name string) ([]byte, error) {
	box, err := gcm(key)
	if err != nil {
		return nil, err
	}
	return box.Seal(nil, nil, data, []byte(name)), nil
}

func open(key, sealed []byte, name string) ([]byte, error) {
	box, err := gcm(key)
	if err != nil {
		return nil, err
	}
	return box.Open(nil, nil, sealed, []byte(name))
}

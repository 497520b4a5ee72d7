package netguard

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

const (
	tokenBytes = 32      // 256 bits
	leastToken = 32      // characters of a chosen token
	mostToken  = 4 << 10 // bytes of a token file
)

// NewToken returns a token of 256 random bits.
func NewToken() string {
	raw := make([]byte, tokenBytes)
	_, _ = rand.Read(raw) // never fails
	return base64.RawURLEncoding.EncodeToString(raw)
}

// Token returns the token in a file, and creates the file with a new one if it is missing. Concurrent calls get
// the same token. It is an error if others than the owner may read the file, or if its content can't be a
// secret.
func Token(path string) (string, error) {
	token, err := KnownToken(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = makeToken(path); err == nil || errors.Is(err, fs.ErrExist) {
			return KnownToken(path)
		}
		err = fmt.Errorf("token: %w", err)
	}
	return token, err
}

// KnownToken is like [Token], but fails with [fs.ErrNotExist] if the file is missing.
func KnownToken(path string) (string, error) {
	token, err := readToken(path)
	if err != nil {
		return "", fmt.Errorf("token: %w", err)
	}
	return token, nil
}

func readToken(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a file", path)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("%s can be read by others; make it private with: chmod 600 %[1]s", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, mostToken))
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(raw))
	return token, CheckToken(token)
}

// CheckToken returns the reason why a chosen token is not acceptable.
func CheckToken(token string) error {
	if len(token) < leastToken {
		return fmt.Errorf("it has %d characters; it needs %d or more that can't be guessed", len(token), leastToken)
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return errors.New("it holds blanks or characters that no header can carry")
	}
	return nil
}

// makeToken creates the file atomically, and never overwrites one.
func makeToken(path string) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".token-*") // 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = io.WriteString(f, NewToken()+"\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Link(f.Name(), path)
}

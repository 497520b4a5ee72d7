package providers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/world/sandbox"
)

// keyTimeout bounds a key command; a person may have to touch a device.
const keyTimeout = 30 * time.Second

// Keys are the stored keys of a person, by the name of a provider.
type Keys interface {
	// HasKey reports whether a key is stored. It doesn't query a keychain.
	HasKey(provider string) bool
	// Key returns the key, and where it is stored, for people.
	Key(ctx context.Context, provider string) (key, where string, err error)
}

// key returns a function that returns the provider's key, nil if it has none.
func (s *Set) key(name string, p config.Provider) func(context.Context) (string, error) {
	switch {
	case p.OAuth != nil:
		return func(ctx context.Context) (string, error) { return s.Token(ctx, name, *p.OAuth) }
	case p.KeyCommand != "":
		return func(ctx context.Context) (string, error) {
			ctx, cancel := context.WithTimeout(ctx, keyTimeout)
			defer cancel()
			key, err := runKeyCommand(ctx, p.KeyCommand)
			if key != "" {
				s.Note("the key of "+name, key)
			}
			return key, err
		}
	case p.KeyEnv != "":
		return func(ctx context.Context) (string, error) { return s.ownKey(ctx, name, p.KeyEnv) }
	}
	return nil
}

// ownKey returns the key in a variable, otherwise the stored one.
func (s *Set) ownKey(ctx context.Context, name, variable string) (string, error) {
	if key := os.Getenv(variable); key != "" {
		return key, nil
	}
	if !s.keeps(name) {
		return "", errors.New(variable + " is not set")
	}
	key, _, err := s.Keys.Key(ctx, name)
	if key != "" {
		s.Note("the key of "+name, key)
	}
	return key, err
}

// keeps reports whether inspan stores a key for a provider.
func (s *Set) keeps(name string) bool { return s.Keys != nil && s.Keys.HasKey(name) }

// Source returns where the key of a provider comes from: its variable, or where inspan stores it. Empty means there
// is none, or it comes from a command or a login.
func (s *Set) Source(p Provider) string {
	switch {
	case p.KeyEnv == "" || p.KeyCommand != "" || p.OAuth != nil:
	case os.Getenv(p.KeyEnv) != "":
		return p.KeyEnv
	case s.keeps(p.Name):
		if _, where, err := s.Keys.Key(context.Background(), p.Name); err == nil {
			return where
		}
		return "inspan's own store"
	}
	return ""
}

// ready reports whether the provider has a key or needs none, and otherwise what is missing.
func (s *Set) ready(name string, p config.Provider) (ok bool, need string) {
	switch {
	case p.KeyCommand != "", p.KeyEnv == "", os.Getenv(p.KeyEnv) != "", s.keeps(name):
		return true, ""
	}
	return false, "set " + p.KeyEnv
}

// runKeyCommand returns the output of the command.
func runKeyCommand(ctx context.Context, command string) (string, error) {
	key, err := sandbox.Output(ctx, os.Environ(), "sh", "-c", command)
	if err != nil {
		return "", fmt.Errorf("key_command: %w", err)
	}
	return key, nil
}

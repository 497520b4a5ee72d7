package app

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/internal/kernel/session"
	"github.com/inspan/inspan/store"
)

// StoreVariable holds the URL of a shared store if no flag sets it. It may contain a password, so [Shared.Open]
// removes it from the environment: agents' commands don't get it.
const StoreVariable = config.StoreVariable

// Shared connects to stores and engines that several machines share. The zero value opens folders only;
// binaries with drivers set the fields.
type Shared struct {
	// Store opens a store by a URL with a scheme.
	Store func(ctx context.Context, url string) (SharedStore, error)
	// Engine connects to the engine that decides which machine drives a session of a store. Without a URL it
	// returns the store's own, or nil if the store has none.
	Engine func(ctx context.Context, url string, s store.Store) (Engine, error)
}

// SharedStore is a store that is closed after use.
type SharedStore interface {
	store.Store
	io.Closer
}

// Engine decides which machine drives a session.
type Engine = running.Engine

// StoreOf returns the store that the flag or the environment names; empty means neither does.
func StoreOf(flag string) string { return cmp.Or(flag, os.Getenv(StoreVariable)) }

// Open opens a store: a URL, or a folder of sessions. Name is for display, without a password.
func (s Shared) Open(ctx context.Context, where string) (opened SharedStore, name string, err error) {
	if err := os.Unsetenv(StoreVariable); err != nil {
		return nil, "", err
	}
	scheme, _, isURL := strings.Cut(where, "://")
	switch {
	case where == "":
		return nil, "", misused("--store is missing: a folder of sessions, or postgres://...; put a URL with a password into %s", StoreVariable)
	case !isURL && strings.Contains(where, "="): // libpq keywords, perhaps with a password
		return nil, "", misused("--store: write a database as a URL, postgres://user:password@host:5432/name")
	case !isURL:
		dir, err := filepath.Abs(where)
		return folder{&session.Store{Dir: dir}}, dir, err
	case s.Store == nil:
		return nil, "", misused("--store: this build of inspan has no driver for %s://; %s has", scheme, FullBuild)
	}
	opened, err = s.Store(ctx, where)
	return opened, redacted(where), err
}

// FullBuild describes the build of inspan that links all drivers.
const FullBuild = "the one built from engine/temporal/cmd/inspan"

// folder is a store with nothing to close.
type folder struct{ *session.Store }

func (folder) Close() error { return nil }

// redacted returns a URL without its password and its parameters, which may contain one too.
func redacted(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		scheme, _, _ := strings.Cut(raw, "://")
		return scheme + "://..."
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// Connect connects to the engine at a URL. Without one it returns the engine of the store, which is nil if it has none.
func (s Shared) Connect(ctx context.Context, url string, of store.Store) (Engine, error) {
	if s.Engine == nil && url == "" {
		return nil, nil
	}
	if s.Engine == nil {
		return nil, misused("--engine: this build of inspan has no engines; %s has", FullBuild)
	}
	return s.Engine(ctx, url, of)
}

// Move moves the session that a person names to another store, with its subagents, and returns their ids, the
// session's last. Free returns an error if the session can't be removed now. It is removed from the first store
// once the second one has the same bytes, unless stays is set.
func Move(
	ctx context.Context, from, to store.Store, named string, stays bool, free func(context.Context, store.Store, string) error,
) ([]string, error) {
	id, err := store.Resolve(ctx, from, named)
	if err == nil && !stays {
		err = free(ctx, from, id)
	}
	if err != nil {
		return nil, err
	}
	moved, err := store.Copy(ctx, from, to, id)
	if err != nil || stays {
		return moved, err
	}
	if err := from.Remove(ctx, id); err != nil {
		return moved, fmt.Errorf("it was copied, but the original was not removed: %w", err)
	}
	return moved, nil
}

// Use makes an app store the sessions that it drives from now on in a shared store; nil means in the folder of this
// machine, as before.
func Use(a *App, s store.Store) {
	if s != nil {
		a.Running.Sessions, a.Rewind.Sessions = s, s
	}
}

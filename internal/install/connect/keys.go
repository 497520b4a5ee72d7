package connect

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/install/config"
)

// keyName returns the name of a provider's stored key.
func keyName(provider string) string { return "key:" + provider }

// HasKey implements [providers.Keys].
func (l *Logins) HasKey(provider string) bool { return l.tokens().Has(keyName(provider)) }

// Key implements [providers.Keys]. Where is "the keychain" or the path of a file that only this
// user can read.
func (l *Logins) Key(ctx context.Context, provider string) (key, where string, err error) {
	data, where, err := l.tokens().Get(ctx, keyName(provider))
	if err == nil {
		err = json.Unmarshal(data, &key)
	}
	if err != nil {
		return "", "", config.Error{Err: fmt.Errorf("can't read the stored key of %s: %w; 'inspan setup' stores it again", provider, err)}
	}
	return key, where, nil
}

// KeepKey stores the key of a provider, in the system's keychain if it responds, otherwise in a file that only
// this user can read. It returns where.
func (l *Logins) KeepKey(ctx context.Context, provider, key string) (where string, err error) {
	l.Note("the key of "+provider, key)
	data, err := json.Marshal(key)
	if err != nil {
		return "", err
	}
	unlock, err := l.lockKeys(ctx)
	if err != nil {
		return "", err
	}
	defer unlock()
	if err := l.tokens().Set(ctx, keyName(provider), data); err != nil {
		return "", err
	}
	_, where, err = l.tokens().Get(ctx, keyName(provider))
	return where, err
}

// ForgetKey deletes the stored key of a provider. It is not an error if there is none.
func (l *Logins) ForgetKey(ctx context.Context, provider string) error {
	unlock, err := l.lockKeys(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return l.tokens().Delete(ctx, keyName(provider))
}

func (l *Logins) lockKeys(ctx context.Context) (unlock func(), err error) {
	dir := l.tokens().Locks()
	if err := keep.MakeDir(dir); err != nil {
		return nil, err
	}
	lock, err := keep.LockFile(ctx, filepath.Join(dir, "keys.lock"), keep.Patience)
	if err != nil {
		return nil, err
	}
	return func() { _ = lock.Close() }, nil
}

package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
)

// Logout revokes the tokens of an account at the server, if it supports that (RFC 7009), and deletes them. They
// are deleted even if the server could not be asked, and then the error says so. If nothing is stored there is
// no error.
func (c *Client) Logout(ctx context.Context, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	unlock, err := c.lock(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	data, _, err := c.Store.Get(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		return c.Store.Delete(ctx, name) // what a writer that was killed left of it
	}
	if err == nil {
		err = c.revoke(ctx, data)
	}
	if gone := c.Store.Delete(ctx, name); gone != nil {
		return errors.Join(gone, err)
	}
	if err != nil {
		return fmt.Errorf("the login of %s was removed here, but the server may still accept its tokens: %w", name, err)
	}
	return nil
}

// revoke first revokes the token that could be used to request new ones.
func (c *Client) revoke(ctx context.Context, data []byte) error {
	var k kept
	if err := json.Unmarshal(data, &k); err != nil {
		return errors.New("the stored login was damaged")
	}
	if k.Endpoints.Revoke == "" {
		return nil
	}
	w, err := c.wire(k.account().local())
	if err != nil {
		return err
	}
	w.hide = []string{k.Access, k.Refresh}
	tokens := []struct{ kind, token string }{{"refresh_token", k.Refresh}, {"access_token", k.Access}}
	for _, t := range tokens {
		if t.token == "" {
			continue
		}
		_, failed := w.form(ctx, k.Endpoints.Revoke, k.Client, nil, url.Values{"token": {t.token}, "token_type_hint": {t.kind}})
		// A page instead of an empty body does not matter; neither does a kind of token that expires by itself.
		if !errors.Is(failed, errUnreadable) && !refused(failed, "unsupported_token_type") {
			err = errors.Join(err, failed)
		}
	}
	return err
}

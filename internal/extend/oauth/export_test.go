package oauth

import (
	"context"
	"errors"
	"io/fs"
	"slices"
)

// StepUp reports whether the WWW-Authenticate header of a 403 asks for a login with more scopes. A login does
// not help with any other 403.
func StepUp(header string) bool { return parseChallenge(header).stepUp() }

// Accounts lists the stored accounts, by name.
func (c *Client) Accounts(ctx context.Context) ([]Info, error) {
	if c.Store == nil {
		return nil, errors.New("oauth: no store is set")
	}
	names, err := c.Store.Names(ctx)
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var out []Info
	for _, name := range names {
		info, err := c.info(ctx, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // gone since
		}
		if err != nil {
			info = Info{Name: name, Problem: err.Error()}
		}
		out = append(out, info)
	}
	return out, nil
}

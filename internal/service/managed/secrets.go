package managed

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/extend/mcp"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/service/server"
)

// secrets gives sessions the secrets of clients: tokens of repositories and credentials. The server stores them
// by the names of their owners.
type secrets struct{ s *server.Server }

// sweep removes secrets without an owner, which a crash has left.
func (k *secrets) sweep(ctx context.Context) error {
	v, used := k.s.Self(ctx), map[string]bool{}
	for _, s := range entries[keptSession](v.Objects, ofSession) {
		for _, r := range s.kept.Resources {
			used[r.secretName()] = r.Secret
		}
	}
	for _, o := range v.Objects(ofVault) {
		for _, c := range entries[keptCredential](v.Objects, ofCredential(o.ID)) {
			if !c.kept.isArchived() {
				used[secretOfCredential+c.kept.Secret] = true
			}
		}
	}
	return k.s.SweepSecrets(ctx, func(name string) bool {
		mine := strings.HasPrefix(name, secretOfResource) || strings.HasPrefix(name, secretOfCredential)
		return mine && !used[name]
	})
}

// tend finishes the work of a server that ended: it removes tokens that are no longer needed.
func (k *secrets) tend() {
	ctx := context.Background() // before a request makes one without an owner yet
	if err := k.sweep(ctx); err != nil && k.s.Warn != nil {
		k.s.Warn("can't remove unused secrets: " + err.Error())
	}
	for _, s := range entries[keptSession](k.s.Self(ctx).Objects, ofSession) {
		k.settle(s.ID, s.kept.Resources)
	}
}

// settle removes the tokens of a session when they are no longer needed: at once if they belong to no resource,
// because its request was refused or repeated.
func (k *secrets) settle(session string, list []resource) {
	list = slices.DeleteFunc(slices.Clone(list), func(r resource) bool { return !r.Secret })
	if len(list) == 0 {
		return
	}
	s, _, err := sessionOf(k.s.Self(context.Background()), session)
	for _, r := range list {
		if err == nil && !slices.ContainsFunc(s.Resources, func(o resource) bool { return o.ID == r.ID }) {
			k.s.ForgetSecret(r.secretName())
		}
	}
	k.s.Go(func(ctx context.Context) { k.forgetTokens(ctx, session) })
}

// authorize gives the MCP servers of a session the tokens from its vaults. If two vaults have one, the first
// counts. An expired token is not sent, except one that is refreshed.
func (k *secrets) authorize(v *server.Visit, task string, vaults []string, o *app.Options) error {
	for i, s := range o.Servers {
		if s.Source != mcp.Client || s.Headers != nil {
			continue
		}
		vault, id, found := credentialFor(v, vaults, s.URL)
		if id == "" {
			continue
		}
		auth := &renewal{s: k.s, task: task, vault: vault, cred: id}
		if found.Refresh != nil {
			o.Servers[i].Auth = auth
			continue
		}
		token := ""
		if err := v.Secret(v, secretOfCredential+found.Secret, &token); err != nil {
			if errors.Is(err, fs.ErrNotExist) { // it was archived meanwhile
				continue
			}
			return fmt.Errorf("the token for the MCP server %s can't be read: %w", s.Name, err)
		}
		o.Servers[i].Auth, o.Servers[i].Headers = auth, map[string]string{"Authorization": "Bearer " + token}
	}
	return nil
}

// variables gives the commands of a session the variables from its vaults. If two vaults have one, the first
// counts.
func (k *secrets) variables(v *server.Visit, vaults []string, o *app.Options) error {
	seen := map[string]bool{}
	for _, vault := range vaults {
		for _, c := range entries[keptCredential](v.Objects, ofCredential(vault)) {
			found := c.kept
			if found.Variable == nil || found.isArchived() || seen[found.Variable.Name] {
				continue
			}
			value := ""
			if err := v.Secret(v, secretOfCredential+found.Secret, &value); err != nil {
				if errors.Is(err, fs.ErrNotExist) { // it was archived meanwhile
					continue
				}
				return fmt.Errorf("the secret %s can't be read: %w", found.Variable.Name, err)
			}
			seen[found.Variable.Name] = true
			o.Variables = append(o.Variables, found.Variable.inCommands(c.ID, value))
		}
	}
	return nil
}

// credentialFor returns the credential from vaults for a server. Without an id there is none.
func credentialFor(v *server.Visit, vaults []string, address string) (vault, id string, found keptCredential) {
	for _, vault := range vaults {
		for _, e := range entries[keptCredential](v.Objects, ofCredential(vault)) {
			k := e.kept
			if !k.isArchived() && k.Variable == nil && sameServer(k.Server, address) &&
				(k.Refresh != nil || k.Expires.IsZero() || time.Now().Before(k.Expires)) {
				return vault, e.ID, k
			}
		}
	}
	return "", "", found
}

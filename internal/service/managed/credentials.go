package managed

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/extend/oauth"
	"github.com/inspan/inspan/internal/service/server"
)

const (
	secretOfCredential = "credential/"
	staticBearer       = "static_bearer"
	mcpOAuth           = "mcp_oauth"
	mostCredentials    = 20 // of a vault, without archived ones
	mostToken          = 16 << 10
)

// ofCredential returns the kind of the credentials of a vault.
func ofCredential(vault string) string { return "managed.credential:" + vault }

func credentialEndpoints() []endpoint {
	const all, one = "vaults/{vault}/credentials", "vaults/{vault}/credentials/{id}"
	return []endpoint{
		post(all, reading((*door).makeCredential)),
		get(all, (*door).credentials, "limit", "page", "include_archived"),
		get(one, func(d *door) (any, error) {
			vault, err := d.vaultAt()
			if err != nil {
				return nil, err
			}
			return d.shownCredential(vault, d.r.PathValue("id"))
		}),
		post(one, reading((*door).updateCredential)),
		act(one+"/archive", func(d *door) (any, error) { return d.endCredential(false) }),
		del(one, func(d *door) (any, error) { return d.endCredential(true) }),
	}
}

// keptCredential is a credential in the book, without its secret.
type keptCredential struct {
	dates

	Name     string            `json:"name,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"`
	Type     string            `json:"type"`
	Server   string            `json:"server"`
	Secret   string            `json:"secret"` // name of the secret
	Expires  time.Time         `json:"expires,omitzero"`
	Refresh  *refresh          `json:"refresh,omitempty"`  // nil: only its clients replace the token
	Variable *variable         `json:"variable,omitempty"` // of commands; nil: it is for an MCP server
	Failed   time.Time         `json:"failed,omitzero"`    // since when refreshing fails
}

// credentialFields are the fields of a request about a credential.
type credentialFields struct {
	Name     opt[string]             `json:"display_name"`
	Metadata opt[map[string]*string] `json:"metadata"`
	Auth     json.RawMessage         `json:"auth"`
}

// shown returns a credential as clients see it.
func (k keptCredential) shown(vault string, o server.Object) map[string]any {
	auth := map[string]any{"type": k.Type, "mcp_server_url": k.Server}
	if k.Type == mcpOAuth {
		auth["expires_at"], auth["refresh"] = when(k.Expires), k.Refresh.shown()
	}
	if k.Variable != nil {
		auth = k.Variable.shown()
	}
	metadata := k.Metadata
	if metadata == nil {
		metadata = map[string]string{}
	}
	created, updated, archived := k.stamps(o)
	return map[string]any{
		"id": o.ID, "type": "vault_credential", "vault_id": vault, "display_name": orNull(k.Name), "metadata": metadata, "auth": auth,
		"created_at": created, "updated_at": updated, "archived_at": archived,
	}
}

// onto applies a request to a credential of a tenant, and returns the new secret.
func (f credentialFields) onto(tenant string, k *keptCredential) (secret newSecret, err error) {
	f.Name.onto(&k.Name)
	k.Metadata = patched(k.Metadata, f.Metadata.value)
	if err := errors.Join(bounded("display_name", k.Name, 0, mostShown), checkMetadata(k.Metadata)); err != nil {
		return secret, err
	}
	if len(f.Auth) == 0 {
		return secret, nil
	}
	var kind struct{ Type string }
	if json.Unmarshal(f.Auth, &kind) != nil {
		return secret, invalid("auth", "it is not an object with a type", "an object")
	}
	if kind.Type == environmentVariable {
		var in variableAuth
		if err := strict(f.Auth, &in); err != nil {
			return secret, server.Within("auth", err)
		}
		return in.onto(k)
	}
	var in credentialAuth
	if err := strict(f.Auth, &in); err != nil {
		return secret, server.Within("auth", err)
	}
	return in.onto(tenant, k)
}

// vaultAt returns the vault that the request names.
func (d *door) vaultAt() (string, error) {
	id := d.r.PathValue("vault")
	_, _, err := objectOf[keptVault](d.Object, ofVault, id)
	return id, err
}

func (d *door) makeCredential(in credentialFields) (any, error) {
	vault, err := d.vaultAt()
	if err != nil {
		return nil, err
	}
	if len(in.Auth) == 0 {
		return nil, invalid("auth", "it is missing", "an object with a type")
	}
	var k keptCredential
	secret, err := in.onto(d.Tenant(), &k)
	if err != nil {
		return nil, err
	}
	keep := func(name string) error { return d.KeepSecret(d, name, secret.token) }
	if k.Refresh != nil {
		keep = func(name string) error {
			var t oauth.Tokens
			secret.onto(&t)
			named := k
			named.Secret = strings.TrimPrefix(name, secretOfCredential)
			return d.Logins(k.Refresh.Endpoint).Adopt(d, named.account(), t)
		}
	}
	var o server.Object
	err = d.keeping(keep, func(name string) (used string, err error) {
		k.Secret = name
		o, err = d.MakeWith(ofCredential(vault), "vcrd_", []any{vault, d.body()}, func(e *server.Edit, id string) error {
			owner, err := roomForCredential(e, vault, k)
			if err != nil {
				return err
			}
			return e.Put(ofCredential(vault), id, owner, k, server.Content{})
		})
		if err == nil {
			err = json.Unmarshal(o.Value, &k) // the request may be a repetition
		}
		return k.Secret, err
	})
	if err != nil {
		return nil, err
	}
	return d.shownCredential(vault, o.ID)
}

// roomForCredential reports why a vault can't have another credential, and returns the tenant of the vault.
func roomForCredential(e *server.Edit, vault string, wanted keptCredential) (tenant string, err error) {
	o, v, err := objectOf[keptVault](e.Object, ofVault, vault)
	if err != nil {
		return "", err
	}
	if v.isArchived() {
		return "", conflict("the vault is archived")
	}
	n := 0
	for _, other := range entries[keptCredential](e.Objects, ofCredential(vault)) {
		k := other.kept
		if k.isArchived() {
			continue
		}
		switch n++; {
		case k.Variable == nil && wanted.Variable == nil && sameServer(k.Server, wanted.Server):
			return "", conflict("credential %s already exists for this server", other.ID)
		case k.Variable != nil && wanted.Variable != nil && k.Variable.Name == wanted.Variable.Name:
			return "", conflict("credential %s already exists for this variable", other.ID)
		}
	}
	if n >= mostCredentials {
		return "", conflict("the vault already has the maximum of %d credentials", n)
	}
	return o.Tenant, nil
}

func (d *door) shownCredential(vault, id string) (any, error) {
	o, k, err := objectOf[keptCredential](d.Object, ofCredential(vault), id)
	if err != nil {
		return nil, err
	}
	return d.withExpiry(k).shown(vault, o), nil
}

// withExpiry returns a credential with the current expiry of its token.
func (d *door) withExpiry(k keptCredential) keptCredential {
	if k.Refresh != nil && !k.isArchived() {
		if info, err := d.Logins(k.Refresh.Endpoint).Info(d, k.account().Name); err == nil {
			k.Expires = info.Expires
		}
	}
	return k
}

func (d *door) credentials() (any, error) {
	vault, err := d.vaultAt()
	if err != nil {
		return nil, err
	}
	all, err := listed[keptCredential](d, ofCredential(vault))
	if err != nil {
		return nil, err
	}
	return shownPage(d, all, 100, func(e entry[keptCredential]) (map[string]any, error) {
		return d.withExpiry(e.kept).shown(vault, e.Object), nil
	})
}

func (d *door) updateCredential(in credentialFields) (any, error) {
	vault, err := d.vaultAt()
	if err != nil {
		return nil, err
	}
	id, of := d.r.PathValue("id"), ofCredential(vault)
	_, k, err := objectOf[keptCredential](d.Object, of, id)
	if err != nil {
		return nil, err
	}
	secret, err := in.onto(d.Tenant(), &k)
	if err != nil {
		return nil, err
	}
	before := ""
	change := func(name string) (string, error) {
		_, _, err := changed(d, of, id, func(k *keptCredential) error {
			if k.isArchived() {
				return conflict("the credential is archived")
			}
			if k.Updated = time.Now(); name != "" {
				before, k.Secret = k.Secret, name
			}
			_, err := in.onto(d.Tenant(), k)
			return err
		})
		return name, err
	}
	switch {
	case k.Refresh != nil: // in place, as a refresh may be in progress
		if _, err = change(""); err == nil && secret.onto != nil {
			err = d.Logins(k.Refresh.Endpoint).Amend(d, k.account(), secret.onto)
		}
	case secret.token == "":
		_, err = change("")
	default:
		err = d.keeping(func(name string) error { return d.KeepSecret(d, name, secret.token) }, change)
	}
	if err != nil {
		return nil, err
	}
	if before != "" {
		d.ForgetSecret(secretOfCredential + before)
	}
	return d.shownCredential(vault, id)
}

// closeCredential archives or removes a credential, and returns the name of its secret.
func closeCredential(e *server.Edit, of, id string, now time.Time, remove bool) (secret string, err error) {
	o, k, err := objectOf[keptCredential](e.Object, of, id)
	secret = secretOfCredential + k.Secret
	switch {
	case err != nil:
		return "", err
	case remove:
		e.Remove(of, id)
		return secret, nil
	case k.isArchived():
		return secret, nil
	}
	k.Archived, k.Updated = now, now
	return secret, e.Put(of, id, o.Tenant, k, o.Content)
}

// endCredential archives or removes a credential. Its secret is removed.
func (d *door) endCredential(remove bool) (any, error) {
	vault, err := d.vaultAt()
	if err != nil {
		return nil, err
	}
	id, of, secret := d.r.PathValue("id"), ofCredential(vault), ""
	err = d.Edit(func(e *server.Edit) (err error) {
		secret, err = closeCredential(e, of, id, time.Now(), remove)
		return err
	})
	if err != nil {
		return nil, err
	}
	d.ForgetSecret(secret)
	if remove {
		return map[string]any{"id": id, "type": "vault_credential_deleted"}, nil
	}
	return d.shownCredential(vault, id)
}

package managed

import (
	"slices"
	"time"

	"github.com/inspan/inspan/internal/service/server"
)

const (
	ofVault   = "managed.vault"
	mostShown = 255 // bytes of a display name
)

func vaultEndpoints() []endpoint {
	k := kind[keptVault, vault]{ofVault, "vlt_", func(_ *door, o server.Object, k keptVault) (vault, error) {
		v := k.vault
		v.ID, v.Type = o.ID, "vault"
		v.CreatedAt, v.UpdatedAt, v.ArchivedAt = k.stamps(o)
		return v, nil
	}}
	return append(crud[vaultFields]("vaults", k),
		act("vaults/{id}/archive", func(d *door) (any, error) {
			if err := d.closeVault(false); err != nil {
				return nil, err
			}
			return k.read(d)
		}),
		del("vaults/{id}", func(d *door) (any, error) {
			return map[string]any{"id": d.r.PathValue("id"), "type": "vault_deleted"}, d.closeVault(true)
		}))
}

// vault is a vault as clients see it.
type vault struct {
	ID         string            `json:"id"`
	Type       string            `json:"type"`
	Name       string            `json:"display_name"`
	Metadata   map[string]string `json:"metadata"`
	CreatedAt  string            `json:"created_at"`
	UpdatedAt  string            `json:"updated_at"`
	ArchivedAt *string           `json:"archived_at"`
}

// keptVault is a vault in the book. Its credentials are objects of a kind of their own.
type keptVault struct {
	dates

	vault
}

// vaultFields are the fields of a request about a vault.
type vaultFields struct {
	Name     opt[string]             `json:"display_name"`
	Metadata opt[map[string]*string] `json:"metadata"`
}

// onto applies a request to a vault.
func (f vaultFields) onto(_ *door, k *keptVault) error {
	v := &k.vault
	f.Name.onto(&v.Name)
	v.Metadata = patched(v.Metadata, f.Metadata.value)
	if err := named("display_name", v.Name, mostShown); err != nil {
		return err
	}
	return checkMetadata(v.Metadata)
}

// closeVault archives a vault with its credentials, or deletes it. Their secrets are removed.
func (d *door) closeVault(remove bool) error {
	id := d.r.PathValue("id")
	now, of := time.Now(), ofCredential(id)
	var forget []string
	err := d.Edit(func(e *server.Edit) error {
		forget = nil
		o, k, err := objectOf[keptVault](e.Object, ofVault, id)
		if err != nil {
			return err
		}
		for _, o := range e.Objects(of) {
			secret, err := closeCredential(e, of, o.ID, now, remove)
			if err != nil {
				return err
			}
			forget = append(forget, secret)
		}
		switch {
		case remove:
			e.Remove(ofVault, id)
			return nil
		case k.isArchived():
			return nil
		}
		k.Archived, k.Updated = now, now
		return e.Put(ofVault, id, o.Tenant, k, o.Content)
	})
	if err != nil {
		return err
	}
	for _, secret := range forget {
		d.ForgetSecret(secret)
	}
	return nil
}

// vaultsOf returns the ids of the vaults that a new session names.
func (d *door) vaultsOf(ids []string) ([]string, error) {
	for i, id := range ids {
		_, k, err := objectOf[keptVault](d.Own, ofVault, id)
		if err != nil {
			return nil, err
		}
		if k.isArchived() {
			return nil, conflict("vault %s is archived", id)
		}
		if slices.Contains(ids[:i], id) {
			return nil, invalid("vault_ids", "one is there twice", "each once")
		}
	}
	return ids, nil
}

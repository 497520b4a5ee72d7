package managed

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/inspan/inspan/internal/service/server"
)

const (
	ofVault   = "managed.vault"
	mostShown = 255 // bytes of a display name
)

func vaultEndpoints() []endpoint {
	return []endpoint{
		post("vaults", (*door).makeVault),
		get("vaults", (*door).vaults, "limit", "page", "include_archived"),
		get("vaults/{id}", (*door).vault),
		post("vaults/{id}", (*door).updateVault),
		act("vaults/{id}/archive", func(d *door) (any, error) { return d.closeVault(false) }),
		del("vaults/{id}", func(d *door) (any, error) { return d.closeVault(true) }),
	}
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
func (f vaultFields) onto(v *vault) error {
	f.Name.onto(&v.Name)
	v.Metadata = patched(v.Metadata, f.Metadata.value)
	if err := named("display_name", v.Name, mostShown); err != nil {
		return err
	}
	return checkMetadata(v.Metadata)
}

func (k keptVault) shown(o server.Object) vault {
	v := k.vault
	v.ID, v.Type = o.ID, "vault"
	v.CreatedAt, v.UpdatedAt, v.ArchivedAt = k.stamps(o)
	return v
}

func (d *door) makeVault() (any, error) {
	var in vaultFields
	raw, err := d.read(&in)
	if err != nil {
		return nil, err
	}
	var k keptVault
	if err := in.onto(&k.vault); err != nil {
		return nil, err
	}
	o, err := d.Make(ofVault, "vlt_", k, fixed(raw))
	if err != nil {
		return nil, err
	}
	return d.shownVault(o.ID)
}

func (d *door) shownVault(id string) (any, error) {
	o, k, err := objectOf[keptVault](d, ofVault, id)
	if err != nil {
		return nil, err
	}
	return k.shown(o), nil
}

func (d *door) vault() (any, error) { return d.shownVault(d.r.PathValue("id")) }

func (d *door) vaults() (any, error) {
	all, err := listed[keptVault](d, ofVault)
	if err != nil {
		return nil, err
	}
	return shownPage(d, all, 100, func(e entry[keptVault]) (vault, error) { return e.kept.shown(e.Object), nil })
}

func (d *door) updateVault() (any, error) {
	var in vaultFields
	if _, err := d.read(&in); err != nil {
		return nil, err
	}
	o, k, err := changed(d, ofVault, d.r.PathValue("id"), func(k *keptVault) error {
		if k.isArchived() {
			return conflict("the vault is archived")
		}
		k.Updated = time.Now()
		return in.onto(&k.vault)
	})
	if err != nil {
		return nil, err
	}
	return k.shown(o), nil
}

// closeVault archives a vault with its credentials, or deletes it. Their secrets are removed.
func (d *door) closeVault(remove bool) (any, error) {
	id := d.r.PathValue("id")
	_, k, err := objectOf[keptVault](d, ofVault, id)
	if err != nil {
		return nil, err
	}
	now, of := time.Now(), ofCredential(id)
	var forget []string
	err = d.Edit(func(e *server.Edit) error {
		forget = nil
		for _, o := range e.Objects(of) {
			secret, err := closeCredential(e, of, o, now, remove)
			if err != nil {
				return err
			}
			forget = append(forget, secret)
		}
		o, err := e.Object(ofVault, id)
		switch {
		case err != nil:
			return missing("vault", id)
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
		return nil, err
	}
	for _, secret := range forget {
		d.ForgetSecret(secret)
	}
	if remove {
		return map[string]any{"id": id, "type": "vault_deleted"}, nil
	}
	return d.shownVault(id)
}

// vaultsOf returns the ids of the vaults that a new session names.
func (d *door) vaultsOf(ids []string) ([]string, error) {
	for i, id := range ids {
		o, err := d.Own(ofVault, id)
		if err != nil {
			return nil, missing("vault", id)
		}
		var k keptVault
		if err := json.Unmarshal(o.Value, &k); err != nil {
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

package managed

import (
	"time"

	"github.com/inspan/inspan/internal/service/server"
)

// A memory store is an object of the book, and so is each of its memories and versions: the latter two have
// kinds of their own for each store. A version has the content. A change of a memory puts the memory and a new
// version in one append, so that neither exists without the other.

const (
	ofMemoryStore = "managed.memory_store"

	mostStoreName        = 255
	mostStoreDescription = 1024
)

func memoryStoreEndpoints() []endpoint {
	return []endpoint{
		post("memory_stores", (*door).makeMemoryStore),
		get("memory_stores", (*door).memoryStores, "limit", "page", "include_archived", "created_at[gte]", "created_at[lte]"),
		get("memory_stores/{id}", (*door).memoryStore),
		post("memory_stores/{id}", (*door).updateMemoryStore),
		act("memory_stores/{id}/archive", (*door).archiveMemoryStore),
		del("memory_stores/{id}", (*door).deleteMemoryStore),
	}
}

// memoryStore is a store as clients see it.
type memoryStore struct {
	ID          string            `json:"id"`
	Type        string            `json:"type"`
	Name        string            `json:"name"`
	Description string            `json:"description"`
	Metadata    map[string]string `json:"metadata"`
	CreatedAt   string            `json:"created_at"`
	UpdatedAt   string            `json:"updated_at"`
	ArchivedAt  *string           `json:"archived_at"`
}

// keptMemoryStore is a store in the book.
type keptMemoryStore struct {
	memoryStore
	dates
}

// memoryStoreFields are the fields of a request about a store.
type memoryStoreFields struct {
	Name        opt[string]             `json:"name"`
	Description opt[string]             `json:"description"`
	Metadata    opt[map[string]*string] `json:"metadata"`
}

// onto applies a request to a store.
func (f memoryStoreFields) onto(m *memoryStore) error {
	f.Name.onto(&m.Name)
	f.Description.onto(&m.Description)
	m.Metadata = patched(m.Metadata, f.Metadata.value)
	if err := named("name", m.Name, mostStoreName); err != nil {
		return err
	}
	if err := bounded("description", m.Description, 0, mostStoreDescription); err != nil {
		return err
	}
	return checkMetadata(m.Metadata)
}

// shown returns a store as clients see it.
func (k keptMemoryStore) shown(o server.Object) memoryStore {
	m := k.memoryStore
	m.ID, m.Type = o.ID, "memory_store"
	m.CreatedAt, m.UpdatedAt, m.ArchivedAt = k.stamps(o)
	return m
}

func (d *door) makeMemoryStore() (any, error) {
	var in memoryStoreFields
	raw, err := d.read(&in)
	if err != nil {
		return nil, err
	}
	var k keptMemoryStore
	if err := in.onto(&k.memoryStore); err != nil {
		return nil, err
	}
	o, err := d.Make(ofMemoryStore, "memstore_", k, fixed(raw))
	if err != nil {
		return nil, err
	}
	return d.shownMemoryStore(o.ID)
}

func (d *door) shownMemoryStore(id string) (any, error) {
	o, k, err := objectOf[keptMemoryStore](d, ofMemoryStore, id)
	if err != nil {
		return nil, err
	}
	return k.shown(o), nil
}

func (d *door) memoryStore() (any, error) { return d.shownMemoryStore(d.r.PathValue("id")) }

func (d *door) memoryStores() (any, error) {
	all, err := listed[keptMemoryStore](d, ofMemoryStore)
	if err != nil {
		return nil, err
	}
	return shownPage(d, all, 100, func(e entry[keptMemoryStore]) (memoryStore, error) { return e.kept.shown(e.Object), nil })
}

func (d *door) updateMemoryStore() (any, error) {
	var in memoryStoreFields
	if _, err := d.read(&in); err != nil {
		return nil, err
	}
	return d.changeMemoryStore(func(k *keptMemoryStore) error {
		if !k.Archived.IsZero() {
			return conflict("the memory store is archived")
		}
		k.Updated = time.Now()
		return in.onto(&k.memoryStore)
	})
}

func (d *door) archiveMemoryStore() (any, error) {
	return d.changeMemoryStore(func(k *keptMemoryStore) error {
		if k.Archived.IsZero() {
			k.Archived = time.Now()
			k.Updated = k.Archived
		}
		return nil
	})
}

func (d *door) changeMemoryStore(f func(*keptMemoryStore) error) (any, error) {
	o, k, err := changed(d, ofMemoryStore, d.r.PathValue("id"), f)
	if err != nil {
		return nil, err
	}
	return k.shown(o), nil
}

// deleteMemoryStore deletes a store with all its memories and versions.
func (d *door) deleteMemoryStore() (any, error) {
	id := d.r.PathValue("id")
	if _, _, err := objectOf[keptMemoryStore](d, ofMemoryStore, id); err != nil {
		return nil, err
	}
	err := d.Edit(func(e *server.Edit) error {
		for _, of := range []string{ofMemory(id), ofMemoryVersion(id)} {
			for _, o := range e.Objects(of) {
				e.Remove(of, o.ID)
			}
		}
		e.Remove(ofMemoryStore, id)
		return nil
	})
	return map[string]any{"id": id, "type": "memory_store_deleted"}, err
}

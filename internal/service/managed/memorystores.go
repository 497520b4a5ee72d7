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
	k := kind[keptMemoryStore, memoryStore]{ofMemoryStore, "memstore_", func(_ *door, o server.Object, k keptMemoryStore) (memoryStore, error) {
		m := k.memoryStore
		m.ID, m.Type = o.ID, "memory_store"
		m.CreatedAt, m.UpdatedAt, m.ArchivedAt = k.stamps(o)
		return m, nil
	}}
	return append(crud[memoryStoreFields]("memory_stores", k, "created_at[gte]", "created_at[lte]"),
		act("memory_stores/{id}/archive", func(d *door) (any, error) {
			return k.change(d, func(k *keptMemoryStore) error {
				if !k.isArchived() {
					k.Archived = time.Now()
					k.Updated = k.Archived
				}
				return nil
			})
		}),
		del("memory_stores/{id}", (*door).deleteMemoryStore))
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
func (f memoryStoreFields) onto(_ *door, k *keptMemoryStore) error {
	m := &k.memoryStore
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

// deleteMemoryStore deletes a store with all its memories and versions.
func (d *door) deleteMemoryStore() (any, error) {
	id := d.r.PathValue("id")
	err := d.Edit(func(e *server.Edit) error {
		if _, _, err := objectOf[keptMemoryStore](e.Object, ofMemoryStore, id); err != nil {
			return err
		}
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

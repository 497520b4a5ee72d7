package managed

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/service/server"
	"github.com/inspan/inspan/internal/view/words"
)

const (
	memoryType = "memory_store"

	readOnly  = "read_only"
	readWrite = "read_write"

	mostResources    = 500
	mostStores       = 8
	mostInstructions = 4096
)

// resource is a file, repository or memory store of a session.
type resource struct {
	Type string `json:"type"`

	Store        string  `json:"memory_store_id,omitempty"`
	Access       string  `json:"access,omitempty"`
	Instructions *string `json:"instructions,omitempty"`
	Name         string  `json:"name,omitempty"`
	Description  string  `json:"description,omitempty"`
	MountPath    string  `json:"mount_path,omitempty"`

	ID       string    `json:"id,omitempty"` // empty for memory stores
	File     string    `json:"file_id,omitempty"`
	URL      string    `json:"url,omitempty"`
	Checkout *checkout `json:"checkout,omitempty"`
	Secret   bool      `json:"secret,omitempty"` // a token is stored until the repository is cloned
	Created  time.Time `json:"created,omitzero"`
	Updated  time.Time `json:"updated,omitzero"`

	token string // of a request
}

// view returns a resource as clients see it.
func (r resource) view() map[string]any {
	if r.Type == memoryType {
		return map[string]any{
			"type": r.Type, "memory_store_id": r.Store, "access": r.Access, "instructions": r.Instructions, "name": r.Name,
			"description": r.Description, "mount_path": r.MountPath,
		}
	}
	out := map[string]any{
		"type": r.Type, "id": r.ID, "mount_path": r.MountPath, "created_at": stamp(r.Created), "updated_at": stamp(r.Updated),
	}
	if r.Type == fileType {
		out["file_id"] = r.File
	} else {
		out["url"], out["checkout"] = r.URL, r.Checkout
	}
	return out
}

// newResource is a request for a resource.
type newResource struct {
	Type         string      `json:"type"`
	Store        string      `json:"memory_store_id"`
	Access       string      `json:"access"`
	Instructions opt[string] `json:"instructions"`
	File         string      `json:"file_id"`
	MountPath    opt[string] `json:"mount_path"`
	URL          string      `json:"url"`
	Checkout     *checkout   `json:"checkout"`
	Token        string      `json:"authorization_token"`
}

// fieldsOf returns the allowed fields of a request for a resource of a type.
func fieldsOf(kind string) []string {
	switch kind {
	case memoryType:
		return []string{"type", "memory_store_id", "access", "instructions"}
	case fileType:
		return []string{"type", "file_id", "mount_path"}
	case repositoryType:
		return []string{"type", "url", "mount_path", "checkout", "authorization_token"}
	}
	return nil
}

// resource reads a request for a resource, in addition to others.
func (d *door) resource(at string, raw json.RawMessage, others []resource) (r resource, err error) {
	var fields map[string]json.RawMessage
	var kind struct{ Type string }
	if json.Unmarshal(raw, &kind) != nil || json.Unmarshal(raw, &fields) != nil {
		return r, invalid(at, "it is not an object with a type", "an object")
	}
	known := fieldsOf(kind.Type)
	if known == nil {
		return r, unserved(at+".type", "resources of type "+words.OneLine(kind.Type, 40))
	}
	for name := range fields {
		if !slices.Contains(known, name) {
			return r, invalid(at+"."+words.OneLine(name, 80), "unknown field of a "+kind.Type, strings.Join(known, ", "))
		}
	}
	var in newResource
	if err := strict(raw, &in); err != nil {
		return r, server.Within(at, err)
	}
	switch kind.Type {
	case memoryType:
		return d.memoryResource(at, in, others)
	case fileType:
		r, err = d.fileResource(at, in)
	default:
		r, err = d.repositoryResource(at, in)
	}
	if err != nil {
		return r, err
	}
	r.ID, r.Created = "sesrsc_"+strings.ToLower(rand.Text()), time.Now()
	r.Updated = r.Created
	return r, collide(at, r, others)
}

// resources reads the resources of a new session.
func (d *door) resources(raw []json.RawMessage) (out []resource, err error) {
	if len(raw) > mostResources {
		return nil, invalid("resources", fmt.Sprintf("there are %d", len(raw)), fmt.Sprintf("at most %d", mostResources))
	}
	for i, one := range raw {
		r, err := d.resource(fmt.Sprintf("resources.%d", i), one, out)
		if err != nil {
			return nil, err
		}
		if out = append(out, r); len(stores(out)) > mostStores {
			return nil, invalid("resources", "there are more memory stores", fmt.Sprintf("at most %d", mostStores))
		}
	}
	return out, nil
}

// memoryResource reads a request for a memory store.
func (d *door) memoryResource(at string, in newResource, others []resource) (resource, error) {
	r := resource{Type: in.Type, Store: in.Store, Access: in.Access}
	_, k, err := objectOf[keptMemoryStore](d.Own, ofMemoryStore, in.Store)
	if err != nil {
		return r, err
	}
	if k.isArchived() {
		return r, conflict("%s: memory store %s is archived", at, in.Store)
	}
	switch r.Access {
	case "":
		r.Access = readWrite
	case readOnly, readWrite:
	default:
		return r, invalid(at+".access", "it is unknown", readWrite+" or "+readOnly)
	}
	if in.Instructions.said && !in.Instructions.null {
		r.Instructions = &in.Instructions.value
		if err := bounded(at+".instructions", *r.Instructions, 0, mostInstructions); err != nil {
			return r, err
		}
	}
	r.Name, r.Description = k.Name, k.Description
	taken := map[string]bool{}
	for _, other := range others {
		if taken[other.MountPath] = true; other.Store == r.Store {
			return r, invalid(at+".memory_store_id", "the store is there twice", "one entry for each")
		}
	}
	r.MountPath = memoryRoot + slug(k.Name)
	for n := 2; taken[r.MountPath]; n++ {
		r.MountPath = fmt.Sprintf("%s%s-%d", memoryRoot, slug(k.Name), n)
	}
	return r, nil
}

// slug returns a folder name made from a name.
func slug(name string) string {
	parts := strings.FieldsFunc(strings.ToLower(name), func(c rune) bool { return (c < 'a' || c > 'z') && (c < '0' || c > '9') })
	if len(parts) == 0 {
		return "memory"
	}
	return strings.Join(parts, "-")
}

// stores returns the memory stores among resources.
func stores(list []resource) (out []resource) {
	for _, r := range list {
		if r.Type == memoryType {
			out = append(out, r)
		}
	}
	return out
}

// equip gives the agent of a session the resources of that.
func (k *secrets) equip(v *server.Visit, t server.Task, o *app.Options) error {
	s, is, err := sessionOf(v, t.ID)
	if err != nil || !is {
		return err
	}
	texts := []string{o.AppendSystem, mounted(s.Resources)}
	if list := stores(s.Resources); len(list) > 0 {
		m := &memoryTool{visit: v, task: t.ID, stores: list}
		o.Tools = append(o.Tools, m.tool())
		texts = append(texts, prompted(list))
	}
	if err := errors.Join(k.authorize(v, t.ID, s.Vaults, o), k.variables(v, s.Vaults, o)); err != nil {
		return err
	}
	texts = slices.DeleteFunc(texts, func(text string) bool { return text == "" })
	o.AppendSystem = strings.Join(texts, "\n\n")
	return nil
}

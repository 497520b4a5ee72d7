package managed

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	"github.com/inspan/inspan/internal/app"
	"github.com/inspan/inspan/internal/server"
)

const (
	readOnly  = "read_only"
	readWrite = "read_write"

	mostResources    = 500
	mostStores       = 8
	mostInstructions = 4096
)

// resource is what a session has beside its agent, as it is kept and, but for its identity, as
// clients see it.
type resource struct {
	Type string `json:"type"`

	Store        string  `json:"memory_store_id,omitempty"`
	Access       string  `json:"access,omitempty"`
	Instructions *string `json:"instructions,omitempty"`
	Name         string  `json:"name,omitempty"`
	Description  string  `json:"description,omitempty"`
	MountPath    string  `json:"mount_path,omitempty"`
}

// view is a resource as clients see it.
func (r resource) view() map[string]any {
	return map[string]any{
		"type": r.Type, "memory_store_id": r.Store, "access": r.Access, "instructions": r.Instructions, "name": r.Name,
		"description": r.Description, "mount_path": r.MountPath,
	}
}

// newResource is a request for one.
type newResource struct {
	Type         string      `json:"type"`
	Store        string      `json:"memory_store_id"`
	Access       string      `json:"access"`
	Instructions opt[string] `json:"instructions"`
}

// resources are those that a new session wants.
func (d *door) resources(raw []json.RawMessage) (out []resource, err error) {
	if len(raw) > mostResources {
		return nil, invalid("resources", fmt.Sprintf("there are %d", len(raw)), fmt.Sprintf("at most %d", mostResources))
	}
	stores := 0
	for i, one := range raw {
		at := fmt.Sprintf("resources.%d", i)
		var kind struct{ Type string }
		if json.Unmarshal(one, &kind) != nil {
			return nil, invalid(at, "it is not an object with a type", "an object")
		}
		if kind.Type != "memory_store" {
			return nil, unserved(at+".type", "resources of type "+kind.Type)
		}
		var in newResource
		if err := decoded(at, one, &in); err != nil {
			return nil, err
		}
		r, err := d.memoryResource(at, in, out)
		if err != nil {
			return nil, err
		}
		if stores++; stores > mostStores {
			return nil, invalid("resources", "there are more memory stores", fmt.Sprintf("at most %d", mostStores))
		}
		out = append(out, r)
	}
	return out, nil
}

// decoded reads a part of a body as strictly as the whole, and says where in that a problem is.
func decoded(at string, raw []byte, into any) error {
	err := strict(raw, into)
	if err == nil {
		err = faults("", reflect.ValueOf(into).Elem())
	}
	p, is := errors.AsType[*server.Problem](err)
	if !is {
		return err
	}
	inner := *p
	inner.Field = strings.TrimSuffix(at+"."+strings.TrimPrefix(p.Field, "body"), ".")
	inner.Message = at + ": " + p.Message
	return &inner
}

// memoryResource is a memory store that a session gets.
func (d *door) memoryResource(at string, in newResource, others []resource) (resource, error) {
	r := resource{Type: in.Type, Store: in.Store, Access: in.Access}
	o, err := d.Own(ofMemoryStore, in.Store)
	if err != nil {
		return r, missing("memory store", in.Store)
	}
	var k keptMemoryStore
	if err := json.Unmarshal(o.Value, &k); err != nil {
		return r, err
	}
	if !k.Archived.IsZero() {
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

// slug is a name of a folder that tells of a name.
func slug(name string) string {
	parts := strings.FieldsFunc(strings.ToLower(name), func(c rune) bool { return (c < 'a' || c > 'z') && (c < '0' || c > '9') })
	if len(parts) == 0 {
		return "memory"
	}
	return strings.Join(parts, "-")
}

// stores are the memory stores among resources.
func stores(list []resource) (out []resource) {
	for _, r := range list {
		if r.Type == "memory_store" {
			out = append(out, r)
		}
	}
	return out
}

// Join adds the endpoints of this door to a server that is to be started, and gives its tasks what
// sessions have beside their agents.
func Join(s *server.Server) {
	s.Also = func(mux *http.ServeMux) { handle(s, mux) }
	s.Equip = equip
}

// equip gives the agent of a session what that has.
func equip(v *server.Visit, t server.Task, o *app.Options) error {
	kept, err := v.Object(ofSession, t.ID)
	if err != nil {
		return nil //nolint:nilerr // it is a task of another door
	}
	var k keptSession
	if err := json.Unmarshal(kept.Value, &k); err != nil {
		return err
	}
	if list := stores(k.Resources); len(list) > 0 {
		m := &memoryTool{visit: v, task: t.ID, stores: list}
		o.Tools = append(o.Tools, m.tool())
		o.AppendSystem = strings.TrimSpace(o.AppendSystem + "\n\n" + prompted(list))
	}
	return nil
}

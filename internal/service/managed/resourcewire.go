package managed

import (
	"errors"
	"math"
	"slices"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/service/server"
)

func resourceEndpoints() []endpoint {
	const all, one = "sessions/{session}/resources", "sessions/{session}/resources/{id}"
	return []endpoint{
		post(all, (*door).addResource),
		get(all, (*door).listResources, "limit", "page"),
		get(one, (*door).readResource),
		post(one, reading((*door).updateResource)),
		del(one, (*door).removeResource),
	}
}

// resourceOf returns the resource of the session that the request names.
func (d *door) resourceOf(k keptSession) (resource, error) {
	id := d.r.PathValue("id")
	i := slices.IndexFunc(k.Resources, func(r resource) bool { return r.ID == id && id != "" })
	if i < 0 {
		return resource{}, missing("resource", id)
	}
	return k.Resources[i], nil
}

func (d *door) sessionAt() (string, keptSession, error) {
	id := d.r.PathValue("session")
	_, k, err := objectOf[keptSession](d.Object, ofSession, id)
	return id, k, err
}

func (d *door) listResources() (any, error) {
	_, k, err := d.sessionAt()
	if err != nil {
		return nil, err
	}
	if !d.query.Has("limit") {
		d.query.Set("limit", "1000") // all
	}
	type placed struct {
		resource
		at int64
	}
	var all []placed
	last := int64(math.MinInt64)
	for _, r := range k.Resources {
		last = max(last+1, r.Created.UnixNano()) // memory stores, which stay, have no time
		all = append(all, placed{r, last})
	}
	return pageOf(d, all, 1000, func(r placed) int64 { return r.at },
		func(r placed) (map[string]any, error) { return r.view(), nil })
}

func (d *door) readResource() (any, error) {
	_, k, err := d.sessionAt()
	if err != nil {
		return nil, err
	}
	r, err := d.resourceOf(k)
	if err != nil {
		return nil, err
	}
	return r.view(), nil
}

// inWorkspace calls f to change the workspace of an unfinished session, when it exists.
func (d *door) inWorkspace(id string, f func(dir string) error) error {
	t, err := d.Wait(id, func(t server.Task) bool { return t.Session != "" || isOver(t) })
	if err == nil && isOver(t) {
		err = conflict("the session is over, and so is its workspace")
	}
	if err != nil {
		return err
	}
	return d.InWorkspace(t, func(dir string) error { return inTheWay(f(dir)) })
}

// inTheWay returns an error in a workspace as a conflict with its content, unless the disk is full or the error
// is already a problem.
func inTheWay(err error) error {
	if _, known := errors.AsType[*server.Problem](err); err == nil || known || keep.DiskFault(err) {
		return err
	}
	return conflict("a file in the workspace is in the way: %v", err)
}

// addResource puts a file into the workspace of a session, and then records it.
func (d *door) addResource() (any, error) {
	if err := d.read(new(any)); err != nil {
		return nil, err
	}
	id, k, err := d.sessionAt()
	if err != nil {
		return nil, err
	}
	own := ""
	if key := d.Key(); key != "" { // a repeated request
		own = derived("sesrsc_", id, key)
		if i := slices.IndexFunc(k.Resources, func(r resource) bool { return r.ID == own }); i >= 0 {
			return k.Resources[i].view(), nil
		}
	}
	r, err := d.resource("body", d.raw, k.Resources)
	switch {
	case err != nil:
		return nil, err
	case r.Type != fileType:
		return nil, unserved("type", "other resources than files for a session that is there")
	case k.isArchived():
		return nil, conflict("the session is archived")
	case len(k.Resources) >= mostResources:
		return nil, conflict("the session has %d resources, and can't have more", len(k.Resources))
	}
	if own != "" {
		r.ID = own
	}
	if err := d.inWorkspace(id, func(dir string) error { return placeFile(d.Visit, r, dir) }); err != nil {
		return nil, err
	}
	_, _, err = changed(d, ofSession, id, func(k *keptSession) error {
		k.Resources, k.Updated = append(k.Resources, r), time.Now()
		return collide("body", r, k.Resources[:len(k.Resources)-1])
	})
	return r.view(), err
}

// updateResource replaces the token of a repository, until that is cloned. Then no token is needed, and the
// workspace belongs to its agent, which could see where git sends it.
func (d *door) updateResource(in struct {
	Token string `json:"authorization_token"`
},
) (any, error) {
	id, k, err := d.sessionAt()
	if err != nil {
		return nil, err
	}
	r, err := d.resourceOf(k)
	switch {
	case err != nil:
		return nil, err
	case in.Token == "":
		return nil, invalid("authorization_token", "it is missing", "a token")
	case r.Type != repositoryType:
		return nil, invalid("authorization_token", "only repositories have one", "")
	case !r.Secret:
		return nil, conflict("the repository is cloned, or has had no token: none is used any more")
	}
	if err := d.KeepSecret(d, r.secretName(), in.Token); err != nil {
		return nil, err
	}
	_, _, err = changed(d, ofSession, id, func(k *keptSession) error {
		i := slices.IndexFunc(k.Resources, func(o resource) bool { return o.ID == r.ID })
		if i < 0 || !k.Resources[i].Secret {
			return conflict("the repository is cloned: no token is used any more")
		}
		k.Resources[i].Updated = time.Now()
		r = k.Resources[i]
		return nil
	})
	if err != nil {
		d.ForgetSecret(r.secretName())
	}
	return r.view(), err
}

// removeResource removes a file from a session and its workspace.
func (d *door) removeResource() (any, error) {
	id, k, err := d.sessionAt()
	if err != nil {
		return nil, err
	}
	r, err := d.resourceOf(k)
	if err != nil {
		return nil, err
	}
	if r.Type != fileType {
		return nil, conflict("a repository stays for the whole session: its agent works there")
	}
	if err := d.inWorkspace(id, func(dir string) error { return removeFile(r, dir) }); err != nil {
		return nil, err
	}
	_, _, err = changed(d, ofSession, id, func(k *keptSession) error {
		k.Resources = slices.DeleteFunc(k.Resources, func(o resource) bool { return o.ID == r.ID })
		k.Updated = time.Now()
		return nil
	})
	return map[string]any{"id": r.ID, "type": "session_resource_deleted"}, err
}

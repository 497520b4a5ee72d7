package managed

import (
	"encoding/json"
	"mime"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/service/server"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/tool"
)

const (
	ofFile = "managed.file"

	mostFilename  = 255
	leastLifetime = 3600
	mostLifetime  = 7776000
	mostIDs       = 100
)

func fileEndpoints() []endpoint {
	return []endpoint{
		post("files", (*door).upload),
		get("files", (*door).files, "limit", "page", "scope_id", "ids", "ids[]"),
		get("files/{id}", (*door).file),
		get("files/{id}/content", (*door).download),
		del("files/{id}", (*door).deleteFile),
	}
}

// keptFile is a file in the book. Its content is the file's bytes.
type keptFile struct {
	Name    string    `json:"name"`
	Type    string    `json:"type"`
	Expires time.Time `json:"expires,omitzero"`
}

// fileView is a file as clients see it.
type fileView struct {
	ID           string     `json:"id"`
	Type         string     `json:"type"`
	Filename     string     `json:"filename"`
	MimeType     string     `json:"mime_type"`
	Size         int64      `json:"size_bytes"`
	Downloadable bool       `json:"downloadable"`
	CreatedAt    string     `json:"created_at"`
	ExpiresAt    *string    `json:"expires_at"`
	Scope        *fileScope `json:"scope"`
}

// fileScope is the session that a file was listed for.
type fileScope struct {
	Type string `json:"type"`
	ID   string `json:"id"`
}

func (k keptFile) shown(o server.Object) fileView {
	return fileView{
		ID: o.ID, Type: "file", Filename: k.Name, MimeType: k.Type, Size: o.Content.Size, Downloadable: true,
		CreatedAt: stamp(o.Created), ExpiresAt: when(k.Expires),
	}
}

func (d *door) upload() (any, error) {
	list, said, err := d.form("file", "expires_in_seconds")
	if err != nil {
		return nil, err
	}
	if len(list) != 1 {
		return nil, invalid("file", "there is not exactly one", "one file")
	}
	f := list[0]
	k := keptFile{Name: path.Base(strings.ReplaceAll(f.Name, "\\", "/")), Type: f.Type}
	if media, _, err := mime.ParseMediaType(f.Type); err != nil || media == "application/octet-stream" {
		k.Type, _, _ = strings.Cut(http.DetectContentType(f.Data), ";")
	}
	if k.Name == "." || k.Name == "/" {
		k.Name = "unnamed"
	}
	if len(k.Name) > mostFilename || len(k.Type) > mostFilename || text.Holds(k.Name+k.Type, text.Hidden) {
		return nil, invalid("file", "its name is too long, or has characters that can't be seen", "a name of at most 255 bytes")
	}
	if lifetime, there := said["expires_in_seconds"]; there {
		n, err := strconv.Atoi(lifetime)
		if err != nil || n < leastLifetime || n > mostLifetime {
			return nil, invalid("expires_in_seconds", "it is "+strconv.Quote(words.OneLine(lifetime, 40)), "3600 to 7776000")
		}
		k.Expires = time.Now().Add(time.Duration(n) * time.Second)
	}
	request := []any{k.Name, k.Type, said, tool.Digest(f.Data)}
	o, err := d.MakeStored(ofFile, "file_", request, f.Data, func(e *server.Edit, id string, content server.Content) error {
		return e.Put(ofFile, id, d.Tenant(), k, content)
	})
	if err != nil {
		return nil, err
	}
	return d.shownFile(o.ID)
}

// found returns a file that has not expired. An expired one is removed.
func (d *door) found(id string) (server.Object, keptFile, error) {
	o, k, err := objectOf[keptFile](d.Object, ofFile, id)
	if err == nil && !k.Expires.IsZero() && time.Now().After(k.Expires) {
		if _, err := gone(d, ofFile, id, ""); err != nil {
			return o, k, err
		}
		err = missing("file", id)
	}
	return o, k, err
}

func (d *door) shownFile(id string) (any, error) {
	o, k, err := d.found(id)
	if err != nil {
		return nil, err
	}
	return k.shown(o), nil
}

func (d *door) file() (any, error) { return d.shownFile(d.r.PathValue("id")) }

// files lists the files of the tenant, of a session, or with some ids.
func (d *door) files() (any, error) {
	ids, scope := d.list("ids"), (*fileScope)(nil)
	if len(ids) > 0 && (d.query.Has("page") || d.query.Has("limit")) {
		return nil, invalid("ids", "there is a page or limit too", "one of both")
	}
	if len(ids) > mostIDs {
		return nil, invalid("ids", "there are too many", "at most 100")
	}
	wanted := func(string) bool { return true }
	if len(ids) > 0 {
		wanted = func(id string) bool { return slices.Contains(ids, id) }
	}
	if d.query.Has("scope_id") {
		scope = &fileScope{"session", d.query.Get("scope_id")}
		has, both := d.filesOf(scope.ID), wanted
		wanted = func(id string) bool { return has[id] && both(id) }
	}
	all := slices.DeleteFunc(newest[keptFile](d, ofFile), func(e entry[keptFile]) bool {
		if !wanted(e.ID) {
			return true
		}
		_, _, err := d.found(e.ID)
		return err != nil
	})
	shown := func(e entry[keptFile]) (fileView, error) {
		v := e.kept.shown(e.Object)
		v.Scope = scope
		return v, nil
	}
	if len(ids) > 0 {
		return viewed(page[entry[keptFile]]{Data: all}, shown)
	}
	return shownPage(d, all, 1000, shown)
}

// filesOf returns the ids of the files of a session.
func (d *door) filesOf(session string) map[string]bool {
	has := map[string]bool{}
	o, err := d.Object(ofSession, session)
	var k keptSession
	if err == nil && json.Unmarshal(o.Value, &k) == nil {
		for _, r := range k.Resources {
			has[r.File] = true
		}
	}
	return has
}

// download sends the bytes of a file as an attachment: a browser does not display it.
func (d *door) download() (any, error) {
	o, k, err := d.found(d.r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	data, err := d.Load(o.Content)
	if err != nil {
		return nil, err
	}
	d.attach(k.Name, k.Type, data)
	return nil, nil
}

// attach responds with a file.
func (d *door) attach(name, kind string, data []byte) {
	h := d.w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	h.Set("Content-Security-Policy", "sandbox")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(data)))
	_, _ = d.w.Write(data) // the client may have disconnected
}

func (d *door) deleteFile() (any, error) {
	return gone(d, ofFile, d.r.PathValue("id"), "file_deleted")
}

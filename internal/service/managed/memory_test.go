package managed_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/inspan/inspan/internal/service/server"
	"github.com/inspan/inspan/tool"
)

// session makes a session with resources, and returns its id.
func (h *house) session(resources ...any) string {
	h.t.Helper()
	agent, env := h.made("/v1/agents", someAgent), h.made("/v1/environments", someEnv)
	return h.made("/v1/sessions", object{"agent": agent, "environment_id": env, "resources": resources})
}

// remember has the agent of a session call its tool for memories.
func (h *house) remember(session string, args object) string {
	h.t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		h.t.Fatal(err)
	}
	return h.run(session, "call: memory_store "+string(raw))
}

// version is the version of a memory in the result of a call.
func version(text string) string {
	_, after, _ := strings.Cut(text, "version ")
	return after[:min(12, len(after))]
}

// has fails unless a text holds all that is wanted.
func has(t *testing.T, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("no %q in %s", w, text)
		}
	}
}

// TestMemories checks the operations of clients and agents on memories, also across a restart.
func TestMemories(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	store := h.made("/v1/memory_stores", object{"name": "User Preferences", "description": "what Ann likes"})
	at := "/v1/memory_stores/" + store
	m := h.must("POST", at+"/memories?view=full", object{"path": "/a/likes.md", "content": "tea"})
	if m["content"] != "tea" || m["content_size_bytes"] != 3.0 || m["type"] != "memory" {
		t.Errorf("memory %v", m)
	}
	session := h.session(object{"type": "memory_store", "memory_store_id": store, "instructions": "Look here first."})
	view, _ := json.Marshal(h.must("GET", "/v1/sessions/"+session, nil)["resources"])
	has(t, string(view), `"mount_path":"/mnt/memory/user-preferences"`, `"access":"read_write"`, "Look here first.", "what Ann likes")
	const path = "/mnt/memory/user-preferences/a/likes.md"
	has(t, h.remember(session, object{"command": "list", "path": "/mnt/memory/user-preferences"}), path+" 3 bytes")
	has(t, h.remember(session, object{"command": "write", "path": path, "content": "x"}), "say its version")
	tea := version(h.remember(session, object{"command": "read", "path": path}))
	id, _ := m["id"].(string)
	h.must("POST", at+"/memories/"+id, object{"content": "coffee"})
	has(t, h.remember(session, object{"command": "write", "path": path, "content": "x", "version": tea}), "the memory has changed")
	cocoa := version(h.remember(session, object{"command": "edit", "path": path, "old_text": "coffee", "new_text": "cocoa"}))
	has(t, h.remember(session, object{"command": "move", "path": path, "to": "/mnt/memory/user-preferences/b.md", "version": cocoa}), "Moved.")
	h.close()
	h.open()
	has(t, h.remember(session, object{"command": "read", "path": "/mnt/memory/user-preferences/b.md"}), "cocoa")
	has(t, h.remember(session, object{"command": "delete", "path": "/mnt/memory/user-preferences/b.md", "version": cocoa}), "Deleted.")
	list := h.must("GET", at+"/memory_versions?view=full&memory_id="+id, nil)
	versions, _ := json.Marshal(list["data"])
	has(t, string(versions), `"operation":"created"`, `"operation":"modified"`, `"operation":"deleted"`, `"content":"coffee"`,
		fmt.Sprintf(`"created_by":{"session_id":%q,"type":"session_actor"}`, session), `"api_key_id":"owner"`)
	if n := len(h.must("GET", at+"/memory_versions?session_id="+session, nil)["data"].([]any)); n != 3 {
		t.Errorf("%d versions of the session, want 3: %s", n, versions)
	}
	if n := len(h.must("GET", "/v1/sessions?memory_store_id="+store, nil)["data"].([]any)); n != 1 {
		t.Errorf("%d sessions have the store", n)
	}
	has(t, h.run(session, "call: memory_store {}"), "command")
	h.must("DELETE", at, nil)
	has(t, h.remember(session, object{"command": "list", "path": "/mnt/memory/user-preferences"}), "its store was deleted")
	if status, text := h.do("GET", at+"/memory_versions", nil); status != http.StatusNotFound {
		t.Errorf("%d %s", status, text)
	}
}

// TestMemoryReadOnly checks that a read-only memory is not written, whoever allows it, and that an archived store can
// only be emptied.
func TestMemoryReadOnly(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	var resources []any
	var ids []string
	for i := range 2 {
		store := h.made("/v1/memory_stores", object{"name": "notes"})
		ids = append(ids, store)
		h.made("/v1/memory_stores/"+store+"/memories", object{"path": "/a", "content": "here"})
		access := []string{"read_only", "read_write"}[i]
		resources = append(resources, object{"type": "memory_store", "memory_store_id": store, "access": access})
	}
	session := h.session(resources...)
	has(t, h.remember(session, object{"command": "read", "path": "/mnt/memory/notes/a"}), "here")
	for _, args := range []object{
		{"command": "write", "path": "/mnt/memory/notes/b", "content": "x"},
		{"command": "write", "path": "/mnt/memory/notes/a", "content": "x"},
		{"command": "edit", "path": "/mnt/memory/notes/a", "old_text": "here", "new_text": "x"},
		{"command": "delete", "path": "/mnt/memory/notes/a"},
		{"command": "move", "path": "/mnt/memory/notes/a", "to": "/mnt/memory/notes/b"},
	} {
		has(t, h.remember(session, args), "/mnt/memory/notes is read-only")
	}
	has(t, h.remember(session, object{"command": "read", "path": "/mnt/memory/elsewhere/a"}), "in no memory store")
	if n := len(h.must("GET", "/v1/memory_stores/"+ids[0]+"/memory_versions", nil)["data"].([]any)); n != 1 {
		t.Errorf("%d versions, want 1", n)
	}
	has(t, h.remember(session, object{"command": "write", "path": "/mnt/memory/notes-2/b", "content": "x"}), "Created")
	h.must("POST", "/v1/memory_stores/"+ids[1]+"/archive", nil)
	has(t, h.remember(session, object{"command": "write", "path": "/mnt/memory/notes-2/c", "content": "x"}), "is archived")
	has(t, h.remember(session, object{"command": "read", "path": "/mnt/memory/notes-2/b"}), "x")
}

// TestMemoryRules checks that modes and rules for files hold for memories too.
func TestMemoryRules(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*server.Server){
		"rule": func(s *server.Server) { s.Options.Deny = []string{"write(mnt/memory/n/**)"} },
		"mode": func(s *server.Server) { s.Options.Mode = tool.ModePlan },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, set)
			store := h.made("/v1/memory_stores", object{"name": "n"})
			h.made("/v1/memory_stores/"+store+"/memories", object{"path": "/a", "content": "here"})
			session := h.session(object{"type": "memory_store", "memory_store_id": store})
			has(t, h.remember(session, object{"command": "read", "path": "/mnt/memory/n/a"}), "here")
			has(t, h.remember(session, object{"command": "edit", "path": "/mnt/memory/n/a", "old_text": "here", "new_text": "x"}), `"deny"`)
			if n := len(h.must("GET", "/v1/memory_stores/"+store+"/memory_versions", nil)["data"].([]any)); n != 1 {
				t.Errorf("%d versions, want 1", n)
			}
		})
	}
}

// TestMemoryRaces checks that concurrent writes lose nothing: each acknowledged text is a version, and of writers that
// expect the same version one wins.
func TestMemoryRaces(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	store := h.made("/v1/memory_stores", object{"name": "n"})
	at := "/v1/memory_stores/" + store
	m := h.must("POST", at+"/memories", object{"path": "/a", "content": ""})
	id, _ := m["id"].(string)
	sessions, seen := make([]string, 3), ""
	for i := range sessions {
		sessions[i] = h.session(object{"type": "memory_store", "memory_store_id": store})
		seen = version(h.remember(sessions[i], object{"command": "read", "path": "/mnt/memory/n/a"}))
	}
	var wg sync.WaitGroup
	outs, statuses := make([]string, len(sessions)), make([]int, 5)
	for i, s := range sessions {
		wg.Go(func() {
			outs[i] = h.remember(s, object{"command": "write", "path": "/mnt/memory/n/a", "content": fmt.Sprint("session ", i), "version": seen})
		})
	}
	for i := range statuses {
		wg.Go(func() {
			statuses[i], _ = h.do("POST", at+"/memories/"+id, object{
				"content": fmt.Sprint("client ", i), "precondition": object{"type": "content_sha256", "content_sha256": m["content_sha256"]},
			})
		})
	}
	wg.Wait()
	raw, _ := json.Marshal(h.must("GET", at+"/memory_versions?view=full", nil)["data"])
	written := 0
	for i, out := range outs {
		if strings.Contains(out, "Written.") {
			written++
			has(t, string(raw), fmt.Sprint("session ", i))
		} else {
			has(t, out, "the memory has changed")
		}
	}
	for i, status := range statuses {
		switch status {
		case http.StatusOK:
			written++
			has(t, string(raw), fmt.Sprint("client ", i))
		case http.StatusConflict:
		default:
			t.Errorf("status %d", status)
		}
	}
	if written != 1 {
		t.Errorf("%d have written over the same memory: %s", written, raw)
	}
}

// TestMemoryRedact checks that a redacted text remains nowhere, and neither does a deleted one.
func TestMemoryRedact(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	store := h.made("/v1/memory_stores", object{"name": "n"})
	at := "/v1/memory_stores/" + store
	const private = "the private thing that nobody may read"
	m := h.must("POST", at+"/memories", object{"path": "/a", "content": private})
	id, version := fmt.Sprint(m["id"]), fmt.Sprint(m["memory_version_id"])
	if status, text := h.do("POST", at+"/memory_versions/"+version+"/redact", nil); status != http.StatusConflict {
		t.Errorf("the current version: %d %s", status, text)
	}
	if !h.onDisk(private) {
		t.Error("the content is not on the disk")
	}
	h.must("POST", at+"/memories/"+id, object{"content": "other"})
	v := h.must("POST", at+"/memory_versions/"+version+"/redact", nil)
	if v["content"] != nil || v["path"] != nil || v["content_sha256"] != nil || v["redacted_at"] == nil || v["redacted_by"] == nil {
		t.Errorf("version %v", v)
	}
	if h.onDisk(private) {
		t.Error("the content is still there")
	}
	h.made(at+"/memories", object{"path": "/b", "content": private})
	h.must("DELETE", at, nil)
	if h.onDisk(private) {
		t.Error("the content of a store that is deleted is still there")
	}
}

// onDisk reports whether a text is in any file of the server. Files may come and go meanwhile.
func (h *house) onDisk(text string) (found bool) {
	h.t.Helper()
	err := filepath.WalkDir(h.dir, func(path string, d os.DirEntry, err error) error {
		var raw []byte
		if err == nil && d.Type().IsRegular() {
			raw, err = os.ReadFile(path)
		}
		found = found || strings.Contains(string(raw), text)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return found
}

// TestMemoryQuota checks that contents count toward a tenant's quota until they are deleted.
func TestMemoryQuota(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	h.must("PUT", "/api/v1/tenants/red", object{"disk": 150_000})
	red := h.as("ann", "red")
	store := red.made("/v1/memory_stores", object{"name": "n"})
	at := "/v1/memory_stores/" + store + "/memories"
	full := strings.Repeat("x", 100_000)
	first := red.made(at, object{"path": "/a", "content": full})
	if status, message := red.problem("POST", at, object{"path": "/b", "content": full}); status != http.StatusForbidden {
		t.Errorf("%d %s", status, message)
	}
	red.must("DELETE", at+"/"+first, nil)
	if status, message := red.problem("POST", at, object{"path": "/b", "content": full}); status != http.StatusForbidden {
		t.Errorf("versions of a deleted memory count: %d %s", status, message)
	}
	red.must("DELETE", "/v1/memory_stores/"+store, nil)
	store = red.made("/v1/memory_stores", object{"name": "n"})
	red.made("/v1/memory_stores/"+store+"/memories", object{"path": "/b", "content": full})
}

// TestMemoryStrict checks that invalid requests are refused with the reason.
func TestMemoryStrict(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	store := h.made("/v1/memory_stores", object{"name": "n"})
	at := "/v1/memory_stores/" + store
	m := h.must("POST", at+"/memories", object{"path": "/a/b/c", "content": "x"})
	one := at + "/memories/" + fmt.Sprint(m["id"])
	h.made(at+"/memories", object{"path": "/a/d", "content": "x"})
	agent, env := h.made("/v1/agents", someAgent), h.made("/v1/environments", someEnv)
	with1 := func(r object) object { return object{"agent": agent, "environment_id": env, "resources": []any{r}} }
	ours := object{"type": "memory_store", "memory_store_id": store}
	for _, tc := range []struct {
		method, path string
		body         any
		status       int
		want         string
	}{
		{"POST", "/v1/memory_stores", object{}, 400, "name"},
		{"POST", "/v1/memory_stores", object{"name": "a\nb"}, 400, "one line"},
		{"POST", "/v1/memory_stores", object{"name": "a", "description": strings.Repeat("d", 1025)}, 400, "at most 1024"},
		{"GET", "/v1/memory_stores/memstore_none", nil, 404, "memstore_none"},
		{"POST", at + "/memories", object{"path": "/x"}, 400, "content"},
		{"POST", at + "/memories", object{"path": "x", "content": ""}, 400, "begin with /"},
		{"POST", at + "/memories", object{"path": "/x/../y", "content": ""}, 400, "segment"},
		{"POST", at + "/memories", object{"path": "/x/", "content": ""}, 400, "segment"},
		{"POST", at + "/memories", object{"path": "/x\u200b", "content": ""}, 400, "can't be seen"},
		{"POST", at + "/memories", object{"path": strings.Repeat("/x", 21), "content": ""}, 400, "at most 20"},
		{"POST", at + "/memories", object{"path": "/" + strings.Repeat("x", 1024), "content": ""}, 400, "at most 1024"},
		{"POST", at + "/memories", object{"path": "/x", "content": strings.Repeat("x", 102_401)}, 413, "at most 102400"},
		{"POST", at + "/memories", object{"path": "/a/d", "content": ""}, 409, "/a/d"},
		{"POST", at + "/memories?view=x", object{"path": "/x", "content": ""}, 400, "view"},
		{"POST", one, object{"path": "/a/d"}, 409, "/a/d"},
		{"POST", one, object{"content": strings.Repeat("x", 102_401)}, 413, "at most 102400"},
		{"POST", one, object{"precondition": object{"type": "etag"}}, 400, "precondition.type"},
		{"POST", one, object{"precondition": object{"type": "content_sha256", "content_sha256": "A"}}, 400, "64"},
		{"POST", one, object{"content": "y", "precondition": object{"type": "content_sha256", "content_sha256": strings.Repeat("0", 64)}}, 409, "changed"},
		{"DELETE", one + "?expected_content_sha256=" + strings.Repeat("0", 64), nil, 409, "changed"},
		{"DELETE", one + "?expected_content_sha256=x", nil, 400, "64"},
		{"GET", at + "/memories/mem_none", nil, 404, "mem_none"},
		{"GET", at + "/memories?path_prefix=/a", nil, 400, "path_prefix"},
		{"GET", at + "/memories?depth=21", nil, 400, "depth"},
		{"GET", at + "/memory_versions?operation=x", nil, 400, "operation"},
		{"GET", at + "/memory_versions/memver_none", nil, 404, "memver_none"},
		{"POST", "/v1/sessions", with1(object{"type": "memory_store", "memory_store_id": "memstore_none"}), 404, "memstore_none"},
		{"POST", "/v1/sessions", with1(with(ours, "access", "write")), 400, "resources.0.access"},
		{"POST", "/v1/sessions", with1(with(ours, "instructions", 1)), 400, "resources.0"},
		{"POST", "/v1/sessions", with1(with(ours, "nope", 1)), 400, "nope"},
		{"POST", "/v1/sessions", with1(with(ours, "instructions", strings.Repeat("x", 4097))), 400, "at most 4096"},
		{"POST", "/v1/sessions", with(with1(ours), "resources", []any{ours, ours}), 400, "twice"},
	} {
		status, message := h.problem(tc.method, tc.path, tc.body)
		if status != tc.status || !strings.Contains(message, tc.want) {
			t.Errorf("%s %s %v: %d %s, want %d with %q", tc.method, tc.path, tc.body, status, message, tc.status, tc.want)
		}
	}
	for query, want := range map[string]string{
		"": `/a/b/c /a/d`, "?depth=1": `/a/`, "?path_prefix=/a/&depth=1": `/a/b/ /a/d`, "?path_prefix=/a/b/": `/a/b/c`, "?path_prefix=/b/": ``,
	} {
		var paths []string
		for _, one := range h.must("GET", at+"/memories"+query, nil)["data"].([]any) {
			paths = append(paths, fmt.Sprint(one.(object)["path"]))
		}
		if got := strings.Join(paths, " "); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
}

// TestTenantsMemories checks that no tenant sees or uses the memories of another.
func TestTenantsMemories(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	red, blue := h.as("ann", "red"), h.as("bob", "blue")
	store := red.made("/v1/memory_stores", object{"name": "n"})
	at := "/v1/memory_stores/" + store
	m := red.must("POST", at+"/memories", object{"path": "/a", "content": "x"})
	memory, version := at+"/memories/"+fmt.Sprint(m["id"]), at+"/memory_versions/"+fmt.Sprint(m["memory_version_id"])
	own := blue.made("/v1/memory_stores", object{"name": "n"})
	for _, tc := range []struct {
		method, path string
		body         any
	}{
		{"GET", at, nil},
		{"POST", at, object{"name": "x"}},
		{"POST", at + "/archive", nil},
		{"DELETE", at, nil},
		{"GET", at + "/memories", nil},
		{"POST", at + "/memories", object{"path": "/b", "content": ""}},
		{"GET", memory, nil},
		{"POST", memory, object{"content": "y"}},
		{"DELETE", memory, nil},
		{"GET", at + "/memory_versions", nil},
		{"GET", version, nil},
		{"POST", version + "/redact", nil},
		{"GET", "/v1/memory_stores/" + own + "/memories/" + fmt.Sprint(m["id"]), nil},
	} {
		if status, message := blue.problem(tc.method, tc.path, tc.body); status != http.StatusNotFound {
			t.Errorf("%s %s: %d %s", tc.method, tc.path, status, message)
		}
	}
	if n := len(blue.must("GET", "/v1/memory_stores", nil)["data"].([]any)); n != 1 {
		t.Errorf("another tenant sees %d stores, want its own", n)
	}
	for _, other := range []*house{blue, h} { // who sees all has no session of another tenant, either
		agent, env := other.made("/v1/agents", someAgent), other.made("/v1/environments", someEnv)
		status, message := other.problem("POST", "/v1/sessions", object{
			"agent": agent, "environment_id": env, "resources": []any{object{"type": "memory_store", "memory_store_id": store}},
		})
		if status != http.StatusNotFound {
			t.Errorf("a session with the store of another tenant: %d %s", status, message)
		}
	}
	if got := red.must("GET", memory, nil)["content"]; got != "x" {
		t.Errorf("content %v", got)
	}
}

package managed_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestPages checks that a client gets the rest of every list once, even if the first entry of the next page was
// removed meanwhile, even after a restart, and with pages of one.
func TestPages(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	agent, env := h.made("/v1/agents", someAgent), h.made("/v1/environments", someEnv)
	vault, store := h.made("/v1/vaults", object{"display_name": "v"}), h.made("/v1/memory_stores", object{"name": "m"})
	skill := fmt.Sprint(h.skill(someSkill)["id"])
	session := h.made("/v1/sessions", object{"agent": agent, "environment_id": env})
	h.until("/v1/sessions/"+session, "idle")
	begin := []any{object{"type": "user.message", "content": []any{object{"type": "text", "text": "say: x"}}}}
	posted := func(path string, body func(i int) any) func(i int) string {
		return func(i int) string { return h.made(path, body(i)) }
	}
	deleted := func(path string) func(id string) { return func(id string) { h.must("DELETE", path+"/"+id, nil) } }
	archived := func(path string) func(id string) {
		return func(id string) { h.must("POST", path+"/"+id+"/archive", nil) }
	}
	same := func(body any) func(int) any { return func(int) any { return body } }
	credentials, memories := "/v1/vaults/"+vault+"/credentials", "/v1/memory_stores/"+store+"/memories"
	resources, versions, hooks := "/v1/sessions/"+session+"/resources", "/v1/skills/"+skill+"/versions", "/v1/organizations/webhooks"
	lists := map[string]struct {
		path string
		make func(i int) string
		gone func(id string)
	}{
		"agents":        {"/v1/agents?", posted("/v1/agents", same(someAgent)), archived("/v1/agents")},
		"environments":  {"/v1/environments?", posted("/v1/environments", same(someEnv)), deleted("/v1/environments")},
		"vaults":        {"/v1/vaults?", posted("/v1/vaults", same(object{"display_name": "v"})), deleted("/v1/vaults")},
		"memory stores": {"/v1/memory_stores?", posted("/v1/memory_stores", same(object{"name": "m"})), deleted("/v1/memory_stores")},
		"deployments": {"/v1/deployments?", posted("/v1/deployments", same(object{
			"name": "d", "agent": agent, "environment_id": env, "initial_events": begin,
		})), archived("/v1/deployments")},
		"credentials": {credentials + "?", posted(credentials, func(i int) any {
			return object{"auth": object{"type": "static_bearer", "token": "t", "mcp_server_url": fmt.Sprintf("https://%d.example.org", i)}}
		}), deleted(credentials)},
		"memories": {memories + "?", posted(memories, func(i int) any {
			return object{"path": fmt.Sprintf("/%d", i), "content": "x"}
		}), deleted(memories)},
		"files":  {"/v1/files?", func(int) string { return h.uploaded("f", "x") }, deleted("/v1/files")},
		"skills": {"/v1/skills?", func(int) string { return fmt.Sprint(h.skill(someSkill)["id"]) }, deleted("/v1/skills")},
		"skill versions": {versions + "?", func(int) string {
			return fmt.Sprint(h.formed(versions, field{"files[]", "greeting/SKILL.md", someSkill})["id"])
		}, deleted(versions)},
		"resources": {resources + "?", posted(resources, func(i int) any {
			return object{"type": "file", "file_id": h.uploaded("r", "x"), "mount_path": fmt.Sprintf("/workspace/r%d", i)}
		}), deleted(resources)},
		"webhooks": {hooks + "?", posted(hooks, func(i int) any {
			return object{"name": "w", "url": fmt.Sprintf("https://example.org/%d", i), "enabled_events": []any{"*"}}
		}), deleted(hooks)},
		"webhooks backwards": {hooks + "?order=asc&", posted(hooks, func(i int) any {
			return object{"name": "w", "url": fmt.Sprintf("https://example.org/%d", i), "enabled_events": []any{"*"}}
		}), deleted(hooks)},
		"sessions": {"/v1/sessions?agent_id=" + agent + "&", posted("/v1/sessions", same(object{
			"agent": agent, "environment_id": env,
		})), archived("/v1/sessions")},
		"sessions backwards": {"/v1/sessions?order=asc&", posted("/v1/sessions", same(object{
			"agent": agent, "environment_id": env,
		})), archived("/v1/sessions")},
	}
	before, next, went := map[string][]string{}, map[string]string{}, map[string]bool{}
	var names []string
	for name, l := range lists {
		names = append(names, name)
		for i := range 5 {
			id := l.make(i)
			if strings.HasPrefix(name, "sessions") {
				h.until("/v1/sessions/"+id, "idle")
			}
		}
	}
	slices.Sort(names)
	for _, name := range names {
		l := lists[name]
		all, _ := h.page(l.path+"limit=100", "")
		var byOne []string
		for from := ""; ; {
			ids, more := h.page(l.path+"limit=1", from)
			if byOne = append(byOne, ids...); more == "" || len(byOne) > len(all) {
				break
			}
			from = more
		}
		if !slices.Equal(all, byOne) || len(all) < 5 {
			t.Errorf("%s: %v, and one by one %v", name, all, byOne)
		}
		ids, more := h.page(l.path+"limit=2", "")
		if !slices.Equal(ids, all[:2]) {
			t.Errorf("%s: the first are %v", name, ids)
		}
		for _, id := range all[1:3] { // the last of the page, and the first of the next one
			l.gone(id)
			went[id] = true
		}
		before[name], next[name] = all, more
	}
	h.close()
	h.open()
	for _, name := range names {
		want := slices.DeleteFunc(before[name][2:], func(id string) bool { return went[id] })
		if rest, _ := h.page(lists[name].path+"limit=100", next[name]); !slices.Equal(rest, want) {
			t.Errorf("%s: behind %s there is %v, not %v", name, next[name], rest, want)
		}
	}
	for _, page := range []string{"x", "%22", "IiI", "file_x"} {
		status, message := h.problem("GET", "/v1/files?page="+page, nil)
		if status != http.StatusBadRequest || !strings.Contains(message, "page") {
			t.Errorf("page %s: %d %s", page, status, message)
		}
	}
}

// page is the ids of a page, and the key of the next one; empty for the last.
func (h *house) page(path, from string) (ids []string, next string) {
	h.t.Helper()
	by := "page"
	if strings.Contains(path, "/webhooks") {
		by = "after_id"
	}
	if from != "" {
		path += "&" + by + "=" + from
	}
	v := h.must("GET", path, nil)
	for _, o := range v["data"].([]any) {
		ids = append(ids, fmt.Sprint(o.(object)["id"]))
	}
	switch {
	case v["has_more"] == true:
		next = fmt.Sprint(v["last_id"])
	case v["next_page"] != nil:
		next = fmt.Sprint(v["next_page"])
	}
	return ids, next
}

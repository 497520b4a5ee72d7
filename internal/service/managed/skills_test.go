package managed_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

const someSkill = "---\nname: greeting\ndescription: How to greet.\n---\nSay heron. Run scripts/hello.sh.\n"

// skill uploads one, and returns it.
func (h *house) skill(text string) object {
	h.t.Helper()
	return h.formed("/v1/skills", field{"files[]", "greeting/SKILL.md", text}, field{
		"files[]",
		"greeting/scripts/hello.sh", "#!/bin/sh\necho hello from a script\n",
	},
		field{"display_name", "", "Greeting"})
}

// TestSkills checks that an agent has the skills that it names, in the version that is meant.
func TestSkills(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	made := h.skill(someSkill)
	id, first := fmt.Sprint(made["id"]), fmt.Sprint(made["latest_version_id"])
	at := "/v1/skills/" + id
	agent := func(version any) string {
		ref := object{"type": "custom", "skill_id": id}
		if version != nil {
			ref["version"] = version
		}
		return h.made("/v1/agents", with(someAgent, "skills", []any{ref}))
	}
	env := h.made("/v1/environments", someEnv)
	start := func(agent string) string {
		return h.made("/v1/sessions", object{"agent": agent, "environment_id": env})
	}
	newest, pinned := agent(nil), agent(first)
	before := start(newest)
	has(t, h.run(before, `call: skill {"name":"greeting"}`), "Say heron.", "scripts/hello.sh")
	has(t, h.run(before, "bash: .inspan/skills/greeting/scripts/hello.sh"), "hello from a script")
	second := h.formed(at+"/versions", field{"files", "greeting/SKILL.md", strings.ReplaceAll(someSkill, "heron", "crane")})
	h.close()
	h.open()
	has(t, h.run(start(newest), `call: skill {"name":"greeting"}`), "Say crane.")
	has(t, h.run(start(pinned), `call: skill {"name":"greeting"}`), "Say heron.")
	has(t, h.run(before, `call: skill {"name":"greeting"}`), "Say heron.")
	if got := h.must("GET", at, nil); got["latest_version_id"] != second["id"] || got["display_name"] != "Greeting" {
		t.Errorf("skill %v", got)
	}
	_, raw := h.do("GET", at+"/versions/"+first+"/content", nil)
	files, err := zip.NewReader(bytes.NewReader([]byte(raw)), int64(len(raw)))
	if err != nil || len(files.File) != 2 {
		t.Fatalf("%v, %v", files, err)
	}
	f, err := files.Open("greeting/SKILL.md")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(f); err != nil || string(text) != someSkill {
		t.Errorf("%q, %v", text, err)
	}
	h.must("DELETE", at+"/versions/"+fmt.Sprint(second["id"]), nil)
	if got := h.must("GET", at, nil); got["latest_version_id"] != first {
		t.Errorf("skill %v", got)
	}
	if status, message := h.problem("DELETE", at+"/versions/"+first, nil); status != http.StatusConflict {
		t.Errorf("the only version: %d %s", status, message)
	}
	h.must("DELETE", at, nil)
	if n := len(h.must("GET", "/v1/skills", nil)["data"].([]any)); n != 0 {
		t.Errorf("%d skills are left", n)
	}
	if status, message := h.problem("POST", "/v1/sessions", object{"agent": newest, "environment_id": env}); status != http.StatusNotFound {
		t.Errorf("a session with a skill that is gone: %d %s", status, message)
	}
}

// TestSkillsStrict checks that invalid requests are refused with the reason.
func TestSkillsStrict(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	id := fmt.Sprint(h.skill(someSkill)["id"])
	file := func(name, text string) field { return field{"files", name, text} }
	for _, tc := range []struct {
		path   string
		fields []field
		status int
		want   string
	}{
		{"/v1/skills", nil, 400, "files"},
		{"/v1/skills", []field{file("SKILL.md", someSkill)}, 400, "one folder"},
		{"/v1/skills", []field{file("a/b.md", someSkill)}, 400, "no a/SKILL.md"},
		{"/v1/skills", []field{file("a/SKILL.md", someSkill), file("b/c", "")}, 400, "one folder"},
		{"/v1/skills", []field{file("a/SKILL.md", someSkill), file("a/../../c", "")}, 400, "path"},
		{"/v1/skills", []field{file("a/SKILL.md", someSkill), file("/a/c", "")}, 400, "path"},
		{"/v1/skills", []field{file("a/SKILL.md", someSkill), file("a/.git/config", "")}, 400, "git"},
		{"/v1/skills", []field{file("a/SKILL.md", someSkill), file("a/SKILL.md", someSkill)}, 400, "twice"},
		{"/v1/skills", []field{file("a/SKILL.md", someSkill), file("a/b", ""), file("a/b/c/d", "")}, 400, "folder"},
		{"/v1/skills", []field{file("a/SKILL.md", "---\nname: x\n---\n")}, 400, "description"},
		{"/v1/skills", []field{file("a/SKILL.md", strings.Replace(someSkill, "greeting", "../x", 1))}, 400, "my-skill"},
		{"/v1/skills", []field{file("a/SKILL.md", someSkill+strings.Repeat("x", 300<<10))}, 413, "at most"},
		{"/v1/skills", []field{file("a/SKILL.md", someSkill), {"display_name", "", ""}}, 400, "display_name"},
		{"/v1/skills", []field{file("a/SKILL.md", someSkill), {"nope", "", ""}}, 400, "nope"},
		{"/v1/skills/" + id + "/versions", []field{file("a/SKILL.md", strings.Replace(someSkill, "greeting", "other", 1))}, 400, "greeting"},
		{"/v1/skills/skill_none/versions", []field{file("a/SKILL.md", someSkill)}, 404, "skill_none"},
	} {
		if status, text := h.form(tc.path, tc.fields...); status != tc.status || !strings.Contains(text, tc.want) {
			t.Errorf("%s %v: %d %s, want %d with %q", tc.path, tc.fields, status, text, tc.status, tc.want)
		}
	}
	other := fmt.Sprint(h.skill(someSkill)["id"])
	for _, tc := range []struct {
		skills any
		status int
		want   string
	}{
		{[]any{object{"type": "anthropic", "skill_id": "xlsx"}}, 400, "vendor"},
		{[]any{object{"type": "x", "skill_id": id}}, 400, "skills.0.type"},
		{[]any{object{"type": "custom", "skill_id": "skill_none"}}, 404, "skill_none"},
		{[]any{object{"type": "custom", "skill_id": id, "version": "skillver_none"}}, 404, "skillver_none"},
		{[]any{object{"type": "custom", "skill_id": id}, object{"type": "custom", "skill_id": other}}, 400, "different names"},
		{[]any{object{"type": "custom", "skill_id": id, "nope": 1}}, 400, "nope"},
	} {
		status, message := h.problem("POST", "/v1/agents", with(someAgent, "skills", tc.skills))
		if status != tc.status || !strings.Contains(message, tc.want) {
			t.Errorf("%v: %d %s, want %d with %q", tc.skills, status, message, tc.status, tc.want)
		}
	}
}

// TestTenantsSkills checks that no tenant sees or uses the skills of another.
func TestTenantsSkills(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	red, blue := h.as("ann", "red"), h.as("bob", "blue")
	made := red.skill(someSkill)
	at := "/v1/skills/" + fmt.Sprint(made["id"])
	version := at + "/versions/" + fmt.Sprint(made["latest_version_id"])
	for _, tc := range []struct{ method, path string }{
		{"GET", at},
		{"DELETE", at},
		{"GET", at + "/versions"},
		{"GET", version},
		{"GET", version + "/content"},
		{"DELETE", version},
	} {
		if status, message := blue.problem(tc.method, tc.path, nil); status != http.StatusNotFound {
			t.Errorf("%s %s: %d %s", tc.method, tc.path, status, message)
		}
	}
	if status, text := blue.form(at+"/versions", field{"files", "greeting/SKILL.md", someSkill}); status != http.StatusNotFound {
		t.Errorf("a version for the skill of another tenant: %d %s", status, text)
	}
	if n := len(blue.must("GET", "/v1/skills", nil)["data"].([]any)); n != 0 {
		t.Errorf("another tenant sees %d skills", n)
	}
	for _, other := range []*house{blue, h} { // who sees all uses none of another tenant, either
		status, message := other.problem("POST", "/v1/agents", with(someAgent, "skills", []any{object{"type": "custom", "skill_id": made["id"]}}))
		if status != http.StatusNotFound {
			t.Errorf("an agent with the skill of another tenant: %d %s", status, message)
		}
	}
}

package tools_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/skill"
	"github.com/inspan/inspan/internal/tools"
	"github.com/inspan/inspan/tool"
)

// newSkills is a session with a library of one folder.
func newSkills(t *testing.T, files map[string]string) *session {
	t.Helper()
	s, dir := newSession(t), t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s.tools["skill"] = tools.Skill(&skill.Library{Folders: []skill.Folder{{Path: dir, Source: "project"}}, Builtin: true})
	return s
}

func TestSkill(t *testing.T) {
	s := newSkills(t, map[string]string{
		"greet/SKILL.md": "---\nname: greet\ndescription: Greets.\n---\nSay hello to $1.", "greet/references/x.md": "details",
		"greet/image.png": "\x89PNG\x00",
		"deploy/SKILL.md": "---\nname: deploy\ndescription: Deploys.\ndisable-model-invocation: true\n---\nsecret steps",
		"deploy/x.md":     "part of it",
	})
	r, err := s.try(t.Context(), "skill", args{"name": "greet", "args": `"the world" now`})
	if err != nil || r.Lasting != "skill greet" || !strings.HasSuffix(r.Parts.Text(), "\n\nSay hello to the world.") ||
		!strings.Contains(r.Parts.Text(), "- references/x.md (7 bytes)\n") {
		t.Errorf("%+v, %v", r, err)
	}
	r, err = s.try(t.Context(), "skill", args{"name": "greet", "file": "references/x.md"})
	if err != nil || r.Lasting != "" || r.Parts.Text() != "details" {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err = s.try(t.Context(), "skill", args{"name": "deploy", "file": "x.md"}); err != nil || r.Parts.Text() != "part of it" {
		t.Errorf("a file of a manual skill: %+v, %v", r, err)
	}
	// What came with the workspace may be a link to anywhere, so the file is judged.
	if e := s.effects("skill", args{"name": "greet", "file": "references/x.md"}); len(e) != 1 || e[0].Kind != tool.Read ||
		!strings.HasSuffix(e[0].Path, "/greet/references/x.md") {
		t.Errorf("effects %+v", e)
	}
	s.fails("skill", args{"name": "deploy"}, "only a person may invoke the skill deploy")
	s.fails("skill", args{"name": "deploy", "file": "SKILL.md"}, "when it is invoked")
	s.fails("skill", args{"name": "deploy", "file": "./skill.md"}, "")
	s.fails("skill", args{"name": "greeet"}, "did you mean greet?")
	s.fails("skill", args{"name": "greeet", "file": "x"}, "did you mean greet?")
	s.fails("skill", args{"name": "greet", "file": "x.md"}, "did you mean references/x.md?")
	s.fails("skill", args{"name": "greet", "file": "../deploy/x.md"}, "is not in the folder")
	s.fails("skill", args{"name": "greet", "file": "image.png"}, "has 5 bytes of something else")
}

// TestSkillOfSkills holds that a skill can send a model to others: what its text
// says to call can be called.
func TestSkillOfSkills(t *testing.T) {
	s := newSkills(t, map[string]string{
		"release/SKILL.md": "---\nname: release\ndescription: Releases.\n---\n" +
			"First use the skill `notes` with args \"v1 $1\". Then use the skill `plan`.",
		"notes/SKILL.md": "---\nname: notes\ndescription: Writes notes.\n---\nWrite notes for $ARGUMENTS.",
	})
	result := func(a args) tool.Result {
		t.Helper()
		r, err := s.try(t.Context(), "skill", a)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	text := result(args{"name": "release", "args": "today"}).Parts.Text()
	found := regexp.MustCompile("the skill `([a-z]+)`(?: with args \"(.*?)\")?").FindAllStringSubmatch(text, -1)
	if len(found) != 2 {
		t.Fatalf("%q", text)
	}
	inner := result(args{"name": found[0][1], "args": found[0][2]})
	if !strings.HasSuffix(inner.Parts.Text(), "\n\nWrite notes for v1 today.") || inner.Lasting != "skill notes" {
		t.Errorf("%+v", inner)
	}
	if r := result(args{"name": found[1][1]}); r.Lasting != "skill plan" || !strings.Contains(r.Parts.Text(), "(built in)") {
		t.Errorf("%+v", r)
	}
}

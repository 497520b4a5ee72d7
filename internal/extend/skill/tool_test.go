package skill_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/tool"
)

// shelf is the tool of a library of one folder, in a session.
type shelf struct {
	t    *testing.T
	tool tool.Tool
	env  tool.Env
}

func newShelf(t *testing.T, files map[string]string) shelf {
	t.Helper()
	env, err := sandbox.Local(t.TempDir(), nil, sandbox.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l, _ := library(t, files)
	l.Builtin = true
	return shelf{t, l.Tool(), env}
}

// args is written as JSON into a call.
type args map[string]any

func (s shelf) call(a args) *tool.Call {
	s.t.Helper()
	raw, err := json.Marshal(a)
	if err == nil {
		raw, err = s.tool.Check(raw)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return &tool.Call{Name: s.tool.Name, Args: raw, Env: s.env, Cwd: s.env.Root}
}

func (s shelf) try(a args) (tool.Result, error) {
	s.t.Helper()
	return s.tool.Run(s.t.Context(), s.call(a))
}

// fails makes a call that must not work, for a reason that holds some words.
func (s shelf) fails(a args, words string) {
	s.t.Helper()
	if r, err := s.try(a); err == nil || !strings.Contains(err.Error(), words) {
		s.t.Errorf("%v: %q, %v; want %q", a, r.Parts.Text(), err, words)
	}
}

func TestSkill(t *testing.T) {
	s := newShelf(t, map[string]string{
		"greet/SKILL.md": "---\nname: greet\ndescription: Greets.\n---\nSay hello to $1.", "greet/references/x.md": "details",
		"greet/image.png": "\x89PNG\x00",
		"deploy/SKILL.md": "---\nname: deploy\ndescription: Deploys.\ndisable-model-invocation: true\n---\nsecret steps",
		"deploy/x.md":     "part of it",
	})
	r, err := s.try(args{"name": "greet", "args": `"the world" now`})
	if err != nil || r.Lasting != "skill greet" || !strings.HasSuffix(r.Parts.Text(), "\n\nSay hello to the world.") ||
		!strings.Contains(r.Parts.Text(), "- references/x.md (7 bytes)\n") {
		t.Errorf("%+v, %v", r, err)
	}
	r, err = s.try(args{"name": "greet", "file": "references/x.md"})
	if err != nil || r.Lasting != "" || r.Parts.Text() != "details" {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err = s.try(args{"name": "deploy", "file": "x.md"}); err != nil || r.Parts.Text() != "part of it" {
		t.Errorf("a file of a manual skill: %+v, %v", r, err)
	}
	// What came with the workspace may be a link to anywhere, so the file is judged.
	e, err := s.tool.Effects(t.Context(), s.call(args{"name": "greet", "file": "references/x.md"}))
	if err != nil || len(e) != 1 || e[0].Kind != tool.Read || !strings.HasSuffix(e[0].Path, "/greet/references/x.md") {
		t.Errorf("effects %+v, %v", e, err)
	}
	s.fails(args{"name": "deploy"}, "only a person may invoke the skill deploy")
	s.fails(args{"name": "deploy", "file": "SKILL.md"}, "when it is invoked")
	s.fails(args{"name": "deploy", "file": "./skill.md"}, "")
	s.fails(args{"name": "greeet"}, "did you mean greet?")
	s.fails(args{"name": "greeet", "file": "x"}, "did you mean greet?")
	s.fails(args{"name": "greet", "file": "x.md"}, "did you mean references/x.md?")
	s.fails(args{"name": "greet", "file": "../deploy/x.md"}, "is not in the folder")
	s.fails(args{"name": "greet", "file": "image.png"}, "image.png is not text (5 bytes)")
}

// TestSkillOfSkills checks that a skill can refer a model to others: a call that its text names can be made.
func TestSkillOfSkills(t *testing.T) {
	s := newShelf(t, map[string]string{
		"release/SKILL.md": "---\nname: release\ndescription: Releases.\n---\n" +
			"First use the skill `notes` with args \"v1 $1\". Then use the skill `plan`.",
		"notes/SKILL.md": "---\nname: notes\ndescription: Writes notes.\n---\nWrite notes for $ARGUMENTS.",
	})
	result := func(a args) tool.Result {
		t.Helper()
		r, err := s.try(a)
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

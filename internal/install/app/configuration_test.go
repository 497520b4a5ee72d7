package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/store"
)

// TestConfiguration checks that sessions which are begun alike say so by one digest, in whatever folder, and that each
// part of a configuration changes it.
func TestConfiguration(t *testing.T) {
	of := func(settings string, options app.Options, files map[string]string) string {
		t.Helper()
		a, root := load(t, settings), t.TempDir()
		for name, text := range files {
			path := filepath.Join(root, name)
			if own, is := strings.CutPrefix(name, "~/"); is {
				path = filepath.Join(filepath.Dir(a.ConfigPath), own)
			}
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		options.Model = "script"
		host := a.Host(options, func(string) {})
		s, err := host.New(t.Context(), root)
		st := works(t, s, err, "say: hi")
		for e, err := range store.Events(t.Context(), host.Sessions(), st.Session) {
			if err != nil {
				t.Fatal(err)
			}
			if b, is := e.Body.(event.Opened); is {
				return b.Config
			}
		}
		return ""
	}
	skill := func(body string) map[string]string {
		return map[string]string{".agents/skills/s/SKILL.md": "---\nname: s\ndescription: Does things. Use for things.\n---\n" + body}
	}
	program := func(runs string) map[string]string {
		return map[string]string{"~/tools/stamp": "#!/bin/sh\n[ $1 = --describe ] && { echo '{\"name\":\"stamp\",\"description\":\"Stamps.\"," +
			"\"schema\":{\"type\":\"object\"}}'; exit; }\n" + runs + "\n"}
	}
	const settings = "mode = 'auto'\n"
	usual := of(settings, app.Options{}, nil)
	if usual == "" || usual != of(settings, app.Options{}, nil) {
		t.Fatalf("%q is not the digest of another session that is begun alike", usual)
	}
	seen := map[string]string{usual: "the usual one"}
	for what, digest := range map[string]string{
		"settings":              of(settings+"max_turns = 7\n", app.Options{}, nil),
		"a rule":                of(settings+"deny = ['bash(x)']\n", app.Options{}, nil),
		"a lever":               of(settings+"[levers]\nverify = 'on'\n", app.Options{}, nil),
		"instructions":          of(settings, app.Options{}, map[string]string{"AGENTS.md": "Be brief."}),
		"a skill":               of(settings, app.Options{}, skill("Do it.\n")),
		"the body of a skill":   of(settings, app.Options{}, skill("Do not.\n")),
		"memory":                of(settings, app.Options{}, map[string]string{".inspan/memory/MEMORY.md": "- (2026-11-01) tests run with make\n"}),
		"a mode":                of(settings, app.Options{Mode: "plan"}, nil),
		"a limit":               of(settings, app.Options{Limits: inspan.Limits{Turns: 3}}, nil),
		"a kind of agent":       of(settings, app.Options{}, map[string]string{".inspan/agents/k.md": "---\nname: k\ndescription: Does things.\n---\nDo."}),
		"an MCP server":         of(settings+"[mcp.servers.m]\ncommand = ['true']\n", app.Options{}, nil),
		"a hook":                of(settings+"[[hook]]\non = 'stop'\ncommand = 'true'\n", app.Options{}, nil),
		"a program as a tool":   of(settings, app.Options{}, program("date")),
		"the body of a program": of(settings, app.Options{}, program("echo")),
		"what the command adds": of(settings, app.Options{AppendSystem: "Be brief."}, nil),
	} {
		if other := seen[digest]; other != "" || digest == "" {
			t.Errorf("%s makes no difference: %q is that of %s", what, digest, other)
		}
		seen[digest] = what
	}
}

package mcp_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/extend/mcp"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

func TestStdio(t *testing.T) {
	server := self(t, "own", "honest")
	server.Env = map[string]string{"GREETING": "it's ${WHO}\nand more", "NAME": "${MISSING:-nobody}"}
	h := newHouse(t, server)
	h.Expand = func(_ mcp.Server, name string) string { return map[string]string{"WHO": "$(me) 'quoted'"}[name] }
	s := h.begin("own", mcp.Ready)
	if s.Revision != "2026-07-28" || s.Version != "honest 1.2" || s.Tools != 5 || s.Source != "user" {
		t.Errorf("%+v", s)
	}
	if names := h.names(); names != "mcp__own__ask mcp__own__echo mcp__own__env mcp__own__fail mcp__own__steps" {
		t.Error(names)
	}
	res, err := h.call(t.Context(), "mcp__own__env", `{"text":"GREETING"}`)
	if err != nil || text(res) != "it's $(me) 'quoted'\nand more" {
		t.Errorf("%q, %v", text(res), err)
	}
	res, err = h.call(t.Context(), "mcp__own__env", `{"text":"NAME"}`)
	if err != nil || text(res) != "nobody" {
		t.Errorf("%q, %v", text(res), err)
	}
	res, err = h.call(t.Context(), "mcp__own__fail", `{}`)
	if err == nil || text(res) != "no way" || !res.Untrusted {
		t.Errorf("%q, %v", text(res), err)
	}
	if s := h.status("own"); s.Typical <= 0 {
		t.Errorf("calls took %v", s.Typical)
	}
}

func TestPromptsAndResources(t *testing.T) {
	h := newHouse(t, self(t, "own", "honest"))
	h.begin("own", mcp.Ready)
	h.until("prompts", func() bool { return len(h.Prompts()) > 0 })
	list := h.Prompts()
	if len(list) != 1 || list[0].Server != "own" || list[0].Name != "greet" || len(list[0].Args) != 1 || !list[0].Args[0].Required {
		t.Errorf("%+v", list)
	}
	if said, err := h.Prompt(t.Context(), "own", "greet", map[string]string{"who": "Ada"}); err != nil || said != "Greet Ada" {
		t.Errorf("%q, %v", said, err)
	}
	if _, err := h.Prompt(t.Context(), "own", "none", nil); err == nil {
		t.Error("a prompt that is not there was given")
	}
	if _, err := h.Prompt(t.Context(), "other", "greet", nil); err == nil {
		t.Error("a server that is not there answered")
	}
	resources, err := h.Resources(t.Context(), "own")
	if err != nil || len(resources) != 2 || resources[0].URI != "note://1" || resources[1].URI != "note://{id}" {
		t.Errorf("%+v, %v", resources, err)
	}
	p, err := h.Read(t.Context(), "own", "note://1")
	if err != nil || len(p) != 1 || p[0].(llm.Text).Text != "[resource note://1]\na note" {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := h.Read(t.Context(), "own", "note://77"); err == nil {
		t.Error("a resource that is not there was read")
	}
}

func TestProgressAndCancel(t *testing.T) {
	for _, revision := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(revision, func(t *testing.T) {
			server := self(t, "own", "honest")
			if revision != "2026-07-28" {
				server.Command[2] = "handshake"
			}
			h := newHouse(t, server)
			if s := h.begin("own", mcp.Ready); s.Revision != revision {
				t.Fatalf("%+v", s)
			}
			path := filepath.Join(h.Env.Root, "stopped")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			steps := h.tool("mcp__own__steps")
			said := ""
			res, err := steps.Run(ctx, &tool.Call{Args: []byte(`{"text":"` + path + `"}`), Progress: func(text string) {
				said += text
				cancel()
			}})
			if !errors.Is(err, context.Canceled) || len(res.Parts) > 0 || said != "1 of 3: one\\x1b[31m\n" {
				t.Errorf("%q, %v, %v", said, res, err)
			}
			h.until("the server told to stop", func() bool {
				data, _ := os.ReadFile(path)
				return string(data) == "stopped"
			})
		})
	}
}

func TestTimeout(t *testing.T) {
	server := self(t, "own", "hanging")
	server.Timeout = 50 * time.Millisecond
	h := newHouse(t, server)
	h.begin("own", mcp.Ready)
	_, err := h.call(t.Context(), "mcp__own__look", `{}`)
	if err == nil || !strings.Contains(err.Error(), "did not answer within 50ms") {
		t.Error(err)
	}
}

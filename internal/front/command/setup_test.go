package command

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/testkit/anthropictest"
	"github.com/inspan/inspan/llm"
)

// TestFirstStart starts inspan as a newcomer does, without a model, in a real terminal: it asks for one, accepts a key
// without showing it, and continues to the conversation. An interrupt while a key is typed leaves the terminal as it
// was.
func TestFirstStart(t *testing.T) {
	t.Parallel()
	const key = "sk-ant-0123456789abcdef"
	vendor := anthropictest.Start(t, &anthropictest.Server{
		Key: key, Models: []string{"claude-opus-5-5", "claude-sonnet-5-5"},
		Answer: func(*http.Request, []byte) anthropictest.Answer {
			return anthropictest.Answer{Parts: llm.Say("Good morning from the vendor."), Usage: llm.Usage{Input: 9, Output: 5}}
		},
	})
	h := newHome(t, "http://unused.invalid")
	settings := "[providers.anthropic]\nkind = \"anthropic\"\nbase_url = \"" + vendor + "\"\n"
	path := filepath.Join(h.dir, "config", "config.toml")
	if err := os.WriteFile(path, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newTerminal(t, h, 100, 40)
	s.Types("inspan")
	s.Shows("Which model should inspan use?", "Anthropic", "a key from console.anthropic.com", "Enter selects, Esc goes back")
	s.Types("anthropic")
	s.Shows("Paste the key of anthropic, which is not shown")
	s.Types("sk-ant-wrong-key")
	s.Shows("invalid x-api-key. Check that you copied all of it.\nPaste the key of anthropic")
	s.Types(key)
	s.Shows("anthropic accepts the key and has 2 models", "› 1 claude-sonnet-5-5  (default)", "Choose a model of anthropic")
	s.Keys("Enter")
	s.Shows("Stored the key in", `Set model = "anthropic/claude-sonnet-5-5"`, "say what to do")
	s.Types("good morning")
	screen := s.Shows("Good morning from the vendor.")
	if strings.Contains(screen, key) || strings.Contains(screen, "sk-ant-wrong") {
		t.Errorf("a key is on the screen:\n%s", screen)
	}
	s.idles()
	s.Keys("C-d")
	s.Shows("continue with: inspan resume ") // what is typed before that is for the one that ends
	s.Prompts()
	s.Types("clear; inspan setup")
	s.Shows("has a key already", "Enter selects, Esc goes back")
	s.Types("openai")
	s.Shows("Paste the key of openai")
	s.Keys("C-c")
	s.Shows("Nothing was changed. 'inspan setup' asks again; 'inspan demo' works without a model.\n$") // the shell listens again
	s.Types("echo typed $?")
	s.Shows("$ echo typed $?", "typed 130")
	if now, err := os.ReadFile(path); err != nil || strings.Contains(string(now), key) || !strings.HasSuffix(string(now), settings) {
		t.Errorf("%v\n%s", err, now)
	}
}

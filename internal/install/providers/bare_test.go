package providers_test

import (
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/install/config"
)

func TestRoute(t *testing.T) {
	mine := config.Config{Providers: map[string]config.Provider{
		"mine": {Kind: "openai", BaseURL: "http://mine.example", KeyEnv: "MINE_KEY", Models: map[string]config.Model{
			"gpt-5": {}, "house-2": {}, "house-1": {}, "Big-Model": {},
		}},
	}}
	for _, tc := range []struct {
		key, name, want string // an error, if it begins with "error: "
	}{
		{"", "", ""},
		{"", "script", "script"},
		{"", "router", "router"},
		{"", "anthropic", "anthropic"},
		{"", "mine", "mine"},
		{"", "any/thing", "any/thing"},
		{"", "unheard-of", "unheard-of"},
		{"", "sonnet", "anthropic/claude-sonnet-5-5"},
		{"", "Sonnet", "anthropic/claude-sonnet-5-5"},
		{"", "claude-opus", "anthropic/claude-opus-5-5"},
		{"", "sonnet-5", "anthropic/claude-sonnet-5"},
		{"", "claude-opus-5", "anthropic/claude-opus-5"},
		{"", "claude-opus-5-5-20260101", "anthropic/claude-opus-5-5-20260101"},
		{"", "flash", "gemini/gemini-3.8-flash"},
		{"", "flash-lite", "gemini/gemini-3.5-flash-lite"},
		{"", "gpt-5.4", "openai/gpt-5.4"},
		{"", "house-1", "mine/house-1"},
		{"", "big-model", "mine/Big-Model"},
		{"", "son", "son"},
		{"", "gpt-5", `error: model "gpt-5": several models match; name one of mine/gpt-5, openai/gpt-5`},
		{"OPENAI_API_KEY", "gpt-5", "openai/gpt-5"},
		{"MINE_KEY", "gpt-5", "mine/gpt-5"},
		{"", "gpt-6", "error: model \"gpt-6\": several models match; name one of openai/gpt-6-astra, openai/gpt-6-sol, openai/gpt-6-luna"},
		{"", "claude", "error: model \"claude\": several models match; name one of anthropic/claude-fable-5-1, anthropic/claude-opus-5-5, " +
			"anthropic/claude-sonnet-5-5, anthropic/claude-haiku-5-5"},
	} {
		s := set(t, mine)
		t.Setenv("MINE_KEY", "")
		if tc.key != "" {
			t.Setenv(tc.key, "k")
		}
		got, err := s.Route(tc.name)
		if err != nil {
			got = "error: " + err.Error()
		}
		if got != tc.want {
			t.Errorf("%q with %q: got %s, want %s", tc.name, tc.key, got, tc.want)
		}
	}
}

// A name alone is enough wherever a model is named, and a message tells the person which model it means.
func TestModelByItsName(t *testing.T) {
	s := set(t, config.Config{Model: "haiku"})
	t.Setenv("ANTHROPIC_API_KEY", "k")
	for name, want := range map[string][2]string{
		"":                {"anthropic/claude-haiku-5-5", "haiku means the model anthropic/claude-haiku-5-5"},
		"sonnet":          {"anthropic/claude-sonnet-5-5", "sonnet means the model anthropic/claude-sonnet-5-5"},
		"claude-opus-5-5": {"anthropic/claude-opus-5-5", ""},
	} {
		c, err := s.Model(t.Context(), name, "")
		if err != nil || c.Model.Info().Route() != want[0] || c.Why != want[1] {
			t.Errorf("%q: got %+v, %v", name, c, err)
		}
	}
	for name, want := range map[string]string{
		"gpt":     `model "gpt": several models match`,
		"gpt-5.4": "no key: set OPENAI_API_KEY",
		"gpt5":    `no provider or known model "gpt5"; did you mean "gpt-5"?`,
	} {
		if _, err := s.Model(t.Context(), name, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

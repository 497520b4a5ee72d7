package openai

import "testing"

func TestKnownEffort(t *testing.T) {
	for _, tt := range []struct{ id, asked, want string }{
		{"gpt-5", "xhigh", "high"},
		{"gpt-5.1", "max", "high"},
		{"gpt-5.1-codex-mini", "xhigh", "high"},
		{"gpt-5.1-codex-max", "xhigh", "xhigh"},
		{"openai/gpt-5.2", "max", "xhigh"},
		{"gpt-6", "xhigh", "xhigh"},
		{"gpt-5.4", "low", "low"},
		{"some/model", "max", "high"},
	} {
		if got := knownEffort(tt.id, tt.asked); got != tt.want {
			t.Errorf("%s, %s: %s, want %s", tt.id, tt.asked, got, tt.want)
		}
	}
}

package sandbox

import (
	"slices"
	"testing"
)

func TestEnviron(t *testing.T) {
	env := environ([]string{
		"PATH=/bin", "HOME=/home/x", "LC_ALL=C", "GOCACHE=/c", "XDG_CACHE_HOME=/y", "NO_PROXY=localhost", "HTTP_PROXY=http://proxy:1",
		"ANTHROPIC_API_KEY=a", "AWS_SECRET_ACCESS_KEY=b", "GITHUB_TOKEN=c", "MY_PASSWORD=d", "SSH_AUTH_SOCK=/e", "NPM_AUTH=f",
		"XDG_TOKEN=g", "LC_API_KEY=h", "https_proxy=http://u:p@proxy", "GOPROXY=https://u:p@goproxy,direct", "UNKNOWN=i", "BASH_ENV=j",
		"PAGER=less", "TERM=xterm", "NAMED=k",
	}, []string{"NAMED"}, passesOn)
	for _, want := range []string{
		"PATH=/bin", "HOME=/home/x", "LC_ALL=C", "GOCACHE=/c", "XDG_CACHE_HOME=/y", "NO_PROXY=localhost", "HTTP_PROXY=http://proxy:1",
		"PAGER=cat", "TERM=dumb", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0", "NAMED=k",
	} {
		if i := slices.Index(env, want); i < 0 {
			t.Errorf("%s is missing", want)
		} else {
			env = slices.Delete(env, i, i+1)
		}
	}
	ours := environ(nil, nil, passesOn)
	for _, kv := range env {
		if !slices.Contains(ours, kv) {
			t.Errorf("%s was passed on", kv)
		}
	}
}

// TestEnvironOnboard checks that containers learn nothing of where things are
// on this machine.
func TestEnvironOnboard(t *testing.T) {
	env := environ([]string{"PATH=/bin", "HOME=/home/x", "GOROOT=/go", "XDG_CACHE_HOME=/y", "HTTP_PROXY=http://proxy:1", "LC_ALL=C", "LC_API_KEY=h", "TZ=UTC", "NAMED=k"}, []string{"NAMED"}, passesOnboard)
	for _, kv := range environ(nil, nil, passesOnboard) {
		env = slices.DeleteFunc(env, func(have string) bool { return have == kv })
	}
	if want := []string{"LC_ALL=C", "NAMED=k", "TZ=UTC"}; !slices.Equal(env, want) {
		t.Errorf("passed on: %q, want %q", env, want)
	}
}

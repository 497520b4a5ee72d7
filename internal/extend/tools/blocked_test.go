package tools

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/tool"
)

// TestBlocked checks that the result of a command that failed because its sandbox closes a host names the host and the
// setting that opens it, whatever the program printed, and that no other failure is taken for that.
func TestBlocked(t *testing.T) {
	inside := tool.Box{Level: tool.BoxWorkspace}
	npm := []string{"the sandbox blocked registry.npmjs.org; allow with --allow 'network(registry.npmjs.org)' or --allow registries"}
	for name, tc := range map[string]struct {
		box     tool.Box
		code    int
		refused []string
		text    string
		want    []string
	}{
		"the proxy": {
			tool.Box{Level: tool.BoxWorkspace, Hosts: []string{"a.test"}},
			56,
			[]string{"blocked registry.npmjs.org; allow with --allow 'network(registry.npmjs.org)' or --allow registries", "removed .git/hooks/x"},
			"response 403", npm,
		},
		"curl":            {inside, 6, nil, "curl: (6) Could not resolve host: registry.npmjs.org\n", npm},
		"node, twice":     {inside, 1, nil, strings.Repeat("npm error getaddrinfo ENOTFOUND registry.npmjs.org\n", 2), npm},
		"node, later":     {inside, 1, nil, "getaddrinfo EAI_AGAIN registry.npmjs.org", npm},
		"go":              {inside, 1, nil, "dial tcp: lookup Registry.npmjs.org: no such host", npm},
		"pip":             {inside, 1, nil, "Failed to resolve 'registry.npmjs.org' ([Errno -3]", npm},
		"apt":             {inside, 1, nil, "Temporary failure resolving 'registry.npmjs.org'", npm},
		"ssh":             {inside, 1, nil, "ssh: Could not resolve hostname registry.npmjs.org: ", npm},
		"wget":            {inside, 1, nil, "wget: unable to resolve host address 'registry.npmjs.org'", npm},
		"it went well":    {inside, 0, nil, "Could not resolve host: registry.npmjs.org", nil},
		"no sandbox":      {tool.Box{Level: tool.BoxNone}, 6, nil, "Could not resolve host: registry.npmjs.org", nil},
		"hosts are open":  {tool.Box{Level: tool.BoxWorkspace, Hosts: []string{"*"}}, 6, nil, "Could not resolve host: registry.npmjs.org", nil},
		"nothing like it": {inside, 1, nil, "Could not resolve host: $(reboot)'; rm\nassertion failed: lookup table\n", nil},
		"something else":  {inside, 1, []string{"refused to connect to a.test: 10.0.0.1 is a private address"}, "", nil},
	} {
		j := &job{box: tc.box, out: &capture{}, end: ending{code: tc.code, refused: tc.refused}}
		if _, err := j.out.Write([]byte(tc.text)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, j.blocked()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		for _, line := range tc.want {
			if got := j.walls(); !strings.Contains(got, "["+line+"; the network argument of a call asks for it]\n") {
				t.Errorf("%s: the model is told %q", name, got)
			}
		}
	}
}

package foreign_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/inspan/inspan/internal/safety/foreign"
	"github.com/inspan/inspan/tool"
)

func TestReadPermissions(t *testing.T) {
	got, err := foreign.ReadPermissions([]byte("\ufeff"+`{"permissions": {
		"allow": ["Bash(ls:*)", 5], "deny": ["Read(./a)", "WebSearch(x)"], "ask": "Bash", "defaultMode": "acceptEdits",
		"additionalDirectories": ["../docs"], "disableBypassPermissionsMode": "disable"}, "hooks": {}, // team
		"PERMISSIONS": null,}`), "x")
	want := foreign.Permissions{
		Rules: []foreign.Translated{
			{Action: tool.Deny, Text: "Read(./a)", Rules: []string{"read(a)", "read(a/**)"}},
			{Action: tool.Deny, Text: "WebSearch(x)", Rules: []string{"web_search"}, Wider: "inspan has no patterns for WebSearch"},
			{Action: tool.Ask, Text: `"Bash"`, Why: "it is not a list"},
			{Action: tool.Allow, Text: "Bash(ls:*)", Rules: []string{"bash(ls *)"}},
			{Action: tool.Allow, Text: "5", Why: "it is not a text"},
		},
		Limits: []foreign.Limit{{
			Text: `permissions.disableBypassPermissionsMode "disable"`, Mode: tool.ModeYolo, How: "mode yolo may not be used",
		}},
		Mode: "acceptEdits", Folders: []string{"../docs"}, Other: []string{"disableBypassPermissionsMode"},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(foreign.ServerLimit{})); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	for _, bad := range []string{"", "[]", "{", `{"permissions": []}`} {
		if _, err := foreign.ReadPermissions([]byte(bad), "x.json"); err == nil || !strings.Contains(err.Error(), "x.json") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// TestLimits reads restrictions that are not rules. A setting that only allows, or is switched off, limits nothing; one
// of another form counts as an unreadable rule.
func TestLimits(t *testing.T) {
	for _, c := range []struct {
		file string
		want []string // text and meaning
	}{
		{`{"disableAutoMode": "disable"}`, []string{`disableAutoMode "disable": mode auto may not be used`}},
		{`{"permissions": {"disableBypassPermissionsMode": "disable", "disableAutoMode": null}}`, []string{`permissions.disableBypassPermissionsMode "disable": mode yolo may not be used`}},
		{`{"disabledMcpjsonServers": ["a"]}`, []string{`disabledMcpjsonServers ["a"]: these servers of the folder are not used`}},
		{`{"enableAllProjectMcpServers": false, "enabledMcpjsonServers": ["a"]}`, []string{"enableAllProjectMcpServers false: servers of the folder are used only if enabledMcpjsonServers names them"}},
		{`{"enableAllProjectMcpServers": true, "enabledMcpjsonServers": ["a"], "allowManagedMcpServersOnly": false}`, nil},
		{`{"allowManagedPermissionRulesOnly": true}`, []string{"allowManagedPermissionRulesOnly true: rules that allow don't hold, but for those of the organisation"}},
		{`{"allowManagedHooksOnly": true, "disableNewThing": true, "model": "x"}`, []string{"allowManagedHooksOnly true: ", "disableNewThing true: "}},
		{`{"disableAllHooks": true, "disableNewThing": false}`, nil},
		{`{"sandbox": {"enabled": true, "allowUnsandboxedCommands": false, "network": {"allowedDomains": ["a.example"]}}}`, []string{"sandbox.allowUnsandboxedCommands false: commands outside of the sandbox ask"}},
		{`{"sandbox": {"allowUnsandboxedCommands": true}}`, nil},
	} {
		p, err := foreign.ReadPermissions([]byte(c.file), "x")
		var got []string
		for _, l := range p.Limits {
			got = append(got, l.Text+": "+l.How)
		}
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil || len(p.Rules) > 0 {
			t.Errorf("%s: %v, %v\n%s", c.file, err, p.Rules, diff)
		}
	}
	for file, want := range map[string]foreign.Translated{
		`{"disabledMcpjsonServers": "a"}`:               {Action: tool.Deny, Text: `disabledMcpjsonServers "a"`, Why: "it is of no form that is known"},
		`{"sandbox": {"filesystem": {"denyRead": {}}}}`: {Action: tool.Deny, Text: "sandbox.filesystem.denyRead {}", Why: "it is not a list of texts"},
		`{"sandbox": {"filesystem": {"denyRead": ["/srv/keys"]}}}`: {
			Action: tool.Deny, Text: "sandbox.filesystem.denyRead /srv/keys", Rules: []string{"read(/srv/keys)", "read(/srv/keys/**)"},
		},
		`{"sandbox": {"filesystem": {"denyWrite": ["build"]}}}`: {
			Action: tool.Deny, Text: "sandbox.filesystem.denyWrite build", Rules: []string{"write(build)", "write(build/**)"},
		},
		`{"sandbox": {"network": {"deniedDomains": ["*.evil.example"]}}}`: {
			Action: tool.Deny, Text: "sandbox.network.deniedDomains *.evil.example", Rules: []string{"network(*.evil.example)"},
		},
	} {
		if p, err := foreign.ReadPermissions([]byte(file), "x"); err != nil || len(p.Rules) != 1 || cmp.Diff(want, p.Rules[0]) != "" || len(p.Limits) > 0 {
			t.Errorf("%s: %+v, %v", file, p, err)
		}
	}
}

// TestServerLimits holds whom each limit keeps out.
func TestServerLimits(t *testing.T) {
	for _, c := range []struct {
		file string
		out  string // of a of the folder, b of the folder at an address, and a of the person, those that are kept out
	}{
		{`{}`, ""},
		{`{"disabledMcpjsonServers": ["a"]}`, "1"},
		{`{"enableAllProjectMcpServers": false}`, "12"},
		{`{"enableAllProjectMcpServers": false, "enabledMcpjsonServers": ["b"]}`, "1"},
		{`{"allowManagedMcpServersOnly": true}`, "12"},
		{`{"deniedMcpServers": [{"serverName": "a"}]}`, "13"},
		{`{"deniedMcpServers": [{"serverCommand": ["npx", "x"]}]}`, "1"},
		{`{"deniedMcpServers": [{"serverUrl": "https://*.example/*"}]}`, "2"},
		{`{"deniedMcpServers": [{"serverUrl": "https://b.example"}]}`, ""},
		{`{"allowedMcpServers": [{"serverUrl": "https://b.example/*"}]}`, "13"},
		{`{"allowedMcpServers": []}`, "123"},
	} {
		p, err := foreign.ReadPermissions([]byte(c.file), "x")
		got := ""
		for _, l := range p.Limits {
			if l.Servers.Bars("a", []string{"npx", "x"}, "", true) {
				got += "1"
			}
			if l.Servers.Bars("b", nil, "https://b.example/mcp", true) {
				got += "2"
			}
			if l.Servers.Bars("a", []string{"a"}, "", false) {
				got += "3"
			}
		}
		if got != c.out || err != nil {
			t.Errorf("%s: %s, want %s; %v", c.file, got, c.out, err)
		}
	}
}

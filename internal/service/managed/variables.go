package managed

import (
	"fmt"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/install/permission"
	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/internal/safety/shell"
	"github.com/inspan/inspan/internal/view/words"
)

const (
	environmentVariable = "environment_variable"
	mostHosts           = 16
	mostVariableName    = 255 // bytes
)

// variable is a credential that commands get as a variable, without its secret.
type variable struct {
	Name   string   `json:"name"`
	Hosts  []string `json:"hosts,omitempty"` // nil: all that the session may reach
	Header bool     `json:"header,omitempty"`
	Body   bool     `json:"body,omitempty"`
}

// variableAuth is the part of a request about it.
type variableAuth struct {
	Type       string      `json:"type"`
	Name       opt[string] `json:"secret_name"`
	Value      opt[string] `json:"secret_value"`
	Networking opt[struct {
		Type  string        `json:"type"`
		Hosts opt[[]string] `json:"allowed_hosts"`
	}] `json:"networking"`
	Location opt[struct {
		Header opt[bool] `json:"header"`
		Body   opt[bool] `json:"body"`
	}] `json:"injection_location"`
}

// shown returns a variable as clients see it.
func (v *variable) shown() map[string]any {
	networking := map[string]any{"type": "unrestricted"}
	if v.Hosts != nil {
		networking = map[string]any{"type": "limited", "allowed_hosts": v.Hosts}
	}
	return map[string]any{
		"type": environmentVariable, "secret_name": v.Name, "networking": networking,
		"injection_location": map[string]any{"header": v.Header, "body": v.Body},
	}
}

// onto applies a request to a credential, and returns its new secret; empty means unchanged.
func (in variableAuth) onto(k *keptCredential) (secret newSecret, err error) {
	v := variable{Name: in.Name.value, Header: true}
	switch {
	case k.Type == "" && (len(v.Name) > mostVariableName || !shell.IsName(v.Name)):
		return secret, invalid("auth.secret_name", "it is not the name of a variable", "letters, digits and underscores")
	case k.Type == "" && steers(v.Name):
		return secret, invalid("auth.secret_name", "it steers what programs run or reach", "another name")
	case k.Type == "" && (!in.Value.said || !in.Networking.said):
		return secret, invalid("auth", "secret_value or networking is missing", "both")
	case k.Type != "" && k.Type != environmentVariable:
		return secret, invalid("auth.type", "the credential is of type "+k.Type, k.Type)
	case k.Type != "" && in.Name.said:
		return secret, invalid("auth.secret_name", "it can't be changed", "another credential")
	case k.Type != "":
		v = *k.Variable
	}
	if in.Value.said {
		if err := checkToken("auth.secret_value", in.Value.value); err != nil {
			return secret, err
		}
	}
	if in.Networking.said {
		hosts := in.Networking.value.Hosts
		switch kind := in.Networking.value.Type; {
		case kind == "unrestricted" && !hosts.said:
			v.Hosts = nil
		case kind == "limited":
			v.Hosts = hosts.value
			if err := checkHosts("auth.networking.allowed_hosts", v.Hosts); err != nil {
				return secret, err
			}
		default:
			return secret, invalid("auth.networking", "it can't be read", `{"type": "limited", "allowed_hosts": [...]}`)
		}
	}
	if in.Location.said {
		in.Location.value.Header.onto(&v.Header)
		in.Location.value.Body.onto(&v.Body)
	}
	if !v.Header && !v.Body {
		return secret, invalid("auth.injection_location", "the secret is sent nowhere", "header or body, or both")
	}
	if k.Type != "" && !in.Value.said && v.wider(*k.Variable) {
		return secret, invalid("auth", "the secret would be sent to more places", "secret_value beside it, or what narrows it")
	}
	k.Type, k.Variable = environmentVariable, &v
	return newSecret{token: in.Value.value}, nil
}

// wider reports whether a secret is sent to more hosts than before.
func (v variable) wider(before variable) bool {
	if v.Header && !before.Header || v.Body && !before.Body {
		return true
	}
	isNew := func(host string) bool { return !slices.Contains(before.Hosts, host) }
	return before.Hosts != nil && (v.Hosts == nil || slices.ContainsFunc(v.Hosts, isNew))
}

// steers reports whether a variable affects which programs run, or which hosts they reach and trust.
func steers(name string) bool {
	return shell.Steers(name) || permission.Trusts(name) || strings.HasSuffix(strings.ToUpper(name), "_PROXY") ||
		slices.Contains([]string{"PATH", "HOME", "TMPDIR", "SHELL"}, name)
}

// checkHosts reports what is wrong with the hosts that a secret may be sent to.
func checkHosts(field string, hosts []string) error {
	if len(hosts) == 0 || len(hosts) > mostHosts {
		return invalid(field, fmt.Sprintf("there are %d", len(hosts)), fmt.Sprintf("1 to %d", mostHosts))
	}
	for _, host := range hosts {
		if strings.ContainsAny(host, ":[") || host == "*" || netguard.CheckHost(host) != nil {
			return invalid(field, words.OneLine(fmt.Sprintf("%q is no host", host), 80), "names, IPv4 addresses, or *.NAME")
		}
	}
	return nil
}

// inCommands returns the credential with an id in the form for commands.
func (v *variable) inCommands(id, value string) permission.Variable {
	return permission.Variable{
		Name: v.Name, StandIn: derived("placeholder_", id), Value: value, Hosts: v.Hosts, Header: v.Header, Body: v.Body,
	}
}

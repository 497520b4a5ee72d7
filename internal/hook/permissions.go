package hook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/inspan/inspan/internal/foreign"
	"github.com/inspan/inspan/tool"
)

// Translated is a permission rule of Claude Code and what it means here.
type Translated struct {
	Action tool.Action
	Text   string   // as written there
	Rules  []string // the same as rules of ours; none: see Why
	Why    string   // it is not understood
}

// Permissions are what a settings file of Claude Code says about permissions.
type Permissions struct {
	Rules   []Translated // deny first, then ask, then allow
	Mode    string       // defaultMode, as written there; may be empty
	Folders []string     // additionalDirectories
	Other   []string     // keys that mean nothing here, sorted
}

// ReadPermissions reads the permissions out of a settings.json. The error is that it can't be read
// at all, and names source. What is there and of the wrong form is a rule that is not understood.
func ReadPermissions(data []byte, source string) (Permissions, error) {
	var file struct {
		Permissions map[string]json.RawMessage `json:"permissions"`
	}
	var out Permissions
	if err := json.Unmarshal(bytes.TrimPrefix(data, []byte("\ufeff")), &file); err != nil {
		return out, fmt.Errorf("read permissions of %s: %w", source, err)
	}
	for _, action := range []tool.Action{tool.Deny, tool.Ask, tool.Allow} {
		raw, has := file.Permissions[string(action)]
		delete(file.Permissions, string(action))
		var list []json.RawMessage
		if err := json.Unmarshal(raw, &list); has && err != nil {
			out.Rules = append(out.Rules, Translated{Action: action, Text: brief(string(raw)), Why: "it is not a list"})
		}
		for _, one := range list {
			var rule string
			if json.Unmarshal(one, &rule) != nil {
				out.Rules = append(out.Rules, Translated{Action: action, Text: brief(string(one)), Why: "it is not a text"})
				continue
			}
			t := Translated{Action: action, Text: rule}
			t.Rules, t.Why = foreign.Rules(action, rule)
			out.Rules = append(out.Rules, t)
		}
	}
	_ = json.Unmarshal(file.Permissions["defaultMode"], &out.Mode)
	_ = json.Unmarshal(file.Permissions["additionalDirectories"], &out.Folders)
	delete(file.Permissions, "defaultMode")
	delete(file.Permissions, "additionalDirectories")
	out.Other = slices.Sorted(maps.Keys(file.Permissions))
	return out, nil
}

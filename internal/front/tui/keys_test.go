package tui

import (
	"strings"
	"testing"
)

// keysIn is settings of the form "action=key action"; an action without a key has none.
func keysIn(text string) map[string][]string {
	over := map[string][]string{}
	for _, field := range strings.Fields(text) {
		action, key, some := strings.Cut(field, "=")
		over[action] = nil
		if some {
			over[action] = []string{key}
		}
	}
	return over
}

func TestKeys(t *testing.T) {
	keys, err := keysOf(map[string][]string{"send": {"Ctrl+S"}})
	if err != nil || keys["ctrl+s"] != "send" || keys["enter"] != "" || keys["esc"] != "escape" {
		t.Error(keys, err)
	}
	if _, err := keysOf(map[string][]string{"sned": {"a"}}); err == nil || !strings.Contains(err.Error(), `did you mean "send"?`) {
		t.Error(err)
	}
	for over, want := range map[string]string{
		`newline=foo`:                       `keys: newline: unknown key "foo"`,
		`newline=entre`:                     `unknown key "entre"; did you mean "enter"?`,
		`newline=`:                          `unknown key ""`,
		`newline=ctrl+`:                     `unknown key "ctrl+"`,
		`newline=hold+a`:                    `unknown key "hold+a"`,
		`newline=f64`:                       `unknown key "f64"`,
		`newline=enter`:                     `keys: "enter" is bound to both send and newline`,
		`send=tab`:                          `keys: "tab" is bound to both send and queue`,
		`up=alt+ctrl+x down=ctrl+alt+x`:     `"ctrl+alt+x" is bound to both up and down`,
		`escape=a`:                          `keys: escape: "a" types a character`,
		`escape=7`:                          `"7" types a character`,
		`escape=ü`:                          `"ü" types a character`,
		`escape=shift+a`:                    `"shift+a" types a character`,
		`escape=space`:                      `"space" types a character`,
		`send`:                              `keys: send needs a key`,
		`interrupt`:                         `keys: interrupt needs a key`,
		`quit`:                              `keys: quit needs a key`,
		`newline=ctrl++`:                    ``,
		`newline=ctrl+space`:                ``,
		`newline=alt+ü`:                     ``,
		`newline=f12`:                       ``,
		`newline`:                           ``,
		`send=alt+enter newline=enter`:      ``,
		`newline=shift+Ctrl+Down down=down`: ``,
	} {
		if _, err := keysOf(keysIn(over)); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", over, err, want)
		}
	}
	if keys, _ = keysOf(keysIn("newline=shift+Ctrl+Down")); keys["ctrl+shift+down"] != "newline" {
		t.Error("no key is what the terminal sends", keys)
	}
	seen := map[string]string{}
	for _, b := range Bindings() {
		if b.Doc == "" {
			t.Error(b.Action, "has no words")
		}
		for _, key := range b.Keys {
			if stroke, err := keystroke(key); stroke != key || err != nil {
				t.Errorf("%s: %s is %q, %v", b.Action, key, stroke, err)
			}
			if seen[key] != "" {
				t.Errorf("%s does %s and %s", key, seen[key], b.Action)
			}
			seen[key] = b.Action
		}
	}
	names := map[string]bool{}
	for _, c := range Commands() {
		if names[c.Name] || c.Doc == "" || c.run == nil {
			t.Errorf("/%s: twice, without words or without a deed", c.Name)
		}
		names[c.Name] = true
	}
}

package secret

import (
	"slices"
	"strings"
	"sync"
)

// mostSecrets is how many secrets a vault numbers. What comes then is [secret:0],
// which stands for nothing.
const mostSecrets = 1 << 16

// Vault knows secret values and what they are called, and keeps what its
// placeholders stand for. The zero value is ready. It is safe for concurrent use.
//
// Placeholders are numbered in the order in which secrets are first seen. A
// vault knows only what it has seen itself: after a restart of the program the
// numbers begin anew, and older placeholders stand for nothing, or for another
// secret. All that was found is kept in memory as long as the vault is.
//
// Text that looks like a placeholder is taken for one, whoever wrote it. Only
// what a person or a judge has let pass should be resolved.
type Vault struct {
	mu      sync.Mutex
	names   []string // of the known values
	values  []string
	index   *index // of the known values; nil: they changed
	finder  Finder
	entries []entry        // by number, the first is 1
	numbers map[string]int // by value
	forms   map[string]string
}

// entry is what a number stands for.
type entry struct {
	what  string
	forms []string // the value, then other forms of it
	hows  []string
}

// Add makes a value known by a name, such as that of its setting, and reports
// whether it did. Ignored is what is too short or too common to be a secret:
// under 8 bytes, one character only, digits only under 12, words such as
// "password", "changeme", "development", text that shows where a secret goes
// ("your-key-here", "xxxxxx"), and text that holds a placeholder. Space around
// a value is no part of it. A value that is known keeps its first name.
func (v *Vault) Add(name, value string) bool {
	value = strings.TrimSpace(value)
	switch {
	case len(value) < head, sameRun(value) == len(value), isDummy(value), standIn(value), strings.Contains(value, opening):
		return false
	case len(value) < 12 && strings.Trim(value, "0123456789") == "":
		return false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if slices.Contains(v.values, value) {
		return true
	}
	v.names, v.values, v.index = append(v.names, name), append(v.values, value), nil
	if n := v.numbers[value]; n > 0 {
		v.entries[n-1].what = "the value of " + name
	}
	return true
}

// Names lists what the known values are called, sorted.
func (v *Vault) Names() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	named := slices.DeleteFunc(slices.Clone(v.names), func(name string) bool { return name == "" })
	slices.Sort(named)
	return slices.Compact(named)
}

// What says what a placeholder stands for, for people: "the value of API_KEY",
// "a private key", never the secret. Empty: nothing.
func (v *Vault) What(placeholder string) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	n, form, size, _ := parsePlaceholder(placeholder)
	if size == 0 || size != len(placeholder) || !v.stands(n, form) {
		return ""
	}
	e := v.entries[n-1]
	return strings.TrimSpace(e.what + " " + e.hows[form])
}

// stands reports whether a placeholder stands for something.
func (v *Vault) stands(n, form int) bool {
	return n > 0 && n <= len(v.entries) && form < len(v.entries[n-1].forms)
}

// Redact puts placeholders for secrets: first for known values, as they are and
// as base64 (of either alphabet, padded or not, within longer data), hex, JSON
// and percent escapes; then for what [Find] finds. Not found are values that
// are broken over lines, or written in other ways yet. Redacting twice changes
// nothing more.
func (v *Vault) Redact(text string) string {
	r := redactor{vault: v}
	return r.write(text, true)
}

// Resolve puts the secrets back for the placeholders of [Vault.Redact], in the
// form in which they stood. Placeholders that stand for nothing stay.
func (v *Vault) Resolve(text string) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var b strings.Builder
	for {
		i := strings.Index(text, opening)
		if i < 0 {
			b.WriteString(text)
			return b.String()
		}
		b.WriteString(text[:i])
		text = text[i:]
		n, form, size, _ := parsePlaceholder(text)
		if size > 0 && v.stands(n, form) {
			b.WriteString(v.entries[n-1].forms[form])
		} else {
			size = max(size, len(opening))
			b.WriteString(text[:size])
		}
		text = text[size:]
	}
}

// ready returns what known values are found with; nil: there are none.
func (v *Vault) ready() *index {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.numbers == nil {
		v.numbers, v.forms = map[string]int{}, map[string]string{}
	}
	if v.index == nil && len(v.values) > 0 {
		v.index = newIndex(v.values)
	}
	return v.index
}

// shape returns the placeholder of a secret that was found by its shape.
func (v *Vault) shape(text, what string) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	_, known := v.forms[text]
	if !known && len(v.entries) < mostSecrets && whole(text, what) {
		// From here on it is found wherever it stands, also where its shape is lost.
		v.values, v.names, v.index = append(v.values, strings.Clone(text)), append(v.names, ""), nil
	}
	return v.number(text, text, what, "")
}

// whole reports whether a secret that was found by its shape is one by itself, so
// that finding it elsewhere means something. What a setting is set to may be any
// word.
func whole(text, what string) bool {
	return what != aSetting && len(text) >= leastWhole && !strings.ContainsAny(text, " \t\n") && !strings.HasPrefix(text, "-----")
}

const (
	leastWhole = 16 // bytes
	aSetting   = "a secret setting"
)

// known returns the placeholder of a form of a known value.
func (v *Vault) known(f form) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.number(f.text, v.values[f.value], "the value of "+v.names[f.value], f.how)
}

func (v *Vault) number(text, value, what, how string) string {
	if p, ok := v.forms[text]; ok {
		return p
	}
	text = strings.Clone(text) // not all that it was found in
	n := v.numbers[value]
	if n == 0 {
		if len(v.entries) == mostSecrets {
			return placeholderOf(0, 0)
		}
		value = strings.Clone(value)
		v.entries = append(v.entries, entry{what: what, forms: []string{value}, hows: []string{""}})
		n = len(v.entries)
		v.numbers[value], v.forms[value] = n, placeholderOf(n, 0)
	}
	if text == value {
		return v.forms[text]
	}
	e := &v.entries[n-1]
	e.forms, e.hows = append(e.forms, text), append(e.hows, how)
	v.forms[text] = placeholderOf(n, len(e.forms)-1)
	return v.forms[text]
}

package secret

import (
	"slices"
	"strings"
	"sync"
)

// mostSecrets bounds the secrets that a vault names. Further ones become [secret:0], which can't be resolved.
const mostSecrets = 1 << 16

// mostLearned bounds the secrets found by shape that are then also searched by value. Each one makes the
// initialization of the search slower.
const mostLearned = 1 << 10

// Vault knows secret values with their names, and resolves its placeholders. The zero value is ready. It is
// safe for concurrent use.
//
// A placeholder depends only on the secret and the key, so vaults with the same key have the same one for the
// same secret. A vault knows only the values that it was given or has seen: it can't resolve others. Everything
// found is kept in memory as long as the vault.
//
// Text that looks like a placeholder is treated as one, no matter who wrote it. Resolve only text that a person or
// a judge has approved.
type Vault struct {
	// Key creates the placeholders. With the key, short secrets can be guessed, so it must be as secret as they
	// are. Without a key, placeholders must not be shown to anyone who must not learn the secrets. Set it
	// before the vault is used.
	Key []byte

	mu       sync.Mutex
	names    []string // of the known values
	values   []string
	withheld map[string]bool // values whose placeholders can't be resolved
	index    *index          // of the known values; nil means they changed
	clean    *cleanTexts     // under the known values; nil means they changed
	learned  int             // number of them found by shape
	finder   Finder
	tags     map[string]*entry // by tag
	known    map[string]*entry // by value
	shown    map[string]string // placeholders, by their text
}

// entry is a secret with a placeholder.
type entry struct {
	tag, value, what string
	forms            map[string]form // other spellings, by tag
	spelled          int             // number of them with gaps inside
}

// mostSpellings bounds the spellings with gaps inside that a vault stores per secret. Further ones are replaced
// by a placeholder that can't be resolved.
const mostSpellings = 64

// Add adds a value with a name, such as that of its setting, and reports whether it did. It ignores values that
// are too short or too common to be a secret: under 8 bytes, one character only, digits only under 12, words
// such as "password", "changeme", "development", text that shows where a secret goes ("your-key-here",
// "xxxxxx"), and text that contains a placeholder. Surrounding space is not part of a value. A known value
// keeps its first name. The long lines of a multi-line value, and the password of an address, are added with
// it.
func (v *Vault) Add(name, value string) bool {
	value = strings.TrimSpace(value)
	added := isSecret(value) && v.add(name, value)
	for _, part := range partsOf(value) {
		_ = isSecret(part) && v.add(name, part)
	}
	return added
}

// Withhold adds a value with a name like Add, but its placeholders can't be resolved: knowing one doesn't give
// the value. The caller declares it as a secret, so text that looks like an example counts.
func (v *Vault) Withhold(name, value string) bool {
	value = strings.TrimSpace(value)
	added := false
	for _, part := range append(partsOf(value), value) {
		if !isRare(part) {
			continue
		}
		v.mu.Lock()
		if v.withheld == nil {
			v.withheld = map[string]bool{}
		}
		v.withheld[part] = true
		v.mu.Unlock()
		added = v.add(name, part) && part == value
	}
	return added
}

func (v *Vault) add(name, value string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if slices.Contains(v.values, value) {
		return true
	}
	v.names, v.values = append(v.names, name), append(v.values, value)
	v.index, v.clean = nil, nil
	if e := v.entry(value); e != nil {
		e.what = "the value of " + name
	}
	return true
}

// isSecret reports whether a value is to be found anywhere.
func isSecret(value string) bool { return isRare(value) && !standIn(value) }

// isRare reports whether a value is long and rare enough for that.
func isRare(value string) bool {
	switch {
	case len(value) < head, sameRun(value) == len(value), isDummy(value), strings.Contains(value, opening):
		return false
	}
	return len(value) >= 12 || strings.Trim(value, "0123456789") != ""
}

// Names lists the names of the known values, sorted.
func (v *Vault) Names() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	named := slices.DeleteFunc(slices.Clone(v.names), func(name string) bool { return name == "" })
	slices.Sort(named)
	return slices.Compact(named)
}

// What describes the secret behind a placeholder, for people: "the value of API_KEY", "a private key", never the
// secret. Empty means unknown.
func (v *Vault) What(placeholder string) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	e, f := v.stands(placeholder)
	if e == nil {
		return ""
	}
	return strings.TrimSpace(e.what + " " + f.how)
}

// stands returns the secret behind a placeholder, and its form; nil means unknown.
func (v *Vault) stands(placeholder string) (*entry, form) {
	if size, _ := parsePlaceholder(placeholder); size == 0 || size != len(placeholder) {
		return nil, form{}
	}
	in := within(placeholder)
	e := v.tags[in[0]]
	switch {
	case e == nil || v.withheld[e.value]:
		return nil, form{}
	case len(in) == 1:
		return e, form{text: e.value}
	}
	if f, ok := v.formsOf(e)[in[1]]; ok {
		return e, f
	}
	return nil, form{}
}

// formsOf lists the other forms of a secret by tag.
func (v *Vault) formsOf(e *entry) map[string]form {
	if e.forms != nil {
		return e.forms
	}
	e.forms = map[string]form{}
	named := map[string]bool{e.value: true}
	for _, f := range formsOf(e.value) {
		if named[f.text] {
			continue
		}
		named[f.text] = true
		e.take(digest(v.Key, "form\x00"+f.text), f)
	}
	return e.forms
}

// Redact replaces secrets with placeholders. First it finds known values, unchanged and as base64 (of either
// alphabet, padded or not, within longer data), hex, JSON, percent escapes and fullwidth letters; then the
// secrets that [Find] finds. It also finds known values with gaps inside: invisible characters, terminal
// colours, quotes and backslashes. It does not find values that are broken over lines, or written in other
// ways. Redacting twice changes nothing more.
func (v *Vault) Redact(text string) string {
	if text == "" {
		return "" // a vault without texts needs no initialization
	}
	clean := v.cleanNow()
	if clean.has(text) {
		return text
	}
	r := redactor{vault: v, text: text}
	out := strings.Join(r.redact(true), "")
	if r.learned { // it may also occur without its shape
		r = redactor{vault: v, text: out}
		out = strings.Join(r.redact(true), "")
	}
	if out == text {
		clean.add(text)
	}
	return out
}

// Named reports whether a text contains a placeholder of a value that was added by name, and so was not only
// found in a text.
func (v *Vault) Named(text string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, rest, more := strings.Cut(text, opening); more; _, rest, more = strings.Cut(rest, opening) {
		size, _ := parsePlaceholder(opening + rest)
		if e, _ := v.stands((opening + rest)[:size]); e != nil && v.names[slices.Index(v.values, e.value)] != "" {
			return true
		}
	}
	return false
}

// Resolve replaces placeholders of [Vault.Redact] with the secrets, in their original form. Unknown
// placeholders are unchanged.
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
		size, _ := parsePlaceholder(text)
		if e, f := v.stands(text[:size]); e != nil {
			b.WriteString(f.text)
		} else {
			size = max(size, len(opening))
			b.WriteString(text[:size])
		}
		text = text[size:]
	}
}

// ready returns the index of known values; nil means there are none.
func (v *Vault) ready() *index {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.index == nil && len(v.values) > 0 {
		v.index = newIndex(v.values)
	}
	return v.index
}

// shape returns the placeholder of a secret that was found by its shape. learned says that from now on it is
// found by value, too.
func (v *Vault) shape(text, what string) (placeholder string, learned bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.shown[text] == "" && v.learned < mostLearned && len(v.known) < mostSecrets && whole(text, what) {
		v.learned++
		v.values, v.names = append(v.values, strings.Clone(text)), append(v.names, "")
		v.index, v.clean = nil, nil
		learned = true
	}
	if p, ok := v.shown[text]; ok {
		return p, learned
	}
	e := v.entry(text)
	if e == nil {
		return lost, learned
	}
	if e.what == "" {
		e.what = what
	}
	return v.shown[text], learned
}

// whole reports whether a secret that was found by shape is distinctive enough to be searched elsewhere. The
// value of a setting may be any word.
func whole(text, what string) bool {
	if what == aSetting {
		return byChance(text)
	}
	return len(text) >= leastWhole && !strings.ContainsAny(text, " \t\n") && !strings.HasPrefix(text, "-----")
}

const (
	leastWhole = 16 // bytes
	aSetting   = "a secret setting"
)

// placeholder returns the placeholder of a known value as it occurs in a text: in a form, possibly with gaps
// inside.
func (v *Vault) placeholder(f form, text string) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if p, ok := v.shown[text]; ok {
		return p
	}
	e := v.entry(v.values[f.value])
	if e == nil {
		return lost
	}
	for tag, known := range v.formsOf(e) {
		if known.text == text {
			v.shown[known.text] = opening + e.tag + "." + tag + "]"
			return v.shown[known.text]
		}
	}
	d := digest(v.Key, "form\x00"+text)
	if e.spelled == mostSpellings {
		return opening + e.tag + "." + d[:2*formLen] + "]"
	}
	e.spelled++
	f.text, f.how = strings.Clone(text), strings.TrimSpace(f.how+" with other characters inside")
	v.shown[f.text] = opening + e.tag + "." + e.take(d, f) + "]"
	return v.shown[f.text]
}

// take stores a form under a prefix of its digest, and returns that prefix.
func (e *entry) take(digest string, f form) string {
	tag := digest[:formLen]
	if _, taken := e.forms[tag]; taken {
		tag = digest[:2*formLen]
	}
	e.forms[tag] = f
	return tag
}

// entry returns the entry of a secret, and creates it if there is room; otherwise nil.
func (v *Vault) entry(value string) *entry {
	if e := v.known[value]; e != nil || len(v.known) == mostSecrets {
		return e
	}
	if v.known == nil {
		v.tags, v.known, v.shown = map[string]*entry{}, map[string]*entry{}, map[string]string{}
	}
	e, d, n := &entry{value: strings.Clone(value)}, digest(v.Key, value), tagLen
	for v.tags[d[:n]] != nil {
		if n += tagLen; n > longestTag {
			return nil
		}
	}
	e.tag = d[:n]
	v.tags[e.tag], v.known[e.value], v.shown[e.value] = e, e, opening+e.tag+"]"
	return e
}

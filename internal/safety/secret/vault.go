package secret

import (
	"slices"
	"strings"
	"sync"
)

// mostSecrets is how many secrets a vault names. What comes then is [secret:0],
// which stands for nothing.
const mostSecrets = 1 << 16

// mostLearned is how many secrets that were found by their shape are also looked for by value.
// Every one makes finding them take longer to begin.
const mostLearned = 1 << 10

// Vault knows secret values and what they are called, and keeps what its
// placeholders stand for. The zero value is ready. It is safe for concurrent use.
//
// A placeholder follows from the secret and the key alone, so vaults with the same key have
// the same one for the same secret. A vault knows only what it was given and what it has seen
// itself: other placeholders stand for nothing. All that was found is kept in memory as
// long as the vault is.
//
// Text that looks like a placeholder is taken for one, whoever wrote it. Only
// what a person or a judge has let pass should be resolved.
type Vault struct {
	// Key makes the placeholders. Whoever knows it can find short secrets by trying, so it
	// must be as secret as they are. Without one, placeholders must not be shown to anybody
	// from whom the secrets are kept. It is set before the vault is used.
	Key []byte

	mu       sync.Mutex
	names    []string // of the known values
	values   []string
	withheld map[string]bool // values whose placeholders stand for nothing
	index    *index          // of the known values; nil: they changed
	clean    *cleanTexts     // under the known values; nil: they changed
	learned  int             // how many of them were found by their shape
	finder   Finder
	tags     map[string]*entry // by what names them
	known    map[string]*entry // by value
	shown    map[string]string // placeholders, by the text that they stand for
}

// entry is a secret that has a placeholder.
type entry struct {
	tag, value, what string
	forms            map[string]form // other ways of writing it, by what names them
	spelled          int             // how many of them have gaps inside
}

// mostSpellings is how many spellings with gaps inside a vault keeps of a secret. What comes then
// is replaced too, by what stands for nothing.
const mostSpellings = 64

// Add makes a value known by a name, such as that of its setting, and reports
// whether it did. Ignored is what is too short or too common to be a secret:
// under 8 bytes, one character only, digits only under 12, words such as
// "password", "changeme", "development", text that shows where a secret goes
// ("your-key-here", "xxxxxx"), and text that holds a placeholder. Space around
// a value is no part of it. A value that is known keeps its first name. The long
// lines of a value of several, and the password of an address, are known with it.
func (v *Vault) Add(name, value string) bool {
	value = strings.TrimSpace(value)
	added := isSecret(value) && v.add(name, value)
	for _, part := range partsOf(value) {
		_ = isSecret(part) && v.add(name, part)
	}
	return added
}

// Withhold makes a value known by a name like Add, and its placeholders stand for nothing: whoever
// knows one does not get the value. Its owner says that it is a secret, so text that looks as if it
// shows where one goes counts.
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

// isSecret reports whether a value is to be found wherever it stands.
func isSecret(value string) bool { return isRare(value) && !standIn(value) }

// isRare reports whether a value is long and rare enough for that.
func isRare(value string) bool {
	switch {
	case len(value) < head, sameRun(value) == len(value), isDummy(value), strings.Contains(value, opening):
		return false
	}
	return len(value) >= 12 || strings.Trim(value, "0123456789") != ""
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
	e, f := v.stands(placeholder)
	if e == nil {
		return ""
	}
	return strings.TrimSpace(e.what + " " + f.how)
}

// stands returns the secret that a placeholder stands for, and the form of it; nil: it
// stands for nothing.
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

// formsOf lists the other forms of a secret by what names them.
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

// Redact puts placeholders for secrets: first for known values, as they are and
// as base64 (of either alphabet, padded or not, within longer data), hex, JSON,
// percent escapes and fullwidth letters; then for what [Find] finds. Known values are also found
// with gaps inside: invisible characters, colours of a terminal, quotes and
// backslashes. Not found are values that are broken over lines, or written in
// other ways yet. Redacting twice changes nothing more.
func (v *Vault) Redact(text string) string {
	if text == "" {
		return "" // a vault that never sees a text need not be made ready
	}
	clean := v.cleanNow()
	if clean.has(text) {
		return text
	}
	r := redactor{vault: v, text: text}
	out := strings.Join(r.redact(true), "")
	if r.learned { // it may also stand where its shape is lost
		r = redactor{vault: v, text: out}
		out = strings.Join(r.redact(true), "")
	}
	if out == text {
		clean.add(text)
	}
	return out
}

// Named reports whether a text holds a placeholder of a value that was made known by a name, and so did
// not come with a text alone.
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

// ready returns what known values are found with; nil: there are none.
func (v *Vault) ready() *index {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.index == nil && len(v.values) > 0 {
		v.index = newIndex(v.values)
	}
	return v.index
}

// shape returns the placeholder of a secret that was found by its shape. learned says that from
// here on it is found wherever it stands, also where its shape is lost.
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

// whole reports whether a secret that was found by its shape is one by itself, so
// that finding it elsewhere means something. What a setting is set to may be any
// word.
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

// placeholder returns the placeholder of a known value that stands in a text as it does there:
// in a form, perhaps with gaps inside.
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

// take keeps a form under the beginning of what names it, and returns that.
func (e *entry) take(digest string, f form) string {
	tag := digest[:formLen]
	if _, taken := e.forms[tag]; taken {
		tag = digest[:2*formLen]
	}
	e.forms[tag] = f
	return tag
}

// entry returns what is kept of a secret, and begins to if there is room; else nil.
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

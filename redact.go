package inspan

import (
	"crypto/rand"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/loop"
	"github.com/inspan/inspan/internal/policy"
	"github.com/inspan/inspan/internal/secret"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// No secret reaches the log, the model or whoever watches: every body passes
// through here before it is appended or shown, and every blob before it is
// stored. Placeholders stand for secrets; tools get them back, judges do not.

// secrets are those of a session.
type secrets struct {
	vault    *secret.Vault
	ask      func() map[string]string // for those that the agent knows by now; nil: it knows none
	withheld func() map[string]string // the same, of those that tools don't get back

	mu   sync.Mutex
	held map[string]known // calls with placeholders that were judged here and have not run
	ran  strings.Builder  // the arguments of those that have run
}

// known is a call as it was judged.
type known struct {
	args    json.RawMessage     // with what the placeholders stand for
	effects []tool.Effect       // as stored has them
	stored  func(string) string // takes secrets out of a text
	lost    bool                // what a placeholder stood for is not known any more
}

// redacted returns the body without secrets.
func (s *secrets) redacted(body event.Body) event.Body {
	return event.MapText(body, s.vault.Redact)
}

// keyed returns a vault whose placeholders are made with a key; without one they are this
// vault's alone.
func keyed(key []byte) *secret.Vault {
	if len(key) == 0 {
		key = []byte(rand.Text())
	}
	return &secret.Vault{Key: key}
}

// learn takes over the secrets the agent knows by now.
func (s *secrets) learn() {
	for _, from := range []struct {
		ask func() map[string]string
		add func(name, value string) bool
	}{{s.withheld, s.vault.Withhold}, {s.ask, s.vault.Add}} {
		if from.ask == nil {
			continue
		}
		known := from.ask()
		for _, name := range slices.Sorted(maps.Keys(known)) {
			from.add(name, known[name])
		}
	}
}

// clear is redacted for several. It is the last thing done to them.
func (s *secrets) clear(bodies []event.Body) []event.Body {
	out := make([]event.Body, len(bodies))
	for i, b := range bodies {
		out[i] = s.redacted(b)
	}
	return out
}

// mappedEffects are effects with f applied to their texts.
func mappedEffects(effects []tool.Effect, f func(string) string) []tool.Effect {
	return event.MapText(event.Judged{Effects: effects}, f).(event.Judged).Effects
}

// judgeable are effects as the policy gets them. What it says of them may quote a part of a
// text, so there are no secrets in texts; places and words are compared with rules and with
// what is on the disk, and stay.
func (s *secrets) judgeable(effects []tool.Effect) []tool.Effect {
	out := slices.Clone(mappedEffects(effects, s.vault.Redact))
	for i := range out {
		out[i].Path, out[i].Words = effects[i].Path, effects[i].Words
	}
	return out
}

// clearFindings takes the secrets out of what the policy says, as clear does out of a text. A rule
// that would name one is not proposed: from a placeholder a person can't see what they would allow.
func clearFindings(findings []policy.Finding, clear func(string) string) []policy.Finding {
	out := slices.Clone(findings)
	for i := range out {
		f := &out[i]
		f.Effect = mappedEffects([]tool.Effect{f.Effect}, clear)[0]
		f.Verdict.By, f.Verdict.Reason = clear(f.Verdict.By), clear(f.Verdict.Reason)
		if secret.Holds(clear(f.Rule)) {
			f.Rule = ""
		}
		if secret.Holds(clear(f.Host)) {
			f.Host = ""
		}
	}
	return out
}

// redactedTools are descriptions of tools without secrets. One whose name holds a secret is
// not among them.
func (s *secrets) redactedTools(specs []llm.ToolSpec) []llm.ToolSpec {
	return event.MapText(event.Switched{Tools: specs}, s.vault.Redact).(event.Switched).Tools
}

// redactedResult is what a call brought, without secrets.
func redactedResult(res tool.Result, vault *secret.Vault) tool.Result {
	clear := event.MapText(event.Ended{
		Parts: res.Parts, Files: res.Files, Todo: res.Todo, Show: res.Show, Lasting: res.Lasting, Job: res.Job, Cwd: res.Cwd, Store: res.Store,
	}, vault.Redact).(event.Ended)
	res.Parts, res.Files, res.Todo, res.Show = clear.Parts, clear.Files, clear.Todo, clear.Show
	res.Lasting, res.Job, res.Cwd, res.Store = clear.Lasting, clear.Job, clear.Cwd, clear.Store
	return res
}

// redactedError is an error whose text holds no secrets.
type redactedError struct {
	error
	text string
}

func (e redactedError) Error() string { return e.text }
func (e redactedError) Unwrap() error { return e.error }

// cwd is the folder that a call starts from. One whose name can't be known any more, as it held
// a secret that was not seen since, is the workspace.
func (s *Session) cwd() string {
	dir := s.vault.Resolve(s.state.Cwd)
	if dir == s.state.Cwd && secret.Holds(dir) {
		return s.state.Root
	}
	return dir
}

// revealed is the arguments with what placeholders stand for.
func (s *secrets) revealed(raw json.RawMessage) json.RawMessage {
	return mapTexts(raw, s.vault.Resolve)
}

// note keeps how a call with placeholders was judged.
func (s *secrets) note(id string, k known) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == nil {
		s.held = map[string]known{}
	}
	s.held[id] = k
}

// noted is a call that is to run as it was judged: with what its placeholders stood for then.
// Those that came to stand for something since, by a call beside it, stay. Of a call that another
// process has judged the log tells whether it was given secrets: it was private, and somebody was
// asked where that is needed. They have the same placeholders still.
func (s *secrets) noted(c loop.Call, mode tool.Mode, walls tool.Walls) known {
	s.mu.Lock()
	k, here := s.held[c.ID]
	delete(s.held, c.ID)
	if secret.Holds(string(c.Args)) {
		s.ran.Write(c.Args)
	}
	s.mu.Unlock()
	if here {
		return k
	}
	pieces := s.vault.Pieces(string(c.Args))
	k = known{args: c.Args, effects: c.Effects, stored: func(text string) string { return pieces.Hide(s.vault.Redact(text)) }}
	if c.Private && (c.Asked > 0 || policy.Hand(true, s.vault.Named(string(c.Args)), mode, walls, c.Effects).Action != tool.Ask) {
		k.args = s.revealed(c.Args)
		k.lost = secret.Holds(string(k.args))
	}
	return k
}

// leftover takes secrets, and parts of those that calls were given, out of the command of a process: its
// shell may have taken them apart.
func (s *secrets) leftover(list []tool.Leftover) {
	s.mu.Lock()
	ran := s.ran.String()
	s.mu.Unlock()
	pieces := s.vault.Pieces(ran)
	for i, l := range list {
		list[i].Command = pieces.Hide(s.vault.Redact(l.Command))
	}
}

// mapTexts changes the texts in JSON. Where none changes, raw is returned as it is.
func mapTexts(raw json.RawMessage, change func(string) string) json.RawMessage {
	return event.MapText(event.Judged{Args: raw}, change).(event.Judged).Args
}

// cleaned reads a stream without its secrets.
type cleaned struct {
	from  io.Reader
	w     *secret.Writer // into out
	chunk []byte
	out   texts
	err   error // of from; what is left in out comes first
}

// cleanChunk is how many bytes of a stream are looked at together: what is done once for
// each chunk is small beside that.
const cleanChunk = 128 << 10

func (s *secrets) clean(r io.Reader) io.Reader {
	c := &cleaned{from: r}
	c.w = s.vault.Writer(&c.out)
	return c
}

// Read implements [io.Reader].
func (c *cleaned) Read(p []byte) (int, error) {
	if c.chunk == nil {
		c.chunk = make([]byte, cleanChunk)
	}
	for len(c.out) == 0 && c.err == nil {
		n, err := c.from.Read(c.chunk)
		_, _ = c.w.Write(c.chunk[:n]) // texts take everything
		if c.err = err; err != nil {
			_ = c.w.Close()
		}
	}
	if len(c.out) == 0 {
		return 0, c.err
	}
	return c.out.read(p), nil
}

// texts are texts that wait to be read. They are kept as they are.
type texts []string

// Write implements [io.Writer].
func (t *texts) Write(p []byte) (int, error) { return t.WriteString(string(p)) }

// WriteString implements [io.StringWriter].
func (t *texts) WriteString(s string) (int, error) {
	if s != "" {
		*t = append(*t, s)
	}
	return len(s), nil
}

func (t *texts) read(p []byte) (n int) {
	list := *t
	for len(list) > 0 && n < len(p) {
		k := copy(p[n:], list[0])
		n, list[0] = n+k, list[0][k:]
		if list[0] == "" {
			list = list[1:]
		}
	}
	if *t = list; len(list) == 0 {
		*t = nil
	}
	return n
}

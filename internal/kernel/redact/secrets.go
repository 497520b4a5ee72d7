// Package redact keeps secrets out of the log, away from the model and from all observers.
//
// Every body passes through [Secrets.Body] before it is appended or shown, and every blob through [Secrets.Reader]
// before it is stored. Placeholders replace secrets. Tools get the secrets back; judges don't.
package redact

import (
	"crypto/rand"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/internal/safety/policy"
	"github.com/inspan/inspan/internal/safety/secret"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// Secrets holds the secrets of one session. It is safe for concurrent use.
type Secrets struct {
	Vault *secret.Vault
	// Values returns the agent's secrets by name. If nil, there are none.
	Values func() map[string]string
	// Hidden returns secrets that not even tools get back. If nil, there are none.
	Hidden func() map[string]string

	mu     sync.Mutex
	judged map[string]Resolved // calls with placeholders that this process has judged and that have not run, by id
	ran    strings.Builder     // arguments of calls with placeholders that have run
}

// Resolved is a call after its verdict: its arguments with secrets instead of placeholders, its effects without secrets,
// and a function that hides the secrets in texts of the call.
type Resolved struct {
	Args    json.RawMessage
	Effects []tool.Effect
	Hide    func(string) string
	Lost    bool // the secret behind a placeholder is no longer known
}

// NewVault returns a vault whose placeholders are derived from key. Without a key, the vault has a random one.
func NewVault(key []byte) *secret.Vault {
	if len(key) == 0 {
		key = []byte(rand.Text())
	}
	return &secret.Vault{Key: key}
}

// Learn adds the agent's current secrets to the vault.
func (s *Secrets) Learn() {
	for _, from := range []struct {
		values func() map[string]string
		add    func(name, value string) bool
	}{{s.Hidden, s.Vault.Withhold}, {s.Values, s.Vault.Add}} {
		if from.values == nil {
			continue
		}
		known := from.values()
		for _, name := range slices.Sorted(maps.Keys(known)) {
			from.add(name, known[name])
		}
	}
}

// Body returns the body with secrets replaced.
func (s *Secrets) Body(body event.Body) event.Body { return MapText(body, s.Vault.Redact) }

// Bodies is like Body, for several bodies.
func (s *Secrets) Bodies(bodies []event.Body) []event.Body {
	out := make([]event.Body, len(bodies))
	for i, b := range bodies {
		out[i] = s.Body(b)
	}
	return out
}

// ForPolicy returns effects for the policy. The policy may quote part of a text, so secrets in texts are replaced. Paths
// and words stay, because the policy compares them with rules and files.
func (s *Secrets) ForPolicy(effects []tool.Effect) []tool.Effect {
	out := slices.Clone(Effects(effects, s.Vault.Redact))
	for i := range out {
		out[i].Path, out[i].Words = effects[i].Path, effects[i].Words
	}
	return out
}

// Tools returns descriptions of tools with secrets replaced. The name of a tool never contains a secret.
func (s *Secrets) Tools(specs []llm.ToolSpec) []llm.ToolSpec {
	return MapText(event.Switched{Tools: specs}, s.Vault.Redact).(event.Switched).Tools
}

// Reveal replaces placeholders with their secrets.
func (s *Secrets) Reveal(raw json.RawMessage) json.RawMessage { return Texts(raw, s.Vault.Resolve) }

// Folder returns the folder for a path in the log. If the path contained a secret that is no longer known, it returns
// the workspace root.
func (s *Secrets) Folder(stored, root string) string {
	dir := s.Vault.Resolve(stored)
	if dir == stored && secret.Holds(dir) {
		return root
	}
	return dir
}

// Keep remembers the verdict on a call with placeholders, until the call runs.
func (s *Secrets) Keep(call string, j Resolved) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.judged == nil {
		s.judged = map[string]Resolved{}
	}
	s.judged[call] = j
}

// Take returns a call that is about to run, as it was judged. Its placeholders keep their meaning of that time, even if
// concurrent calls have added secrets. If another process has judged the call, the state tells whether it may get
// secrets: it is private, and a person was asked or need not be asked.
func (s *Secrets) Take(c loop.Call, mode tool.Mode, walls tool.Walls) Resolved {
	s.mu.Lock()
	j, known := s.judged[c.ID]
	delete(s.judged, c.ID)
	if secret.Holds(string(c.Args)) {
		s.ran.Write(c.Args)
	}
	s.mu.Unlock()
	if known {
		return j
	}
	pieces := s.Vault.Pieces(string(c.Args))
	j = Resolved{Args: c.Args, Effects: c.Effects, Hide: func(text string) string { return pieces.Hide(s.Vault.Redact(text)) }}
	if c.Private && (c.WaitingSeq > 0 || policy.AskBeforeSecret(true, s.Vault.Named(string(c.Args)), mode, walls, c.Effects).Action != tool.Ask) {
		j.Args = s.Reveal(c.Args)
		j.Lost = secret.Holds(string(j.Args))
	}
	return j
}

// Leftovers removes secrets from the commands of processes, in place. It also removes parts of secrets that calls
// received, because a shell may have split them.
func (s *Secrets) Leftovers(list []tool.Leftover) {
	s.mu.Lock()
	ran := s.ran.String()
	s.mu.Unlock()
	pieces := s.Vault.Pieces(ran)
	for i, l := range list {
		list[i].Command = pieces.Hide(s.Vault.Redact(l.Command))
	}
}

// Texts applies change to the texts in JSON. If no text changes, it returns raw itself.
func Texts(raw json.RawMessage, change func(string) string) json.RawMessage {
	return MapText(event.Judged{Args: raw}, change).(event.Judged).Args
}

// Effects applies change to the texts of effects.
func Effects(effects []tool.Effect, change func(string) string) []tool.Effect {
	return MapText(event.Judged{Effects: effects}, change).(event.Judged).Effects
}

// Findings applies hide to the findings of the policy. It drops rules that contain a secret, because a placeholder
// does not show a person the scope of the rule.
func Findings(findings []policy.Finding, hide func(string) string) []policy.Finding {
	out := slices.Clone(findings)
	for i := range out {
		f := &out[i]
		f.Effect = Effects([]tool.Effect{f.Effect}, hide)[0]
		f.Verdict.By, f.Verdict.Reason = hide(f.Verdict.By), hide(f.Verdict.Reason)
		if secret.Holds(hide(f.Rule)) {
			f.Rule = ""
		}
		if secret.Holds(hide(f.Host)) {
			f.Host = ""
		}
	}
	return out
}

// Result returns the result of a call with secrets replaced.
func Result(res tool.Result, vault *secret.Vault) tool.Result {
	clear := MapText(event.Ended{
		Parts: res.Parts, Files: res.Files, Todo: res.Todo, Show: res.Show, Lasting: res.Lasting, Job: res.Job, Cwd: res.Cwd, Store: res.Store,
	}, vault.Redact).(event.Ended)
	res.Parts, res.Files, res.Todo, res.Show = clear.Parts, clear.Files, clear.Todo, clear.Show
	res.Lasting, res.Job, res.Cwd, res.Store = clear.Lasting, clear.Job, clear.Cwd, clear.Store
	return res
}

// Error is an error whose text has no secrets.
type Error struct {
	Err  error
	Text string
}

func (e Error) Error() string { return e.Text }

// Unwrap returns the original error.
func (e Error) Unwrap() error { return e.Err }

package inspan

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"slices"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/secret"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// No secret reaches the log, the model or whoever watches: every body passes
// through here before it is appended or shown, and every blob before it is
// stored. Placeholders stand for secrets; tools get them back, judges do not.

// redacted returns the body without secrets.
func (s *Session) redacted(body event.Body) event.Body {
	clean := s.vault.Redact
	switch b := body.(type) {
	case event.Said:
		b.Parts = s.redactedParts(b.Parts)
		return b
	case event.Steered:
		b.Parts = s.redactedParts(b.Parts)
		return b
	case event.Titled:
		b.Title = clean(b.Title)
		return b
	case event.Decided:
		b.Reason, b.Answer = clean(b.Reason), clean(b.Answer)
		return b
	case event.Hooked:
		b.Reason, b.Text = clean(b.Reason), clean(b.Text)
		return b
	case event.Compact:
		b.Focus = clean(b.Focus)
		return b
	case event.Kept:
		b.Reason = clean(b.Reason)
		return b
	case event.Cancelled:
		b.Reason = clean(b.Reason)
		return b
	case event.Replied:
		b.Parts = s.redactedParts(b.Parts)
		return b
	case event.Failed:
		b.Message = clean(b.Message)
		return b
	case event.Routed:
		b.Reason, b.Error = clean(b.Reason), clean(b.Error)
		return b
	case event.Judged:
		return s.redactedJudged(b)
	case event.Spawned:
		b.Task, b.Args = clean(b.Task), s.redactedJSON(b.Args)
		return b
	case event.Raised:
		b.Args, b.Reason, b.Preview = s.redactedJSON(b.Args), clean(b.Reason), clean(b.Preview)
		b.Effects = s.redactedEffects(b.Effects)
		return b
	case event.Returned:
		b.Detail, b.Parts = clean(b.Detail), s.redactedParts(b.Parts)
		return b
	case event.Tasked:
		b.Text = clean(b.Text)
		return b
	case event.Finished:
		b.Error, b.Line, b.Command = clean(b.Error), clean(b.Line), clean(b.Command)
		return b
	case event.Waiting:
		b.Preview = clean(b.Preview)
		return b
	case event.Ended:
		return s.redactedEnded(b)
	case event.Added:
		b.Text = clean(b.Text)
		return b
	case event.Stopped:
		b.Detail = clean(b.Detail)
		return b
	case event.Note:
		b.Text = clean(b.Text)
		return b
	case event.Progress:
		b.Text = clean(b.Text)
		return b
	case event.Delta:
		b.Text, b.Reasoning = clean(b.Text), clean(b.Reasoning)
		return b
	}
	return body
}

// learn takes over the secrets the agent knows by now.
func (s *Session) learn() {
	if s.agent.Secrets == nil {
		return
	}
	known := s.agent.Secrets()
	for _, name := range slices.Sorted(maps.Keys(known)) {
		s.vault.Add(name, known[name])
	}
}

// clear is redacted for several. It is the last thing done to them.
func (s *Session) clear(bodies []event.Body) []event.Body {
	out := make([]event.Body, len(bodies))
	for i, b := range bodies {
		out[i] = s.redacted(b)
	}
	return out
}

func (s *Session) redactedJudged(b event.Judged) event.Body {
	b.Reason, b.Text, b.Args = s.vault.Redact(b.Reason), s.vault.Redact(b.Text), s.redactedJSON(b.Args)
	b.Effects = s.redactedEffects(b.Effects)
	return b
}

func (s *Session) redactedEffects(effects []tool.Effect) []tool.Effect {
	var out []tool.Effect
	for _, e := range effects {
		e.Text, e.Path = s.vault.Redact(e.Text), s.vault.Redact(e.Path)
		e.Dir, e.Vars = s.vault.Redact(e.Dir), s.vault.Redact(e.Vars)
		out = append(out, e)
	}
	return out
}

func (s *Session) redactedEnded(b event.Ended) event.Body {
	b.Parts, b.Show, b.Todo = s.redactedParts(b.Parts), s.vault.Redact(b.Show), slices.Clone(b.Todo)
	for i := range b.Todo {
		b.Todo[i].Text = s.vault.Redact(b.Todo[i].Text)
	}
	files := make([]tool.File, 0, len(b.Files))
	for _, f := range b.Files {
		f.Diff = s.vault.Redact(f.Diff)
		files = append(files, f)
	}
	if b.Files != nil {
		b.Files = files
	}
	if b.Job != nil {
		job := *b.Job
		job.Command = s.vault.Redact(job.Command)
		b.Job = &job
	}
	return b
}

// redactedParts returns parts without secrets. Images and the reasoning of a
// model, which may be signed, stay as they are.
func (s *Session) redactedParts(parts llm.Parts) llm.Parts {
	var out llm.Parts
	for _, part := range parts {
		switch p := part.(type) {
		case llm.Text:
			p.Text = s.vault.Redact(p.Text)
			part = p
		case llm.Call:
			p.Args, p.Invalid = s.redactedJSON(p.Args), s.vault.Redact(p.Invalid)
			part = p
		case llm.Result:
			p.Parts = s.redactedParts(p.Parts)
			part = p
		}
		out = append(out, part)
	}
	return out
}

// redactedJSON redacts the texts inside of JSON, so that it stays JSON.
func (s *Session) redactedJSON(raw json.RawMessage) json.RawMessage {
	return mapTexts(raw, s.vault.Redact)
}

// revealed is the arguments with what placeholders stand for.
func (s *Session) revealed(raw json.RawMessage) json.RawMessage {
	return mapTexts(raw, s.vault.Resolve)
}

// note keeps what placeholders in the arguments of a call stand for as it is judged, and
// reports whether they stand for anything.
func (s *Session) note(known *tool.Call, args json.RawMessage) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if bytes.Equal(known.Args, args) {
		delete(s.secretArgs, known.ID)
		return false
	}
	if s.secretArgs == nil {
		s.secretArgs = map[string]json.RawMessage{}
	}
	s.secretArgs[known.ID] = known.Args
	return true
}

// judgedArgs is what a call runs with: what its placeholders stood for when it was
// judged. Those that came to stand for something since, by a call beside it, stay.
func (s *Session) judgedArgs(c *tool.Call) json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.secretArgs[c.ID]; ok {
		delete(s.secretArgs, c.ID)
		return known
	}
	return c.Args
}

// mapTexts changes the texts in JSON. Where none changes, raw is returned as it
// is.
func mapTexts(raw json.RawMessage, change func(string) string) json.RawMessage {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if len(raw) == 0 || dec.Decode(&v) != nil {
		return raw
	}
	changed := false
	v = walkTexts(v, func(text string) string {
		to := change(text)
		changed = changed || to != text
		return to
	})
	if !changed {
		return raw
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return raw
	}
	return bytes.TrimSpace(out.Bytes())
}

func walkTexts(v any, change func(string) string) any {
	switch v := v.(type) {
	case string:
		return change(v)
	case []any:
		for i := range v {
			v[i] = walkTexts(v[i], change)
		}
	case map[string]any:
		for name := range v {
			v[name] = walkTexts(v[name], change)
		}
	}
	return v
}

// cleaned reads a stream without its secrets.
type cleaned struct {
	from io.Reader
	w    *secret.Writer // into out
	out  bytes.Buffer
	err  error // of from; what is left in out comes first
}

func (s *Session) clean(r io.Reader) io.Reader {
	c := &cleaned{from: r}
	c.w = s.vault.Writer(&c.out)
	return c
}

// Read implements [io.Reader].
func (c *cleaned) Read(p []byte) (int, error) {
	chunk := make([]byte, 32<<10)
	for c.out.Len() == 0 && c.err == nil {
		n, err := c.from.Read(chunk)
		_, _ = c.w.Write(chunk[:n]) // a buffer takes everything
		if c.err = err; err != nil {
			_ = c.w.Close()
		}
	}
	if c.out.Len() == 0 {
		return 0, c.err
	}
	return c.out.Read(p)
}

package harnesstest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/inspan/inspan/llm"
)

func (s modelSuite) text(t *testing.T) {
	const words = "Grüße, 世界! \"quoted\" <b>&</b>\n\ttab and 😀 done."
	usage := llm.Usage{Input: 120, CacheRead: 40, Output: 30}
	f := s.New(t, Turn{Parts: llm.Say(words), Usage: usage})
	r, o := reply(t, f.Model, question())
	if o.text != words || r.Parts.Text() != words || len(r.Parts) != 1 {
		t.Errorf("streamed %q, replied %#v, want %q", o.text, r.Parts, words)
	}
	if r.Stop != llm.StopEnd || r.Usage != usage {
		t.Errorf("Stop %q, Usage %+v, want %q, %+v", r.Stop, r.Usage, llm.StopEnd, usage)
	}
}

func (s modelSuite) empty(t *testing.T) {
	f := s.New(t, Turn{})
	r, o := reply(t, f.Model, question())
	if len(r.Parts) != 0 || o.text != "" || r.Stop != llm.StopEnd {
		t.Errorf("got %+v, want an empty reply that ended", r)
	}
}

func (s modelSuite) calls(t *testing.T) {
	f := s.New(t, Turn{Parts: twoCalls()}, Turn{Parts: llm.Say("done")})
	req := question()
	r, o := reply(t, f.Model, req)
	wantCalls(t, r, twoCalls().Calls())
	if r.Stop != llm.StopCalls || r.Parts.Text() != "Reading both." || o.args == "" {
		t.Errorf("Stop %q, text %q, streamed arguments %q", r.Stop, r.Parts.Text(), o.args)
	}
	req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Parts: r.Parts}, answered(r.Parts))
	if r, _ := reply(t, f.Model, req); r.Parts.Text() != "done" {
		t.Errorf("after the results: %+v", r)
	}
}

func (s modelSuite) split(t *testing.T) {
	f := s.New(t, Turn{Parts: twoCalls(), Split: 1})
	r, _ := reply(t, f.Model, question())
	wantCalls(t, r, twoCalls().Calls())
}

func (s modelSuite) brokenArgs(t *testing.T) {
	f := s.New(t, Turn{Parts: llm.Parts{
		llm.Call{ID: "a", Name: "read", Invalid: `{'path': 'x',}`},
		llm.Call{ID: "b", Name: "read", Invalid: `{"path": "x`},
	}})
	r, _ := reply(t, f.Model, question())
	wantCalls(t, r, []llm.Call{
		{Name: "read", Args: json.RawMessage(`{"path":"x"}`)},
		{Name: "read", Args: json.RawMessage(`{}`), Invalid: `{"path": "x`},
	})
}

func (s modelSuite) length(t *testing.T) {
	f := s.New(t, Turn{Stop: llm.StopLength, Parts: llm.Parts{
		llm.Text{Text: "Writing"},
		llm.Call{ID: "a", Name: "read", Invalid: `{"path":{"b":"c"`},
	}})
	r, _ := reply(t, f.Model, question())
	if r.Stop != llm.StopLength {
		t.Errorf("Stop = %q, want %q", r.Stop, llm.StopLength)
	}
	wantCalls(t, r, []llm.Call{{Name: "read", Args: json.RawMessage(`{}`), Invalid: `{"path":{"b":"c"`}})
}

// thought returns a turn that thinks before it calls.
func thought() llm.Parts {
	return append(llm.Parts{llm.Reasoning{Text: "hm <thinking> 思考\n\"hard\""}}, twoCalls()...)
}

func (s modelSuite) reasoning(t *testing.T) {
	f := s.New(t, Turn{Parts: thought()}, Turn{Parts: llm.Say("ok")})
	req := question()
	req.Effort = "high"
	r, o := reply(t, f.Model, req)
	first, ok := r.Parts[0].(llm.Reasoning)
	want := thought()[0].(llm.Reasoning).Text
	if !ok || first.Text != want || o.reasoning != want || first.Route != f.Model.Info().Route() {
		t.Fatalf("reasoning %#v, streamed %q, want %q by %q", r.Parts[0], o.reasoning, want, f.Model.Info().Route())
	}
	// The vendor refuses its reasoning if a byte of it was changed.
	req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Parts: stored(t, r.Parts)}, answered(r.Parts))
	if r, _ := reply(t, f.Model, req); r.Parts.Text() != "ok" {
		t.Errorf("after the results: %+v", r)
	}
	if f.Requests != nil && !strings.Contains(f.Requests()[1], "思考") {
		t.Error("the reasoning was not sent back to the route that wrote it")
	}
}

func (s modelSuite) foreignReasoning(t *testing.T) {
	f := s.New(t, Turn{Parts: llm.Say("ok")})
	req := question()
	req.Effort = "high"
	parts := append(llm.Parts{llm.Reasoning{
		Text: "secret thought", Opaque: json.RawMessage(`{"type":"thinking","thinking":"secret thought","signature":"x"}`), Route: "other/model",
	}}, twoCalls()...)
	req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Parts: parts}, answered(parts))
	reply(t, f.Model, req)
	if f.Requests != nil && strings.Contains(f.Requests()[0], "secret thought") {
		t.Error("reasoning of another route was sent")
	}
}

func (s modelSuite) images(t *testing.T) {
	f := s.New(t, Turn{Parts: llm.Say("a cat")})
	one, two := []byte("\x89PNG one"), []byte("\xff\xd8 two")
	parts := twoCalls()
	results := answered(parts)
	first := results.Parts[0].(llm.Result)
	first.Parts = append(llm.Say("a screenshot"), llm.Image{MediaType: "image/jpeg", Data: two})
	results.Parts[0] = first
	req := question()
	req.Messages = []llm.Message{
		{Role: llm.User, Parts: llm.Parts{llm.Text{Text: "What is it?"}, llm.Image{MediaType: "image/png", Data: one}}},
		{Role: llm.Assistant, Parts: parts},
		results,
	}
	reply(t, f.Model, req)
	if f.Requests == nil {
		return
	}
	for _, image := range [][]byte{one, two} {
		if !strings.Contains(f.Requests()[0], base64.StdEncoding.EncodeToString(image)) {
			t.Errorf("image %q was not sent", image)
		}
	}
}

func (s modelSuite) pause(t *testing.T) {
	f := s.New(t, Turn{Parts: llm.Say("I am searching. \n"), Stop: llm.StopPause}, Turn{Parts: llm.Say("Found it.")})
	req := question()
	r, _ := reply(t, f.Model, req)
	if r.Stop != llm.StopPause {
		t.Fatalf("Stop = %q, want %q", r.Stop, llm.StopPause)
	}
	req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Parts: r.Parts})
	if r, _ := reply(t, f.Model, req); r.Parts.Text() != "Found it." {
		t.Errorf("after the pause: %+v", r)
	}
}

func (s modelSuite) stop(t *testing.T, stop llm.Stop) {
	f := s.New(t, Turn{Parts: llm.Say("so far"), Stop: stop})
	if r, _ := reply(t, f.Model, question()); r.Stop != stop || r.Parts.Text() != "so far" {
		t.Errorf("got %q, %q, want %q, %q", r.Stop, r.Parts.Text(), stop, "so far")
	}
}

func (s modelSuite) fails(t *testing.T, kind llm.Kind, late bool) {
	fail := &llm.Error{Kind: kind}
	switch kind {
	case llm.KindWindow:
		fail.Used, fail.Limit = 210_000, 200_000
	case llm.KindRateLimited:
		fail.RetryAfter = 17 * time.Second
	default: // the others carry no figures
	}
	f := s.New(t, Turn{Parts: llm.Say(strings.Repeat("void ", 40)), Fail: fail, Late: late})
	o := ask(t.Context(), t, f.Model, question())
	switch {
	case o.err == nil:
		t.Fatalf("got a reply, want %s", kind)
	case o.err.Kind != kind:
		t.Errorf("Kind = %q, want %q: %v", o.err.Kind, kind, o.err)
	case o.err.Used != fail.Used, o.err.Limit != fail.Limit, o.err.RetryAfter != fail.RetryAfter:
		t.Errorf("got used %d, limit %d, retry after %v, want %d, %d, %v", o.err.Used,
			o.err.Limit, o.err.RetryAfter, fail.Used, fail.Limit, fail.RetryAfter)
	case o.err.Provider != f.Model.Info().Provider:
		t.Errorf("Provider = %q", o.err.Provider)
	case late != (o.text != ""):
		t.Errorf("streamed %q before the error, late is %v", o.text, late)
	}
}

func (s modelSuite) cut(t *testing.T) {
	f := s.New(t, Turn{Parts: llm.Say(strings.Repeat("void ", 40)), Cut: true})
	if o := ask(t.Context(), t, f.Model, question()); o.err == nil || o.err.Kind != llm.KindStreamCut {
		t.Errorf("got %+v, %v, want %s", o.reply, o.err, llm.KindStreamCut)
	}
}

// earlyStop also proves, by the end of the bubble, that nothing is left over.
func (s modelSuite) earlyStop(t *testing.T) {
	f := s.New(t, Turn{Parts: llm.Say(strings.Repeat("word ", 400))})
	for c, err := range f.Model.Stream(t.Context(), question()) {
		if err != nil || c.Text == "" {
			t.Fatalf("first chunk is %+v, %v, want text", c, err)
		}
		break
	}
	idle(t, f)
}

func idle(t *testing.T, f Fake) {
	t.Helper()
	synctest.Wait()
	if f.InFlight != nil && f.InFlight() != 0 {
		t.Errorf("%d requests are still being answered", f.InFlight())
	}
}

func (s modelSuite) cancel(t *testing.T) {
	f := s.New(t, Turn{Parts: llm.Say(strings.Repeat("word ", 40)), Stall: "idle"})
	ctx, cancel := context.WithCancel(t.Context())
	start := time.Now()
	time.AfterFunc(time.Second, cancel)
	o := ask(ctx, t, f.Model, question())
	if o.err == nil || o.err.Kind != llm.KindCancelled {
		t.Errorf("got %+v, %v, want %s", o.reply, o.err, llm.KindCancelled)
	}
	if took := time.Since(start); took != time.Second {
		t.Errorf("it took %v to end after a cancellation at 1 s", took)
	}
	idle(t, f)
}

func (s modelSuite) cancelledBefore(t *testing.T) {
	f := s.New(t, Turn{Parts: llm.Say("never read")})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if o := ask(ctx, t, f.Model, question()); o.err == nil || o.err.Kind != llm.KindCancelled {
		t.Errorf("got %+v, %v, want %s", o.reply, o.err, llm.KindCancelled)
	}
}

func (s modelSuite) timeout(t *testing.T, phase string, limit time.Duration) {
	f := s.New(t, Turn{Parts: llm.Say(strings.Repeat("word ", 400)), Stall: phase})
	start := time.Now()
	o := ask(t.Context(), t, f.Model, question())
	if o.err == nil || o.err.Kind != llm.KindTimeout || o.err.Phase != phase {
		t.Errorf("got %+v, %v, want %s in phase %q", o.reply, o.err, llm.KindTimeout, phase)
	}
	if took := time.Since(start); took != limit {
		t.Errorf("it took %v, want %v", took, limit)
	}
	idle(t, f)
}

// sameBytes checks that a request's bytes depend only on its value, even after the history went through a log.
func (s modelSuite) sameBytes(t *testing.T) {
	f := s.New(t, Turn{Parts: thought()}, Turn{}, Turn{}, Turn{})
	req := question()
	r, _ := reply(t, f.Model, req)
	req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Parts: r.Parts}, answered(r.Parts))
	before, err := json.Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	reply(t, f.Model, req)
	reply(t, f.Model, req)
	if after, err := json.Marshal(req); err != nil || !bytes.Equal(before, after) {
		t.Errorf("Stream changed the request (%v)", err)
	}
	for i := range req.Messages {
		req.Messages[i].Parts = stored(t, req.Messages[i].Parts)
	}
	reply(t, f.Model, req)
	if f.Requests == nil {
		return
	}
	sent := f.Requests()
	if sent[1] != sent[2] || sent[1] != sent[3] {
		t.Errorf("equal requests differ:\n%s\n%s\n%s", sent[1], sent[2], sent[3])
	}
}

// growth checks that a longer conversation only adds bytes at the tail.
func (s modelSuite) growth(t *testing.T) {
	turns := []Turn{{Parts: thought()}, {Parts: twoCalls()}, {Parts: llm.Say("Both read. ")}, {Parts: thought()}, {Parts: llm.Say("end")}}
	for i := range turns { // all calls of a session have different ids
		for j, p := range turns[i].Parts {
			if c, is := p.(llm.Call); is {
				c.ID += strconv.Itoa(i)
				turns[i].Parts[j] = c
			}
		}
	}
	f := s.New(t, turns...)
	req := question()
	for i := range turns {
		r, _ := reply(t, f.Model, req)
		req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Parts: r.Parts})
		if len(r.Calls()) > 0 {
			req.Messages = append(req.Messages, answered(r.Parts))
		}
		if i%2 == 0 { // sometimes a person's message is next to the results, sometimes not
			req.Messages = append(req.Messages, said("Go on."))
		}
	}
	if f.Requests == nil {
		return
	}
	var before string
	for i, sent := range f.Requests() {
		for _, v := range f.Volatile {
			sent = strings.ReplaceAll(sent, v, "")
		}
		if !strings.HasPrefix(sent, before) {
			t.Fatalf("request %d does not begin with the one before:\n%s\n%s", i, before, sent)
		}
		before = strings.TrimRight(sent, "]}")
	}
}

// oddHistory checks that a history that no vendor accepts unchanged is sent anyway.
func (s modelSuite) oddHistory(t *testing.T) {
	f := s.New(t, Turn{Parts: llm.Say("fine")})
	long := strings.Repeat("long:", 30)
	req := question()
	req.System = []string{"", "system \xff\x00 text"}
	req.Messages = []llm.Message{
		said("one"),
		said(" \n"),
		said("two \xf0\x28 \x00 \u2028"),
		{Role: llm.Assistant, Parts: llm.Parts{
			llm.Text{Text: ""},
			llm.Reasoning{Text: "no block"},
			llm.Unknown{Raw: json.RawMessage(`{"type":"later"}`)},
		}},
		said("three"),
		{Role: llm.Assistant, Parts: llm.Parts{
			llm.Text{Text: "\n"},
			llm.Call{ID: long, Name: "read", Args: json.RawMessage(`{"path":`)},
			llm.Call{ID: "functions.read:1", Name: "read", Args: json.RawMessage(`{}`), Invalid: "{"},
		}},
		{Role: llm.User, Parts: llm.Parts{
			llm.Text{Text: "spoken before the results"},
			llm.Result{CallID: long, Name: "read"},
			llm.Result{CallID: "functions.read:1", Name: "read", Parts: llm.Say(" "), Error: true},
		}},
	}
	if r, _ := reply(t, f.Model, req); r.Parts.Text() != "fine" {
		t.Errorf("got %+v", r)
	}
}

// again checks that one model answers many requests at once.
func (s modelSuite) again(t *testing.T) {
	const n = 8
	turns := make([]Turn, n)
	for i := range turns {
		turns[i] = Turn{Parts: twoCalls()}
	}
	f := s.New(t, turns...)
	done := make(chan outcome)
	for range n {
		go func() {
			var o outcome
			for c, err := range f.Model.Stream(t.Context(), question()) {
				o.err, o.reply = llm.AsError(err), c.Reply
			}
			done <- o
		}()
	}
	for range n {
		if o := <-done; o.err != nil || len(o.reply.Calls()) != 2 {
			t.Errorf("got %+v, %v", o.reply, o.err)
		}
	}
}

package console_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/front/console"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/store"
	"github.com/inspan/inspan/tool"
)

// deaf is a store whose sessions take no input for a while.
type deaf struct {
	store.Store
	now *atomic.Bool
}

func (d deaf) Open(ctx context.Context, id string) (store.Log, error) {
	log, err := d.Store.Open(ctx, id)
	return deafLog{log, d.now}, err
}

type deafLog struct {
	store.Log
	now *atomic.Bool
}

func (l deafLog) Append(ctx context.Context, bodies ...event.Body) ([]event.Event, error) {
	if l.now.Load() {
		return nil, errors.New("nobody is there")
	}
	return l.Log.Append(ctx, bodies...)
}

// desk is a person who watches a session that runs elsewhere, and types.
type desk struct {
	t      *testing.T
	screen screen
	keys   *io.PipeWriter
	away   atomic.Bool // the session can't be reached
	over   atomic.Bool // no process drives it
	code   chan int
	log    screen // of who drives it
	ran    chan int
}

// sits has a run begin elsewhere and a person watch it. Set may change the attachment.
func sits(t *testing.T, s *inspan.Session, host *inspan.Host, set func(d *desk, a *console.Attachment)) *desk {
	t.Helper()
	d := &desk{t: t, code: make(chan int, 1), ran: make(chan int, 1)}
	ctx, stop := context.WithCancel(t.Context())
	go func() { d.ran <- (&console.Console{Out: &d.log, Err: &d.log}).RunOn(ctx, s, event.Say("go")) }()
	t.Cleanup(func() { stop(); <-d.ran })
	d.log.shows(t, "open question")
	c := &console.Console{Out: &d.screen, Err: &d.screen}
	var typed *io.PipeReader
	typed, d.keys = io.Pipe()
	a := console.Attachment{
		Person: console.NewPerson(c, typed, &d.screen), Server: "https://a.example",
		Driven: func(context.Context) (bool, error) { return !d.over.Load(), nil },
	}
	if set != nil {
		set(d, &a)
	}
	w := watched(t, &inspan.Host{Store: deaf{host.Sessions(), &d.away}}, s.ID())
	go func() {
		code, err := c.Attach(ctx, w, a)
		if err != nil {
			_, _ = d.screen.Write([]byte(err.Error()))
		}
		d.code <- code
	}()
	return d
}

func (d *desk) types(line string) {
	d.t.Helper()
	if _, err := io.WriteString(d.keys, line+"\n"); err != nil {
		d.t.Error(err)
	}
}

func (d *desk) shows(texts ...string) {
	d.t.Helper()
	for _, text := range texts {
		d.screen.shows(d.t, text)
	}
}

func (d *desk) never(texts ...string) {
	d.t.Helper()
	for _, text := range texts {
		if strings.Contains(d.screen.String(), text) {
			d.t.Errorf("%q is shown:\n%s", text, d.screen.String())
		}
	}
}

// TestNothingTakenEndsNothing checks that an input that does not arrive is reported, that the question is asked again,
// and that the lost connection is reported once.
func TestNothingTakenEndsNothing(t *testing.T) {
	var ran []string
	s, host := hosted(t, &ran, step("I write.", "one"), script.Step{Parts: llm.Say("Done.")})
	d := sits(t, s, host, func(d *desk, a *console.Attachment) {
		a.Lost = func() error {
			if d.away.Load() {
				return errors.New("the line is dead")
			}
			return nil
		}
	})
	d.shows("in this session (s)")
	d.never("[p]roject", "[a]lways")
	d.types("p")
	d.shows("holds for the session at most: answer y or s")
	d.away.Store(true)
	d.shows("! the connection is lost: the line is dead")
	d.types("y")
	d.shows(`! not confirmed: "y": nobody is there`)
	d.types("/interrupt")
	d.shows(`! not confirmed: "interrupt": nobody is there`)
	d.away.Store(false)
	d.shows("· the connection is back")
	d.types("y")
	if code := <-d.code; code != console.ExitDone || !slices.Equal(ran, []string{"one"}) {
		t.Errorf("code %d, ran %q\n%s", code, ran, d.screen.String())
	}
	if n := strings.Count(d.screen.String(), "the connection is"); n != 2 {
		t.Errorf("the connection is told of %d times\n%s", n, d.screen.String())
	}
}

// TestAnsweredElsewhereMeanwhile checks that text typed as an answer becomes a message only if the person says so, that
// commands are not for the model, and that hints name the server.
func TestAnsweredElsewhereMeanwhile(t *testing.T) {
	var ran []string
	s, host := hosted(t, &ran, step("I write.", "one"), script.Step{Parts: llm.Say("Done.")})
	d := sits(t, s, host, func(d *desk, a *console.Attachment) {
		a.Stays = true
		a.Close = func(context.Context) error { d.over.Store(true); return nil }
	})
	d.shows("Allow it?")
	other := watched(t, host, s.ID())
	if err := other.Send(t.Context(), event.Decided{Call: other.Status().Waiting[0].Call.ID, Allow: true, By: "ann"}); err != nil {
		t.Fatal(err)
	}
	d.shows("(answered by ann)", "· the agent is idle")
	d.types("use the other one")
	d.shows(`(not sent: "use the other one"`)
	d.types("/nothing")
	d.shows(`unknown command "/nothing"`)
	d.types("/help")
	d.shows("/interrupt ", "/close ", "/help ")
	d.types("/interrupt")
	d.shows("no run to interrupt")
	d.never("told the model")
	d.types("")
	d.shows("· told the model: use the other one")
	d.types("at once")
	d.shows("· told the model: at once")
	d.types("/close")
	d.shows("· closing")
	<-d.code
	d.never("told the model: /", "inspan resume")
}

// TestAttachNote adds a note for the model to a yes.
func TestAttachNote(t *testing.T) {
	var ran []string
	s, host := hosted(t, &ran, step("I write.", "one"), script.Step{Parts: llm.Say("Done.")})
	d := sits(t, s, host, nil)
	d.shows("Allow it?")
	d.types("y: gently")
	d.shows("told the model: gently")
	if code := <-d.code; code != console.ExitDone || !slices.Equal(ran, []string{"one"}) {
		t.Errorf("code %d, ran %q\n%s", code, ran, d.screen.String())
	}
}

// TestServerGivesUp checks the message about a session that a server does not continue.
func TestServerGivesUp(t *testing.T) {
	var ran []string
	s, host := hosted(t, &ran, step("I write.", "one"))
	d := sits(t, s, host, nil)
	d.shows("Allow it?")
	d.over.Store(true)
	if code := <-d.code; code != console.ExitError {
		t.Errorf("code %d", code)
	}
	d.shows("the server does not continue session", "see it with: inspan logs --remote https://a.example "+s.ID())
	d.never("inspan resume")
}

// TestNobodyAnswersHere checks that the hint to a question names the server.
func TestNobodyAnswersHere(t *testing.T) {
	var ran []string
	s, host := hosted(t, &ran, step("I write.", "one"))
	d := sits(t, s, host, func(_ *desk, a *console.Attachment) { a.Person = nil })
	d.shows("answer it with: inspan attach --remote https://a.example "+s.ID(), "inspan send --remote https://a.example --allow ")
	d.over.Store(true)
	<-d.code
}

// TestToolOfAClient checks that a call that a client is to answer shows what it is.
func TestToolOfAClient(t *testing.T) {
	lookup := tool.New("lookup", "looks up", func(_ context.Context, c *tool.Call, _ struct {
		Question string `json:"question"`
	},
	) (tool.Result, error) {
		return tool.Text("found " + c.Answer), nil
	})
	lookup.Effects = func(context.Context, *tool.Call) ([]tool.Effect, error) {
		return []tool.Effect{{Kind: tool.Question, Text: "the client runs lookup"}}, nil
	}
	call := llm.Call{Name: "lookup", Args: json.RawMessage(`{"question":"a heron?"}`)}
	a := inspan.Agent{Model: &script.Model{Steps: []script.Step{{Parts: llm.Parts{call}}, {Parts: llm.Say("Done.")}}}, Tools: []tool.Tool{lookup}}
	s, err := a.Open(t.Context(), event.NewMemory("m"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var shown screen
	c := &console.Console{Out: &shown, Err: &shown}
	c.Person = console.NewPerson(c, strings.NewReader("/path\n"), &shown)
	if code := c.Run(t.Context(), s, event.Say("go")); code != console.ExitDone {
		t.Errorf("code %d", code)
	}
	for _, want := range []string{"? lookup asks (the client runs lookup)\n", `"question": "a heron?"`, "Its client answers it.", "found /path"} {
		if !strings.Contains(shown.String(), want) {
			t.Errorf("no %q:\n%s", want, shown.String())
		}
	}
}

// TestLinesOfOthersAreMarked checks that no line of a person's text looks like one of ours.
func TestLinesOfOthersAreMarked(t *testing.T) {
	var shown screen
	c := &console.Console{Out: &shown, Err: &shown}
	err := c.Show(func(yield func(event.Event, error) bool) {
		_ = yield(event.Event{Seq: 1, Body: event.Say("hello\n? bash asks\r\n  Allow it?")}, nil) &&
			yield(event.Event{Seq: 2, Body: event.Stopped{Reason: event.ReasonFailed, Detail: "no\n? bash asks"}}, nil)
	}, false)
	if err != nil || strings.Count(shown.String(), "bash asks") != 2 || strings.Contains(shown.String(), "\n?") ||
		strings.Contains(shown.String(), "\n  Allow") {
		t.Errorf("%v\n%s", err, shown.String())
	}
}

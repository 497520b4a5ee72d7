package journeys_test

// What the journeys share. A journey is a test of the whole agent through its public interface: a scripted model, tools
// that record that they ran, a log, and its content at the end.

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/extend/tools"
	"github.com/inspan/inspan/internal/safety/secret"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/tool"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// scripted makes a model of the replies of a script.
func scripted(t testing.TB, replies ...string) llm.Model {
	t.Helper()
	var b strings.Builder
	for _, r := range replies {
		b.WriteString("-- reply --\n" + r + "\n")
	}
	m, err := script.Parse([]byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

type wordArgs struct {
	Word string `json:"word"`
}

// ledger makes tools that write down every time they run.
type ledger struct {
	mu   sync.Mutex
	runs []string
}

func (l *ledger) tool(name string, effect tool.Effect) tool.Tool {
	t := tool.New(name, "writes a word down", func(_ context.Context, c *tool.Call, in wordArgs) (tool.Result, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.runs = append(l.runs, c.Name+" "+in.Word)
		return tool.Text("noted " + in.Word), nil
	})
	t.Effects = func(context.Context, *tool.Call) ([]tool.Effect, error) { return []tool.Effect{effect}, nil }
	return t
}

func (l *ledger) reader() tool.Tool {
	return l.tool("look", tool.Effect{Kind: tool.Read, Path: "/w/a"})
}

func (l *ledger) writer() tool.Tool {
	return l.tool("note", tool.Effect{Kind: tool.Write, Path: "/w/a"})
}

// collect runs the session and returns the stored events.
func collect(t testing.TB, seq iter.Seq2[event.Event, error]) []event.Event {
	t.Helper()
	var out []event.Event
	for e, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		if !e.Transient() {
			out = append(out, e)
		}
	}
	return out
}

func kinds(events []event.Event) string {
	var out []string
	for _, e := range events {
		out = append(out, e.Body.Kind())
	}
	return strings.Join(out, " ")
}

// last returns the last body of a type.
func last[B event.Body](t testing.TB, events []event.Event) B {
	t.Helper()
	for _, e := range slices.Backward(events) {
		if b, ok := e.Body.(B); ok {
			return b
		}
	}
	var none B
	t.Fatalf("no %T among %s", none, kinds(events))
	return none
}

func open(t testing.TB, a *inspan.Agent, log event.Log) *inspan.Session {
	t.Helper()
	s, err := a.Open(t.Context(), log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func said(text string) event.Body { return event.Say(text) }

// slow is a model that says a word and then waits for its context.
type slow struct{ script.Model }

func (s *slow) Stream(ctx context.Context, _ llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		if yield(llm.Chunk{Text: "I think"}, nil) {
			<-ctx.Done()
			yield(llm.Chunk{}, llm.AsError(ctx.Err()))
		}
	}
}

// memoryBlobs keeps blobs in memory.
type memoryBlobs struct {
	mu     sync.Mutex
	stored map[string][]byte
}

func (m *memoryBlobs) Put(_ context.Context, r io.Reader) (string, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return "", err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stored == nil {
		m.stored = map[string][]byte{}
	}
	name := fmt.Sprintf("sha256-%064x", len(m.stored))
	m.stored[name] = data
	return name, nil
}

func (m *memoryBlobs) Get(_ context.Context, name string) (io.ReadCloser, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	data, ok := m.stored[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

// writer is a tool that would change the file named in its call.
func writer(ran *[]string) tool.Tool {
	type args struct {
		Path string `json:"path"`
	}
	var mu sync.Mutex // calls of one reply run side by side
	t := tool.New("put", "", func(_ context.Context, _ *tool.Call, in args) (tool.Result, error) {
		mu.Lock()
		defer mu.Unlock()
		*ran = append(*ran, in.Path)
		return tool.Text("put " + in.Path), nil
	})
	t.Effects = func(_ context.Context, c *tool.Call) ([]tool.Effect, error) {
		in, err := tool.Args[args](c)
		return []tool.Effect{{Kind: tool.Write, Path: "/w/" + in.Path}}, err
	}
	return t
}

// looping is a program that makes calls, each as "tool word", one after the other, until one fails.
func looping(calls ...string) tool.Tool {
	return eager(func(do doing) (string, error) {
		var out []string
		var held error
		for _, c := range calls {
			name, word, _ := strings.Cut(c, " ")
			text, err := do(name, word)
			switch {
			case errors.Is(err, tool.ErrHeld):
				held = err
			case err != nil:
				return strings.Join(out, ", "), err
			default:
				out = append(out, text)
			}
		}
		return strings.Join(out, ", "), held
	})
}

// at is a tool whose calls have the effect on the path that is the word.
func (l *ledger) at(name string, kind tool.EffectKind) tool.Tool {
	t := l.tool(name, tool.Effect{})
	t.Effects = func(_ context.Context, c *tool.Call) ([]tool.Effect, error) {
		e := tool.Effect{Kind: kind, Path: "/w/" + wordOf(c.Args)}
		if kind != tool.Write && kind != tool.Read {
			e = tool.Effect{Kind: kind, Text: wordOf(c.Args)}
		}
		return []tool.Effect{e}, nil
	}
	return t
}

// longWork is a model that reads for some turns and then answers. It refuses prompts beyond its window, as vendors do,
// and checks that its request is a valid conversation.
type longWork struct {
	t       *testing.T
	window  int
	turns   int
	looks   int                                   // calls that it makes beside each other one
	summary func(req llm.Request) (string, error) // of a request for one
	asked   []llm.Request                         // the others
	turn    int
}

func (m *longWork) Info() llm.Info {
	return llm.Info{Provider: "p", Model: "m", Window: m.window, Prices: llm.Prices{{Input: 1, Output: 1}}}
}

func (m *longWork) Stream(_ context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		if err := sound(req); err != nil {
			m.t.Error(err)
		}
		prompt := req.Tokens()
		if prompt > m.window {
			yield(llm.Chunk{}, &llm.Error{Kind: llm.KindWindow, Message: "prompt is too long"})
			return
		}
		reply := &llm.Reply{Stop: llm.StopEnd, Route: "p/m", Usage: llm.Usage{Input: prompt, Output: 50}}
		if req.Purpose == "summary" {
			text, err := m.summary(req)
			if err != nil {
				yield(llm.Chunk{}, err)
				return
			}
			reply.Parts = llm.Say(text)
			yield(llm.Chunk{Reply: reply}, nil)
			return
		}
		m.asked = append(m.asked, req)
		if m.turn++; m.turn%m.turns == 0 {
			reply.Parts = llm.Say(fmt.Sprintf("Finished at turn %d.", m.turn))
		} else {
			args := json.RawMessage(fmt.Sprintf(`{"word":"w%d"}`, m.turn))
			reply.Parts, reply.Stop = llm.Parts{llm.Call{ID: fmt.Sprint("c", m.turn), Name: "change", Args: args}}, llm.StopCalls
			for i := range m.looks {
				args := json.RawMessage(fmt.Sprintf(`{"word":"w%d_%d"}`, m.turn, i))
				reply.Parts = append(reply.Parts, llm.Call{ID: fmt.Sprint("l", m.turn, "_", i), Name: "look", Args: args})
			}
		}
		yield(llm.Chunk{Reply: reply}, nil)
	}
}

// changes is a tool with long results that changes a file each time.
func changes() tool.Tool {
	t := tool.New("change", "Changes a file.", func(_ context.Context, _ *tool.Call, in struct {
		Word string `json:"word"`
	},
	) (tool.Result, error) {
		r := tool.Text(in.Word + strings.Repeat(" line of the file", 60))
		r.Files = []tool.File{{Path: "/w/" + in.Word + ".go", Digest: "d", Written: true}}
		return r, nil
	})
	t.Effects = func(context.Context, *tool.Call) ([]tool.Effect, error) {
		return []tool.Effect{{Kind: tool.Write, Path: "/w/all"}}, nil
	}
	return t
}

// record is an honest summary: it names the facts of the log.
func record(req llm.Request) (string, error) {
	text := req.Messages[len(req.Messages)-1].Parts.Text()
	var files []string
	for _, word := range strings.Fields(text) {
		if strings.HasSuffix(word, ".go") {
			files = append(files, word)
		}
	}
	return "## Goal\nChange all files, and never touch vendor/.\n## Constraints\nNever touch vendor/. Keep the API as it is.\n## Decisions\n" +
		"One file at a time.\n## Files\n" + strings.Join(files, "\n") +
		"\n## State of work\nChanging goes on.\n## Open questions\nnone\n## Next\nThe next file.\n", nil
}

// looks is a tool with results that are too short to be cut short.
func looks() tool.Tool {
	t := tool.New("look", "Looks at something.", func(_ context.Context, _ *tool.Call, in struct {
		Word string `json:"word"`
	},
	) (tool.Result, error) {
		return tool.Text(in.Word + strings.Repeat(" line of the file", 60)), nil
	})
	t.Effects = tool.NoEffects
	return t
}

// longAgent has a conversation of short results, so that there is nothing to do
// about it but to compact it.
func longAgent(m *longWork) *inspan.Agent {
	m.looks = 7
	return &inspan.Agent{
		Model: m, Tools: []tool.Tool{changes(), looks()}, Mode: "yolo", Env: tool.Env{Root: "/w"},
		System: []event.Added{{Text: "You are careful."}}, Limits: inspan.Limits{Turns: -1},
	}
}

const order = "Change all files. Never touch vendor/. Keep the API as it is. Remember the word KINGFISHER."

// drivenTo drives a session and returns the stored events, and how it stopped.
func drivenTo(t *testing.T, s *inspan.Session, inputs ...event.Body) (events []event.Event) {
	t.Helper()
	for e, err := range s.Run(t.Context(), inputs...) {
		if err != nil {
			t.Fatal(err)
		}
		if !e.Transient() {
			events = append(events, e)
		}
	}
	return events
}

func bodiesOf[B event.Body](events []event.Event) (out []B) {
	for _, e := range events {
		if b, ok := e.Body.(B); ok {
			out = append(out, b)
		}
	}
	return out
}

// callOnce has a model call a tool first.
type callOnce struct {
	*longWork
	name string
	args string // empty: {}
}

func (m *callOnce) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	if m.name == "" {
		return m.longWork.Stream(ctx, req)
	}
	name, args := m.name, cmp.Or(m.args, "{}")
	m.name = ""
	return func(yield func(llm.Chunk, error) bool) {
		yield(llm.Chunk{Reply: &llm.Reply{
			Stop: llm.StopCalls, Route: "p/m",
			Parts: llm.Parts{llm.Call{ID: "once", Name: name, Args: json.RawMessage(args)}},
		}}, nil)
	}
}

// conducted is a session whose calls of the tool note ask.
func conducted(t *testing.T, timeout time.Duration, replies ...string) (*inspan.Conductor, *ledger) {
	t.Helper()
	l := &ledger{}
	a := &inspan.Agent{Model: scripted(t, replies...), Tools: []tool.Tool{l.writer()}, Approvals: inspan.Approvals{Timeout: timeout}, Env: tool.Env{Root: "/w"}}
	return &inspan.Conductor{Session: open(t, a, event.NewMemory("s"))}, l
}

func allow(_ context.Context, p inspan.Pending) (event.Body, error) {
	return event.Decided{Call: p.Call.ID, Question: p.Question, Allow: true, By: "ann"}, nil
}

const (
	oneNote  = `call: note {"word":"a"}`
	twoNotes = oneNote + "\n" + `call: note {"word":"b"}`
)

// hook answers at moments and writes down where it was.
type hook struct {
	mu  sync.Mutex
	at  []string
	say map[tool.Moment]func(p tool.Point) (tool.Outcome, error)
}

func (h *hook) At(_ context.Context, p tool.Point) (tool.Outcome, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at = append(h.at, strings.TrimSpace(fmt.Sprintf("%s %s", p.Moment, p.Why)))
	if f := h.say[p.Moment]; f != nil {
		return f(p)
	}
	return tool.Outcome{}, nil
}

// play runs the session and calls at for every event; it breaks off, as a
// crash would, when at returns false.
func play(t *testing.T, a *inspan.Agent, log event.Log, at func(*inspan.Session, event.Event) bool, inputs ...event.Body) {
	t.Helper()
	s := open(t, a, log)
	for e, err := range s.Run(t.Context(), inputs...) {
		if err != nil {
			t.Fatal(err)
		}
		if at != nil && !at(s, e) {
			return
		}
	}
}

func send(t *testing.T, s *inspan.Session, body event.Body) {
	t.Helper()
	if err := s.Send(t.Context(), body); err != nil {
		t.Error(err)
	}
}

func pictureTool() tool.Tool {
	t := tool.New("picture", "Shows a picture.", func(context.Context, *tool.Call, struct{}) (tool.Result, error) {
		return tool.Result{Parts: llm.Parts{llm.Text{Text: "here it is"}, llm.Image{MediaType: "image/png", Data: []byte("\x89PNG")}}}, nil
	})
	t.Effects = tool.NoEffects
	return t
}

// vendor is a model that answers request after request as its test says.
type vendor struct {
	answers  []answer
	requests []llm.Request
}

// answer is a choice, then an error or a reply; both zero: "Done."
type answer struct {
	routed *llm.Routed
	err    *llm.Error
	reply  llm.Reply
}

func (v *vendor) Info() llm.Info {
	return llm.Info{Provider: "test", Model: "m", Prices: llm.Prices{{Output: 1e6}}}
}

func (v *vendor) Stream(_ context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	var a answer
	if n := len(v.requests); n < len(v.answers) {
		a = v.answers[n]
	}
	v.requests = append(v.requests, req)
	return func(yield func(llm.Chunk, error) bool) {
		if a.routed != nil && !yield(llm.Chunk{Routed: a.routed}, nil) {
			return
		}
		if a.err != nil {
			yield(llm.Chunk{}, a.err)
			return
		}
		if a.reply.Parts == nil {
			a.reply.Parts, a.reply.Stop = llm.Say("Done."), llm.StopEnd
		}
		if a.reply.Route == "" {
			a.reply.Route = "test/m"
		}
		yield(llm.Chunk{Reply: &a.reply}, nil)
	}
}

func fails(kind llm.Kind, after time.Duration) answer {
	return answer{err: &llm.Error{Kind: kind, RetryAfter: after, Message: "no"}}
}

// recipe is a tool that makes calls: run says which.
func recipe(run func(ctx context.Context, do func(name, word string) (string, error)) (string, error)) tool.Tool {
	t := tool.New("recipe", "makes calls", func(ctx context.Context, c *tool.Call, _ struct{}) (tool.Result, error) {
		text, err := run(ctx, func(name, word string) (string, error) {
			res, err := c.Do(ctx, name, json.RawMessage(fmt.Sprintf(`{"word":%q}`, word)))
			return res.Parts.Text(), err
		})
		return tool.Text(text), err
	})
	t.Calls = true
	return t
}

const oneRecipe = "call: recipe {}"

// of are the events about calls that others have made, each as its kind, call and parent.
func of(events []event.Event) string {
	var out []string
	for _, e := range events {
		switch b := e.Body.(type) {
		case event.Judged:
			out = append(out, fmt.Sprintf("judged %s<%s", b.Call, b.Parent))
		case event.Waiting:
			out = append(out, "waiting "+b.Call)
		case event.Started:
			out = append(out, fmt.Sprintf("started %s<%s", b.Call, b.Parent))
		case event.Ended:
			out = append(out, fmt.Sprintf("%s %s<%s", b.Outcome, b.Call, b.Parent))
		}
	}
	return strings.ReplaceAll(strings.Join(out, "; "), "call_1", "c")
}

// replayed is a log with the beginning of another, and the calls that had run by then.
func replayed(t *testing.T, events []event.Event) (log *event.Memory, ran []string) {
	t.Helper()
	log = event.NewMemory("s")
	var as event.Driver
	calls := map[string]string{}
	for _, e := range events {
		var err error
		switch b := e.Body.(type) {
		case event.Claimed:
			as.Epoch = b.Epoch
		case event.Judged:
			calls[b.Call] = b.Tool + " " + wordOf(b.Args)
		case event.Started:
			ran = append(ran, calls[b.Call])
		}
		if event.Input(e.Body) {
			_, err = log.Append(t.Context(), e.Body)
		} else {
			_, err = log.AppendAs(t.Context(), as, e.Body)
		}
		if err != nil {
			t.Fatal(err)
		}
		as.After = e.Seq
	}
	return log, ran
}

func wordOf(args json.RawMessage) string {
	var in wordArgs
	_ = json.Unmarshal(args, &in)
	return in.Word
}

// does is a tool with an effect.
func does(name string, e tool.Effect, run func(context.Context, *tool.Call) (tool.Result, error)) tool.Tool {
	t := tool.New(name, "Does "+name+".", func(ctx context.Context, c *tool.Call, _ wordArgs) (tool.Result, error) { return run(ctx, c) })
	t.Effects = func(context.Context, *tool.Call) ([]tool.Effect, error) { return []tool.Effect{e}, nil }
	return t
}

func reads(path string) tool.Effect { return tool.Effect{Kind: tool.Read, Path: path} }

func writes(path string) tool.Effect { return tool.Effect{Kind: tool.Write, Path: path} }

// lasting is a run that takes a time.
func lasting(d time.Duration) func(context.Context, *tool.Call) (tool.Result, error) {
	return func(ctx context.Context, _ *tool.Call) (tool.Result, error) {
		select {
		case <-time.After(d):
			return tool.Text("done"), nil
		case <-ctx.Done():
			return tool.Text("so far"), ctx.Err()
		}
	}
}

func read(log event.Log) (events []event.Event) {
	for e, err := range log.Read(context.Background(), 0) {
		if err != nil {
			return nil
		}
		events = append(events, e)
	}
	return events
}

// reading has a conversation of long results, which can be cut short.
func reading(t *testing.T, window int) (*inspan.Agent, *longWork) {
	m := &longWork{t: t, window: window, turns: 40, summary: record}
	a := longAgent(m)
	m.looks = 0
	a.Tools[0].Run = func(_ context.Context, c *tool.Call) (tool.Result, error) {
		return tool.Text(string(c.Args) + strings.Repeat(" line of a file", 500)), nil
	}
	return a, m
}

func core(names ...string) []tool.Tool {
	return slices.DeleteFunc(tools.Core(&tools.Shell{}, ""), func(t tool.Tool) bool { return !slices.Contains(names, t.Name) })
}

// testKey is a key for placeholders that tests know.
const testKey = "the key of these tests"

// placeholder is the placeholder of a secret under testKey.
func placeholder(t *testing.T, value string) string {
	t.Helper()
	v := secret.Vault{Key: []byte(testKey)}
	if !v.Add("VALUE", value) {
		t.Fatalf("%q is no secret", value)
	}
	return v.Redact(value)
}

// watched keeps the requests a model gets.
type watched struct {
	llm.Model
	asked []llm.Request
}

func (w *watched) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	w.asked = append(w.asked, req)
	return w.Model.Stream(ctx, req)
}

// redacting is an agent that knows a secret.
func redacting(t *testing.T, replies ...string) inspan.Agent {
	t.Helper()
	return inspan.Agent{
		Model: scripted(t, replies...), Mode: "ask", Env: tool.Env{Root: "/w"}, Secrets: inspan.Secrets{Key: []byte(testKey), Values: func() map[string]string { return map[string]string{"DEPLOY_TOKEN": deploys} }},
	}
}

// starter keeps the box of the process that was to start.
type starter struct{ box *tool.Box }

func (s *starter) Start(_ context.Context, c tool.Command) (tool.Process, error) {
	s.box = &c.Box
	return nil, errors.New("started")
}

// asking opens a session on disk whose run has ended because a call waits.
func asking(t *testing.T, l *ledger) (*inspan.Host, *inspan.Session) {
	t.Helper()
	host := &inspan.Host{Dir: t.TempDir(), Agent: func(_ context.Context, at inspan.SessionSpec) (*inspan.Agent, error) {
		model := scripted(t, `call: note {"word":"a"}`, "Done.", "Done again.")
		return &inspan.Agent{Model: model, Tools: []tool.Tool{l.writer()}, Mode: "ask", Env: tool.Env{Root: at.Root}}, nil
	}}
	s, err := host.New(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	drivenTo(t, s, said("go"))
	if len(s.Status().Waiting) != 1 {
		t.Fatalf("%+v", s.Status())
	}
	return host, s
}

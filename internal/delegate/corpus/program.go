package corpus

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/delegate/script"
	"github.com/inspan/inspan/tool"
)

//go:embed program.md
var programDoc string

//go:embed program.js
var programSetup string

// ProgramAgent is the file of the kind of agent that answers by programs.
//
//go:embed program_agent.md
var ProgramAgent []byte

// ProgramTool is the tool that lets a model run programs over a corpus.
const ProgramTool = "program"

const (
	mostPrintedChars = 8_000 // characters of the output of a program that the model sees
	mostCode         = 64_000
	mostError        = 1_000           // bytes of the error of a program
	moreCalls        = 1_000           // beyond the limit of requests, because the end of a program may come late
	programBusy      = 2 * time.Minute // computing time of all programs of a session together
	programStore     = "program"       // key in the store of the session
	answerStore      = "program answer"
)

type programArgs struct {
	Code string `json:"code" jsonschema:"JavaScript; top-level await works"`
}

// Programs are the tools of an agent that answers by programs. The model knows the shown one; the hidden ones are
// called by programs.
func (s *Set) Programs() (shown, hidden []tool.Tool) {
	t := tool.New(ProgramTool, strings.TrimSpace(programDoc), func(ctx context.Context, c *tool.Call, in programArgs) (tool.Result, error) {
		if strings.TrimSpace(in.Code) == "" || len(in.Code) > mostCode {
			return tool.Result{}, fmt.Errorf("the code is empty, or has more than %d bytes", mostCode)
		}
		p, err := s.program(ctx, c, in.Code)
		if err != nil {
			return tool.Result{}, err
		}
		return p.perform(ctx)
	})
	t.Calls = true
	return []tool.Tool{t}, []tool.Tool{s.textTool(), s.askingTool()}
}

// past is the state that programs of a session leave for later ones, in its store. All programs run again before
// the next one, with the answers that their requests brought, so variables live on and survive a crash.
type past struct {
	Variable string   `json:"variable"` // blob with the text
	Seed     string   `json:"seed"`
	Now      int64    `json:"now"`      // milliseconds since 1970
	Programs []string `json:"programs"` // a blob with a ran for each
	Asked    int      `json:"asked"`    // requests, including those of programs that failed
	Tokens   int      `json:"tokens"`   // that they took
}

// ran is a program that has ended well, in the form of its blob.
type ran struct {
	Code  string    `json:"code"`
	Calls []outcome `json:"calls"` // by their order in the program
}

// outcome is how a request of a program ended.
type outcome struct {
	Reply json.RawMessage `json:"reply,omitempty"` // an askReply
	Error string          `json:"error,omitempty"` // instead
	Nth   int             `json:"nth"`             // its place among all that ended
}

// program is one program that runs, with all programs before it.
type program struct {
	set      *Set
	call     *tool.Call
	past     past
	variable *variable
	before   []ran // programs that ran earlier
	code     string
	own      int // calls that this call made before the program began
	base     int // number of answers that earlier programs got
	index    int // program that runs at the moment

	mu     sync.Mutex
	calls  []outcome // of all programs, by order
	asks   []ask     // the same requests
	failed int
	why    string          // the first failure
	output strings.Builder // head of what the last one printed
	room   int             // characters that may still be printed
	more   int             // characters that were printed beyond
	names  []string
	given  *given
	reads  readBy
}

// program prepares a program.
func (s *Set) program(ctx context.Context, c *tool.Call, code string) (*program, error) {
	p := &program{set: s, call: c, code: code, past: past{Seed: c.Key, Now: c.Time.UnixMilli()}, room: mostPrintedChars, reads: readBy{}}
	if raw, ok := c.Store[programStore]; ok {
		if err := json.Unmarshal(raw, &p.past); err != nil {
			return nil, fmt.Errorf("what earlier programs left: %w", err)
		}
	} else if err := p.open(ctx); err != nil {
		return nil, err
	}
	var err error
	if p.variable, err = s.variableOf(ctx, c, p.past.Variable); err != nil {
		return nil, err
	}
	for _, name := range p.past.Programs {
		raw, err := blob(ctx, c, name)
		if err != nil {
			return nil, fmt.Errorf("an earlier program: %w", err)
		}
		var one ran
		if err := json.Unmarshal(raw, &one); err != nil {
			return nil, fmt.Errorf("an earlier program: %w", err)
		}
		p.before, p.calls = append(p.before, one), append(p.calls, one.Calls...)
	}
	p.base = len(p.calls)
	return p, nil
}

// open stores the text of the sources, once for the session.
func (p *program) open(ctx context.Context) error {
	names := []string{}
	for _, src := range p.set.Only {
		names = append(names, src.Name)
	}
	args, err := json.Marshal(listArgs{Sources: names})
	if err != nil {
		return err
	}
	res, err := p.call.Do(ctx, textTool, args)
	if err != nil {
		return err
	}
	p.own++
	var out struct{ Variable string }
	if err := json.Unmarshal([]byte(within(res.Parts.Text())), &out); err != nil {
		return err
	}
	p.past.Variable = out.Variable
	return nil
}

// perform runs the programs. A program that fails leaves nothing but the count of its requests.
func (p *program) perform(ctx context.Context) (tool.Result, error) {
	type sourceText struct {
		Name string `json:"name"`
		Text string `json:"text"`
	}
	in := struct {
		Sources  []sourceText `json:"sources"`
		Programs []string     `json:"programs"`
		Printed  int          `json:"printed"`
	}{Printed: mostPrintedChars, Sources: []sourceText{}}
	size := 0
	for _, h := range p.variable.Sources {
		in.Sources, size = append(in.Sources, sourceText{h.Name, h.text}), size+len(h.text)
	}
	for _, one := range p.before {
		in.Programs = append(in.Programs, one.Code)
	}
	in.Programs = append(in.Programs, p.code)
	input, err := json.Marshal(in)
	if err != nil {
		return tool.Result{}, err
	}
	_, err = script.Engine{Self: p.set.Self, Env: p.call.Env, Open: p.call.Mode == tool.ModeYolo}.Run(ctx, script.Script{
		Programs: in.Programs, Setup: programSetup, Input: input, Seed: p.past.Seed, Now: time.UnixMilli(p.past.Now),
		Call: p.begin, Tell: p.tell, Rests: p.call.Waiting,
		Limits: script.Limits{Memory: 256<<20 + 8*size, Busy: programBusy, Calls: p.base + p.set.Limits.Asks + moreCalls},
	})
	tokens := p.set.closePurse(p.call.ID)
	res := tool.Result{Untrusted: true, Store: map[string]json.RawMessage{}}
	failed := err
	if own, is := errors.AsType[*script.Error](err); err != nil && (!is || p.index < len(p.before)) {
		if is {
			err = fmt.Errorf("an earlier program can't be repeated: %w", own)
		}
		return res, err
	}
	if err := p.leave(ctx, &res, failed == nil, tokens); err != nil {
		return res, err
	}
	res.Parts = tool.Text(p.said(failed == nil)).Parts
	if failed != nil {
		failed = fmt.Errorf("%s. Its variables are gone, those of earlier programs are not; answers that it got cost nothing again",
			text.Short(failed.Error(), mostError))
	}
	return res, failed
}

// leave stores what later programs need, and the answer.
func (p *program) leave(ctx context.Context, res *tool.Result, well bool, tokens int) error {
	p.mu.Lock()
	next, told, calls := p.past, 0, slices.Clone(p.calls[p.base:])
	for _, a := range p.asks[min(p.base, len(p.asks)):] {
		told += a.reply.Tokens
	}
	// Those of a try before a crash are only in replies, those of failed requests only in the purse.
	next.Asked, next.Tokens = next.Asked+len(calls), next.Tokens+max(tokens, told)
	p.mu.Unlock() // requests that were stopped with the program may still end
	if well {
		name, err := p.put(ctx, ran{p.code, calls})
		if err != nil {
			return err
		}
		next.Programs = append(slices.Clone(next.Programs), name)
	}
	raw, err := json.Marshal(next)
	if err != nil {
		return err
	}
	res.Store[programStore] = raw
	if !well || p.given == nil {
		return nil
	}
	name, err := p.put(ctx, p.answer())
	if err != nil {
		return err
	}
	raw, err = json.Marshal(name)
	res.Store[answerStore] = raw
	return err
}

func (p *program) put(ctx context.Context, v any) (string, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	return p.call.Env.Blobs.Put(ctx, bytes.NewReader(raw))
}

// said is the text that the model sees: the head of the output, the names and sizes of variables, and how requests
// ended.
func (p *program) said(well bool) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var b strings.Builder
	b.WriteString(p.output.String())
	if out := b.String(); out != "" && !strings.HasSuffix(out, "\n") {
		b.WriteString("\n")
	}
	if p.more > 0 {
		fmt.Fprintf(&b, "[+ %s more characters]\n", text.Thousands(p.more))
	}
	if n := len(p.calls) - p.base; n > 0 {
		fmt.Fprintf(&b, "[%s", text.Counted(n, "request", "requests"))
		if p.failed > 0 {
			fmt.Fprintf(&b, ", %d failed: %s", p.failed, text.Short(p.why, 300))
		}
		b.WriteString("]\n")
	}
	if well && len(p.names) > 0 {
		fmt.Fprintf(&b, "[variables: %s]\n", strings.Join(p.names, ", "))
	}
	if well && p.given != nil {
		fmt.Fprintf(&b, "[%s]\n", p.given.summary())
	}
	if b.Len() == 0 {
		return "[nothing was printed]"
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// begin makes a request of a program, or brings the outcome that it had.
func (p *program) begin(ctx context.Context, _ string, args json.RawMessage) func() script.Answer {
	over := func(err error) func() script.Answer { return func() script.Answer { return script.Answer{End: err} } }
	var a ask
	if err := json.Unmarshal(args, &a); err != nil {
		return over(&script.Error{Text: "ask: " + err.Error()})
	}
	p.mu.Lock()
	n := len(p.asks)
	err := p.check(&a)
	if p.asks = append(p.asks, a); n >= p.base {
		p.calls = append(p.calls, outcome{})
	}
	p.mu.Unlock()
	switch {
	case err != nil:
		return over(&script.Error{Text: err.Error()})
	case n < p.base:
		return func() script.Answer { return p.settle(n, p.ran(n)) }
	case p.past.Asked+n-p.base >= p.set.Limits.Asks:
		return over(&script.Error{Text: fmt.Sprintf("the programs of a session ask at most %s", text.Counted(p.set.Limits.Asks, "time", "times"))})
	}
	a.Variable = p.past.Variable
	raw, err := json.Marshal(a)
	if err != nil {
		return over(err)
	}
	wait := p.call.Start(ctx, askTool, raw)
	return func() script.Answer {
		res, err := wait()
		failed, isFailed := errors.AsType[*tool.CallError](err)
		if err != nil && !isFailed {
			return script.Answer{End: err}
		}
		o := outcome{Nth: p.base + res.Position - p.own}
		if isFailed {
			o.Error = failed.Text
		} else {
			o.Reply = json.RawMessage(within(res.Parts.Text()))
		}
		p.mu.Lock()
		p.calls[n] = o
		p.mu.Unlock()
		return p.settle(n, o)
	}
}

// ran returns how a request of an earlier program ended.
func (p *program) ran(n int) outcome {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls[n]
}

// settle brings the program the outcome of its nth request.
func (p *program) settle(n int, o outcome) script.Answer {
	p.mu.Lock()
	defer p.mu.Unlock()
	var r askReply
	if o.Error == "" {
		if err := json.Unmarshal(o.Reply, &r); err != nil {
			return script.Answer{End: fmt.Errorf("a model's answer: %w", err)}
		}
		p.asks[n].reply = r
		p.reads.note(byAsking, p.variable.ranges(p.asks[n].parts()))
		numbered := struct {
			askReply
			N int `json:"n"`
		}{r, n}
		return script.Answer{Value: numbered, Nth: o.Nth}
	}
	if n >= p.base {
		p.failed++
		p.why = o.Error
	}
	return script.Answer{Err: errors.New(o.Error), Nth: o.Nth}
}

// tell handles the messages of program.js that are not requests.
func (p *program) tell(kind, what string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := p.index == len(p.before)
	switch kind {
	case "ended":
		p.index, p.room = p.index+1, mostPrintedChars
		return json.Unmarshal([]byte(what), &p.names)
	case "print":
		return p.print(what, last)
	case "answer":
		g, err := p.give(what)
		if err != nil {
			return &script.Error{Text: "answer: " + err.Error()}
		}
		if last {
			p.given = g
		}
	}
	return nil
}

// print takes the head of a program's output. Text of sources in it counts as read.
func (p *program) print(what string, last bool) error {
	var list []json.RawMessage
	if err := json.Unmarshal([]byte(what), &list); err != nil {
		return err
	}
	if n := len(list); n > 0 {
		if more := 0; json.Unmarshal(list[n-1], &more) == nil {
			list = list[:n-1]
			if last {
				p.more += more
			}
		}
	}
	for _, raw := range append(list, json.RawMessage(`"\n"`)) {
		var one part
		if err := json.Unmarshal(raw, &one); err != nil {
			return err
		}
		shown, err := p.text(one)
		if err != nil {
			return &script.Error{Text: "print: " + err.Error()}
		}
		kept := shown
		if n := units(shown); n > p.room {
			kept = head(shown, p.room)
			if last {
				p.more += n - p.room
			}
		}
		p.room -= units(kept)
		if one.Source != nil {
			h := p.variable.Sources[*one.Source]
			from := h.at(one.From)
			p.reads.note(byPrinting, map[int][]span{*one.Source: {{int64(from), int64(from + len(kept))}}})
		}
		if last {
			p.output.WriteString(kept)
		}
	}
	return nil
}

package corpus_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/delegate/corpus"
	"github.com/inspan/inspan/internal/delegate/script"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/llm"
	scripted "github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/store"
	"github.com/inspan/inspan/tool"
)

func TestMain(m *testing.M) {
	if ran, code := sandbox.Keeper(); ran {
		os.Exit(code)
	}
	if ran, code := script.Child(); ran {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// leaf is a model that programs ask, at a dollar for a million tokens.
type leaf struct {
	answer func(req llm.Request) (string, error)
	asked  atomic.Int64
	mu     sync.Mutex
	seen   []string
}

func (m *leaf) Info() llm.Info {
	return llm.Info{Provider: "test", Model: "leaf", Window: 100_000, Prices: llm.Prices{{Input: 1, Output: 1}}}
}

func (m *leaf) Stream(_ context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		m.asked.Add(1)
		text := req.Messages[0].Parts.Text()
		m.mu.Lock()
		m.seen = append(m.seen, text)
		m.mu.Unlock()
		said, err := m.answer(req)
		if err != nil {
			yield(llm.Chunk{}, llm.AsError(err))
			return
		}
		yield(llm.Chunk{Reply: &llm.Reply{
			Parts: llm.Say(said), Stop: llm.StopEnd, Route: "test/leaf", Usage: llm.Usage{Input: len(text) / 4, Output: len(said) / 4},
		}}, nil)
	}
}

// body is the text that a request shows between its marks.
func body(req llm.Request) string {
	mark, rest, _ := strings.Cut(req.Messages[0].Parts.Text(), "\n")
	text, _, _ := strings.Cut(rest, "\n</"+strings.Trim(mark, "<>")+">")
	return text
}

// echoing answers with the first word of the text.
func echoing() *leaf {
	return &leaf{answer: func(req llm.Request) (string, error) { return strings.Fields(body(req) + " nothing")[0], nil }}
}

// programs runs programs in a session over the workspace of a world, one after the other, and returns all events.
type programs struct {
	*world
	limits event.Programs
	main   llm.Model
	limit  float64 // dollars of the session
}

func newPrograms(t *testing.T, m llm.Model) *programs {
	p := &programs{world: newWorld(t, m), limits: event.Programs{Depth: 1, Asks: 100}}
	p.set.Only, p.set.Self, p.set.Cache = []event.Source{{Name: "."}}, sandbox.Self(), ""
	return p
}

func (p *programs) agent(codes ...string) *inspan.Agent {
	p.t.Helper()
	var steps []scripted.Step
	for _, code := range codes {
		raw, err := json.Marshal(map[string]string{"code": code})
		if err != nil {
			p.t.Fatal(err)
		}
		steps = append(steps, scripted.Step{Parts: llm.Parts{llm.Call{Name: corpus.ProgramTool, Args: raw}}})
	}
	p.set.Limits, p.set.Main = p.limits, func(context.Context) (llm.Model, error) { return p.main, nil }
	shown, hidden := p.set.Programs()
	a := &inspan.Agent{
		Model: &scripted.Model{Steps: append(steps, scripted.Step{Parts: llm.Say("Done.")})}, Mode: tool.ModeYolo, Env: p.env, Tools: shown,
		Limits: inspan.Limits{Cost: p.limit}, Unattended: true,
	}
	a.Dynamic.Tools = func(context.Context) ([]tool.Tool, []tool.Tool) { return nil, hidden }
	a.Lifecycle.Started = func(s *inspan.Session) {
		p.set.Left = func() (float64, bool) {
			st := s.Status()
			return st.Limits.Cost - st.Cost, st.Limits.Cost > 0
		}
	}
	return a
}

// run runs programs in the log, and returns the result of each.
func (p *programs) run(codes ...string) (results []string) {
	p.t.Helper()
	p.play(p.agent(codes...), event.Say("go"))
	for _, e := range p.events() {
		if b, ok := e.Body.(event.Ended); ok && b.Parent == "" {
			results = append(results, b.Parts.Text())
		}
	}
	return results
}

func (p *programs) play(a *inspan.Agent, inputs ...event.Body) {
	p.t.Helper()
	s, err := a.Open(p.t.Context(), p.log)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, err := range s.Run(p.t.Context(), inputs...) {
		if err != nil {
			p.t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		p.t.Fatal(err)
	}
}

func (p *programs) events() (out []event.Event) {
	p.t.Helper()
	for e, err := range store.Events(p.t.Context(), p.store, p.log.ID()) {
		if err != nil {
			p.t.Fatal(err)
		}
		out = append(out, e)
	}
	return out
}

// answer is the answer of the session; nil means there is none.
func (p *programs) answer() *corpus.Answer {
	p.t.Helper()
	a, err := corpus.Answered(p.t.Context(), p.log.Blobs(), store.Events(p.t.Context(), p.store, p.log.ID()))
	if err != nil {
		p.t.Fatal(err)
	}
	return a
}

// TestVariablesLiveOn checks that programs share their variables, that one that fails leaves none, and that the model sees
// the head of what they print and the names and sizes of variables, but no values.
func TestVariablesLiveOn(t *testing.T) {
	m := echoing()
	p := newPrograms(t, m)
	p.write("a.txt", strings.Repeat("alpha beta\n", 1000))
	got := p.run(
		"const lines = context.lines(); let secretValue = 'sesame'; print(lines.length)",
		"const parts = lines.slice(0, 3); const said = await Promise.all(parts.map((l, i) => ask('Which word?', l, {sample: i}))); null.x",
		"print(typeof parts, lines.length); const said = await Promise.all([0, 1, 2].map(i => ask('Which word?', lines[i], {sample: i}))); print(said)",
		"print('x'.repeat(9000)); print('y'); print(said.length)",
		"const lines = 1",
	)
	for i, want := range [][]string{
		{"1000", "[variables: lines: list of 1000, secretValue: text of 6 characters]"},
		{"TypeError", "Its variables are gone", "[3 requests]"},
		{"undefined 1000", `["alpha","alpha","alpha"]`, "said: list of 3"},
		{"xxx\n[+ 1,005 more characters]"},
		{"redeclaration of 'lines'"},
	} {
		for _, part := range want {
			if !strings.Contains(got[i], part) {
				t.Errorf("program %d: %q not in %.500s", i+1, part, got[i])
			}
		}
		if strings.Contains(got[i], "sesame") {
			t.Errorf("program %d shows a value: %s", i+1, got[i])
		}
	}
	if n := m.asked.Load(); n != 6 {
		t.Errorf("%d requests", n) // no cache: a program that failed is asked again, one that ended well is not
	}
}

// TestTraceOfAnAnswer checks that each part of an answer leads to bytes of its source, whatever was done with the text in
// between, and that the answer may be long.
func TestTraceOfAnAnswer(t *testing.T) {
	p := newPrograms(t, echoing())
	text := "naïve ☃ 𝒳 one\r\n" + strings.Repeat("filler\n", 2000) + "The code of vault 7 is 4711, as agreed.\n\nlast"
	p.write("a.txt", text)
	p.write("b.txt", "caf\xe9 au lait: 3 cups\n") // Latin-1
	p.run(
		"const [a, b] = context; const hit = a.find(/The code.*/)[0]; const [w] = hit.split(' is ')[1].split(','); const long = a.slice(2)",
		"const said = await ask('Which word?', a.slice(3, 15)); const again = await ask('Say more', text`so: ${said}`)",
		"const cup = b.find(/3 cups/)[0]; answer(join([text`${w} / ${cup} `, 'plain ', said, ' ', again, '\\n', long]), [hit, cup])",
	)
	a := p.answer()
	if a == nil {
		t.Fatalf("no answer: %+v", p.events())
	}
	if want := "4711 / 3 cups plain ve ve" + "\n" + text[len("na"):]; !strings.HasPrefix(a.Answer, "4711 / 3 cups plain ve") || !strings.HasSuffix(a.Answer, text[len("na"):]) {
		t.Errorf("answer %.80q, want %.80q", a.Answer, want)
	}
	sources := map[string]string{"a.txt": text, "b.txt": "caf\xe9 au lait: 3 cups\n"}
	end, kinds := 0, ""
	for _, tr := range a.Trace {
		if tr.From != end {
			t.Errorf("a gap before %+v", tr)
		}
		end = tr.To
		kinds += tr.By[:2] + " "
		switch of := tr.Of; {
		case tr.By == "copied" && (len(of) != 1 || sources[of[0].Source][of[0].From:of[0].To] != a.Answer[tr.From:tr.To]):
			t.Errorf("%+v is %q", tr, a.Answer[tr.From:tr.To])
		case tr.By == "asked" && (len(of) != 1 || sources["a.txt"][of[0].From:of[0].To] != "ve ☃ 𝒳 one\r"):
			t.Errorf("%+v was said of %q", tr, sources["a.txt"][of[0].From:of[0].To])
		}
	}
	if end != len(a.Answer) || kinds != "co co co co as co as co co " {
		t.Errorf("to %d of %d: %s", end, len(a.Answer), kinds)
	}
	if len(a.Evidence) != 2 || a.Evidence[0].Line != 2002 || a.Evidence[0].Quote != "The code of vault 7 is 4711, as agreed." ||
		a.Evidence[1].Quote != "3 cups" || a.Evidence[1].From != 14 {
		t.Errorf("evidence %+v", a.Evidence)
	}
	if c := a.Coverage; c.Read != int64(len("ve ☃ 𝒳 one\r")) || c.By["copied"] != int64(len(text)-2+6) || c.By["asked"] != c.Read {
		t.Errorf("coverage %+v", c)
	}
}

// TestQuotesOfAsks checks the verified mode within programs: a quote that the text does not have is no answer.
func TestQuotesOfAsks(t *testing.T) {
	p := newPrograms(t, &leaf{answer: func(req llm.Request) (string, error) {
		text := body(req)
		switch {
		case strings.Contains(text, "lie"):
			return `{"answer": "The lie is 99.", "quotes": ["The lie is 99."]}`, nil
		case strings.Contains(text, "vault"):
			return `{"answer": "4711", "quotes": ["vault 7 is 4711"]}`, nil
		}
		return `{"answer": null}`, nil
	}})
	p.write("a.txt", "nothing here\nThe code of vault 7 is 4711.\na lie\n")
	got := p.run(`const all = await Promise.allSettled(context.lines().map(l => ask("Which code?", l, {quotes: true})));
		print(all.map(r => r.status + " " + (r.reason ?? r.value.answer)));
		answer("The code is " + all[1].value.answer + ".", all[1].value.quotes)`)
	if !strings.Contains(got[0], `"fulfilled null","fulfilled 4711","rejected AskError`) || !strings.Contains(got[0], "1 failed: it quotes what the piece does not have") {
		t.Error(got[0])
	}
	if a := p.answer(); a == nil || !a.Verified || a.Evidence[0].Quote != "vault 7 is 4711" || a.Evidence[0].From != 25 || a.Requests.Failed != 1 {
		t.Errorf("%+v", a)
	}
}

// TestFailedAskIsNoAnswer checks that a request that fails throws, and that its program fails unless it handles that.
func TestFailedAskIsNoAnswer(t *testing.T) {
	p := newPrograms(t, &leaf{answer: func(llm.Request) (string, error) { return "", fmt.Errorf("the server burns") }})
	p.write("a.txt", "one\n")
	got := p.run("answer(await ask('What?', context))", "answer(await ask('What?', context).catch(e => 'It says: ' + e.name))",
		"answer(await ask('What?', context, {schema: {type: 'number'}}))")
	if !strings.Contains(got[0], "AskError") || !strings.Contains(got[0], "the server burns") || !strings.Contains(got[2], "AskError") {
		t.Errorf("%q", got)
	}
	if a := p.answer(); a == nil || a.Answer != "It says: AskError" || a.Requests.Failed != 1 {
		t.Errorf("%+v", a)
	}
}

// TestLimitsOfAsks checks that requests are bounded before they are made: by number, depth, tokens, window and money.
func TestLimitsOfAsks(t *testing.T) {
	const many = "for (let i = 0; i < 40; i++) await ask('Number ' + i, context); answer('all')"
	const together = "const r = await Promise.allSettled([...Array(40)].map((_, i) => ask('Number ' + i, context))); print(r.filter(r => r.status === 'fulfilled').length)"
	for name, tc := range map[string]struct {
		set   func(p *programs)
		codes []string
		says  string
		most  int64
	}{
		"number":       {func(p *programs) { p.limits.Asks = 10 }, []string{many}, "ask at most 10 times", 10},
		"in programs":  {func(p *programs) { p.limits.Asks = 10 }, []string{"for (let j = 0; j < 6; j++) await ask('x', context, {sample: j}); null.x", many}, "ask at most 10 times", 10},
		"depth":        {func(p *programs) { p.limits.Depth = 0 }, []string{many}, "the depth is 0", 0},
		"tokens":       {func(p *programs) { p.limits.Tokens = 10_000 }, []string{many}, "the limit of 10000 tokens does not suffice", 40},
		"money":        {func(p *programs) { p.limit = 0.01 }, []string{many}, "does not suffice", 40},
		"at once":      {func(p *programs) { p.limit = 0.01 }, []string{together}, "does not suffice", 40},
		"window":       {func(*programs) {}, []string{"await ask('x', join([...Array(100)].map(() => context)))"}, "cut the text with chunks", 0},
		"no model":     {func(*programs) {}, []string{"await ask('x', context, {model: 'gpt'})"}, "there is no model", 0},
		"one is wrong": {func(*programs) {}, []string{"await Promise.allSettled([ask('x', context, {model: 'gpt'}), ask('y', context), ask('z', context)])"}, "there is no model", 2},
		"no option":    {func(*programs) {}, []string{"await ask('x', context, {shema: {}})"}, "ask has no option shema", 0},
	} {
		t.Run(name, func(t *testing.T) {
			m := echoing()
			p := newPrograms(t, m)
			p.write("a.txt", strings.Repeat("alpha beta\n", 400))
			tc.set(p)
			got := p.run(tc.codes...)
			if out := got[len(got)-1]; !strings.Contains(out, tc.says) || m.asked.Load() > tc.most {
				t.Errorf("%d requests, %.400s", m.asked.Load(), out)
			}
			cost, spent := 0.0, 0.0
			for _, e := range p.events() {
				switch b := e.Body.(type) {
				case event.Ended:
					cost += b.Cost
				}
			}
			for _, text := range m.seen {
				spent += float64(len(text)/4+len("alpha")/4) / 1e6
			}
			if p.limit > 0 && cost > p.limit || fmt.Sprintf("%.9f", cost) != fmt.Sprintf("%.9f", spent) {
				t.Errorf("the log has $%v, requests cost $%v, the limit is $%v", cost, spent, p.limit)
			}
		})
	}
}

// TestHistoryIsBounded checks that what the model sees of a text is at most its turns times the limit of output.
func TestHistoryIsBounded(t *testing.T) {
	p := newPrograms(t, echoing())
	p.write("a.txt", strings.Repeat("Q", 200_000))
	p.run("print(context)", "throw new Error(context)", "await ask(String(context.slice(0, 5000)), context); await ask(5)", "for (let i = 0; i < 100; i++) print(context.slice(i))", "var all = [context, context]; print(all); all", "answer(context)")
	seen := 0
	for _, e := range p.events() {
		if b, ok := e.Body.(event.Ended); ok && b.Parent == "" {
			seen += strings.Count(b.Parts.Text(), "Q")
		}
	}
	// What a program that failed prints, its error, and the last of its calls, are limited too.
	if seen > 3*8000+1000+20*200 || seen < 3*7000 {
		t.Errorf("the model has seen %d characters", seen)
	}
	if a := p.answer(); a == nil || len(a.Answer) != 200_000 || a.Coverage.Read != 8000 {
		t.Errorf("%+v", a.Coverage)
	}
}

// TestProgramsCut checks that after a crash between any two events the session ends with the same answer, and no request
// that had ended is made again.
func TestProgramsCut(t *testing.T) {
	codes := []string{
		"const first = await Promise.all(context.lines().slice(0, 3).map((l, i) => ask('Word ' + i, l)))",
		"const second = await ask('Again', join(first, ' ')); print(second)",
		"answer(text`${second} and ${await ask('Last', context.lines()[3])}`)",
	}
	m := echoing()
	p := newPrograms(t, m)
	p.write("a.txt", "alpha 1\nbeta 2\ngamma 3\ndelta 4\n")
	p.run(codes...)
	whole, want := p.events(), p.answer()
	if want == nil || want.Answer != "alpha and delta" || m.asked.Load() != 5 {
		t.Fatalf("%+v, %d requests", want, m.asked.Load())
	}
	wanted, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	step := 1
	if testing.Short() {
		step = 5
	}
	said := slices.IndexFunc(whole, func(e event.Event) bool { return e.Body.Kind() == "said" })
	for cut := said + 1; cut < len(whole); cut += step {
		log, ended, as := event.NewMemory("s"), 0, event.Driver{}
		for _, e := range whole[:cut] {
			var err error
			if b, is := e.Body.(event.Claimed); is {
				as.Epoch = b.Epoch
			}
			if b, is := e.Body.(event.Ended); is && strings.HasPrefix(b.Parts.Text(), `{"text"`) {
				ended++
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
		m2 := echoing()
		again := *p
		again.set = &corpus.Set{Key: p.set.Key, Only: p.set.Only, Self: p.set.Self, Model: func(context.Context) (llm.Model, error) { return m2, nil }}
		again.env.Blobs = p.log.Blobs()
		s, err := again.agent(codes...).Open(t.Context(), log)
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range s.Run(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
		}
		got, err := corpus.Answered(t.Context(), p.log.Blobs(), log.Read(t.Context(), 0))
		if err != nil {
			t.Fatal(err)
		}
		if raw, err := json.Marshal(got); err != nil || string(raw) != string(wanted) {
			t.Fatalf("cut at %d %s: %s, want %s (%v)", cut, whole[cut-1].Body.Kind(), raw, wanted, err)
		}
		if n := int(m2.asked.Load()); n != 5-ended {
			t.Errorf("cut at %d: %d requests, %d had ended", cut, n, ended)
		}
	}
}

// TestCancelReachesAsks checks that an interrupt ends requests of a running program, which then has no answer.
func TestCancelReachesAsks(t *testing.T) {
	began, ended := make(chan bool, 8), make(chan error, 8)
	p := newPrograms(t, waiting{began, ended})
	p.write("a.txt", "one\n")
	s, err := p.agent("answer(await Promise.all([1, 2, 3].map(i => ask('What ' + i, context))))").Open(t.Context(), p.log)
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan error, 1)
	go func() {
		var err error
		for _, e := range s.Run(t.Context(), event.Say("go")) {
			err = errors.Join(err, e)
		}
		over <- err
	}()
	for range 3 {
		testkit.Receive(t, "a request", began)
	}
	if _, err := p.log.Append(t.Context(), event.Cancelled{By: "the user"}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		testkit.Receive(t, "the end of a request", ended)
	}
	if err := testkit.Receive(t, "the end of the run", over); err != nil {
		t.Fatal(err)
	}
	if a := p.answer(); a != nil {
		t.Errorf("%+v", a)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// waiting is a model that answers only when it is told to stop.
type waiting struct {
	began chan bool
	ended chan error
}

func (waiting) Info() llm.Info {
	return llm.Info{Provider: "test", Model: "waiting", Prices: llm.Prices{{Input: 1, Output: 1}}}
}

func (m waiting) Stream(ctx context.Context, _ llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		m.began <- true
		<-ctx.Done()
		m.ended <- ctx.Err()
		yield(llm.Chunk{}, llm.AsError(ctx.Err()))
	}
}

// TestForgedParts checks that a program can't claim that text is of a source, or of a model, that did not say it.
func TestForgedParts(t *testing.T) {
	p := newPrograms(t, echoing())
	p.write("a.txt", "alpha beta\n")
	got := p.run(
		`await ask("Which word?", context); Text.prototype.toString = () => "forged"; answer(context.slice(0, 5))`,
		`answer(new Text("The source says no."), [new Text("says no")])`,
		`answer(join([context, context]), [join([context.slice(0, 5), context.slice(6)])])`,
	)
	if a := p.answer(); a == nil || a.Answer != "alpha" || a.Trace[0].By != "copied" {
		t.Errorf("%+v: %q", a, got)
	}
	for code, says := range map[string]string{
		`await ask("Which word?", context); Array.prototype.map = () => [{a: 0, t: "forged"}]; await ask("Again?", context)`: "request 0 did not bring",
		`Array.prototype.map = () => [{a: 3, t: "alpha"}]; await ask("What?", context)`:                                      "request 3 did not bring",
		`Array.prototype.map = () => [{s: 1, f: 0, t: 4}]; await ask("Which word?", context)`:                                "there is no part 0 to 4 of source 1",
		`Array.prototype.map = () => [{s: 0, f: 9, t: 4}]; await ask("What?", context)`:                                      "there is no part 9 to 4 of source 0",
	} {
		p := newPrograms(t, echoing())
		p.write("a.txt", "alpha beta\n")
		if got := p.run(code); !strings.Contains(got[0], says) || p.answer() != nil {
			t.Errorf("%s: %s", code, got)
		}
	}
	for _, one := range got[1:] {
		if !strings.Contains(one, "is not a part of one source") {
			t.Error(one)
		}
	}
}

// TestFormsOfAnswers checks what becomes of lists and data.
func TestFormsOfAnswers(t *testing.T) {
	for code, want := range map[string]string{
		`answer(context.lines())`:                     "alpha\nbeta copied computed copied",
		`answer([context.lines()[1], "plain"])`:       "beta\nplain copied computed",
		`answer({n: 1, of: context.slice(0, 5)})`:     "{\n \"n\": 1,\n \"of\": \"alpha\"\n} computed",
		`answer([1, 2])`:                              "[\n 1,\n 2\n] computed",
		`answer("first"); answer(context.trim())`:     "alpha\nbeta copied",
		`answer(context.split(/(?=b)|\n/g).slice(1))`: "beta copied",
	} {
		p := newPrograms(t, echoing())
		p.write("a.txt", "alpha\nbeta")
		p.run(code)
		a, got := p.answer(), ""
		if a != nil {
			got = a.Answer
			for _, one := range a.Trace {
				got += " " + one.By
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", code, got, want)
		}
	}
}

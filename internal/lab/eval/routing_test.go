package eval_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"hash/fnv"
	"iter"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/inspan/inspan/coding"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/lab/eval"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/router"
	"github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/tool"
)

var update = flag.Bool("update", false, "write the figures of docs/ROUTING.md anew")

// How strong the models are that are played: the parts of the tasks that they can do, and of the judge's
// words that are right.
const (
	weakDoes, strongDoes = 0.5, 0.95
	judgeKnows           = 0.8
)

// played is a model of known strength: the text of a task alone decides what it does. It does the tasks within its
// strength like an expert. In the others it makes one of the mistakes.
type played struct {
	name     string
	does     float64
	mistakes []mistake
	price    llm.Price
	try      int // it can do other tasks in each
	window   int // tokens

	mu   sync.Mutex
	seen map[string]int // tokens of its last request, by task
}

// mistake is the behaviour of a model in a task beyond its strength, turn by turn, before it gives up.
type mistake struct {
	part  float64
	turns int
	call  func(turn int) string // a command
}

// weakly is how a small model fails: its checks fail, it looks at the same again, it claims to be done, or
// it wanders.
func weakly() []mistake {
	return []mistake{
		{0.45, 8, func(n int) string { return fmt.Sprintf("sh ./try-%d.sh", n) }},
		{0.25, 6, func(int) string { return "ls" }},
		{0.20, 0, nil},
		{0.10, 60, func(n int) string { return fmt.Sprintf("echo step %d", n) }},
	}
}

// strongly is how a large one does.
func strongly() []mistake {
	return []mistake{{1, 3, func(n int) string { return fmt.Sprintf("sh ./attempt-%d.sh", n) }}}
}

// chance is a number from 0 to 1 that follows from texts.
func chance(of ...string) float64 {
	h := fnv.New64a()
	for _, s := range of {
		_, _ = h.Write([]byte(s + "\x00"))
	}
	return float64(h.Sum64()>>11) / (1 << 53)
}

// can reports whether the model can do a task.
func (p *played) can(task string) bool { return chance(p.name, strconv.Itoa(p.try), task) < p.does }

// Info implements [llm.Model].
func (p *played) Info() llm.Info {
	return llm.Info{Provider: p.name, Model: "m", Window: p.window, MaxOutput: p.window / 8, Prices: llm.Prices{p.price}}
}

// Stream implements [llm.Model]. The weak model is the judge of the router too.
func (p *played) Stream(_ context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	if tokens := req.Tokens(); tokens > p.window {
		return func(yield func(llm.Chunk, error) bool) {
			yield(llm.Chunk{}, &llm.Error{Kind: llm.KindWindow, Used: tokens, Limit: p.window})
		}
	}
	task, turn := "", 0
	var steps []script.Step
	for _, m := range req.Messages {
		said, _, _ := strings.Cut(strings.TrimPrefix(m.Parts.Text(), "<task>\n"), "\n</task>")
		if found, err := script.ParseCommands(said); m.Role == llm.User && task == "" && err == nil && len(found) > 0 {
			task, steps = said, found
		}
		if calls := m.Parts.Calls(); len(calls) > 0 && strings.HasPrefix(calls[0].ID, p.name) {
			turn++
		}
	}
	parts := p.next(task, steps, turn)
	if req.Purpose == "judge" {
		right := chance("judge", strconv.Itoa(p.try), task) < judgeKnows
		parts = llm.Say(map[bool]string{true: "2", false: "9"}[p.can(task) == right])
	}
	stop := llm.StopEnd
	if len(parts.Calls()) > 0 {
		stop = llm.StopCalls
	}
	reply := &llm.Reply{Parts: parts, Stop: stop, Route: p.Info().Route(), Usage: p.usage(task, req.Tokens(), parts.Bytes()/4+20)}
	return func(yield func(llm.Chunk, error) bool) { yield(llm.Chunk{Reply: reply}, nil) }
}

// next is the model's reply at one of its turns.
func (p *played) next(task string, steps []script.Step, turn int) llm.Parts {
	if p.can(task) {
		if turn >= len(steps) {
			return llm.Say("It is done.")
		}
		parts := slices.Clone(steps[turn].Parts)
		for i := range parts {
			if c, ok := parts[i].(llm.Call); ok {
				c.ID = fmt.Sprintf("%s%d-%d", p.name, turn, i)
				parts[i] = c
			}
		}
		return parts
	}
	at := chance(p.name, "mistake", strconv.Itoa(p.try), task)
	for _, m := range p.mistakes {
		if at -= m.part; at > 0 {
			continue
		}
		if turn >= m.turns {
			break
		}
		args, _ := json.Marshal(map[string]string{"command": m.call(turn)})
		return llm.Parts{llm.Call{ID: fmt.Sprintf("%s%d", p.name, turn), Name: "bash", Args: args}}
	}
	return llm.Say("It is done, I think.")
}

// usage is the usage of a request: the part that the model has seen before is in its cache.
func (p *played) usage(task string, input, output int) llm.Usage {
	p.mu.Lock()
	defer p.mu.Unlock()
	cached := min(p.seen[task], input)
	p.seen[task] = input
	if p.price.CacheWrite == 0 {
		return llm.Usage{Input: input - cached, CacheRead: cached, Output: output}
	}
	return llm.Usage{CacheWrite: input - cached, CacheRead: cached, Output: output}
}

// outcome is the result of a strategy.
type outcome struct{ solved, dollars float64 }

// strategies are the models for each task, by name; all but the coin, which combines the results of two of them.
func strategies() map[string]func(weak, strong *played) llm.Model {
	routed := func(weak, strong *played) *router.Model {
		return &router.Model{
			ID:     "auto",
			Routes: []router.Route{{Name: "local", Model: weak, Local: true}, {Name: "cloud", Model: strong}},
			Rules: []router.Rule{
				{Name: "hard", When: router.Cond{Hard: new(true)}, Use: []string{"cloud", "local"}},
				{Name: "easy", When: router.Cond{Hard: new(false)}, Use: []string{"local", "cloud"}},
			},
		}
	}
	return map[string]func(weak, strong *played) llm.Model{
		allLocal: func(weak, _ *played) llm.Model { return weak },
		allCloud: func(_, strong *played) llm.Model { return strong },
		begins: func(weak, strong *played) llm.Model {
			m := routed(weak, strong)
			m.Begin = "local"
			return m
		},
		judged: func(weak, strong *played) llm.Model {
			m := routed(weak, strong)
			m.Judge = &router.Route{Name: "judge", Model: weak, Local: true}
			return m
		},
	}
}

const (
	allLocal = "all local"
	allCloud = "all in the cloud"
	coin     = "a coin for each task"
	begins   = "router, begins local"
	judged   = "router with a judge"
)

// solve has a model do a task with the real tools, and looks whether it is done.
func solve(t *testing.T, k *eval.Task, m llm.Model) (o outcome) {
	dir := t.TempDir()
	root := filepath.Join(dir, "work")
	for _, text := range append([][2]string{{".keep", ""}}, k.Texts...) {
		path := filepath.Join(root, text[0])
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text[1]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	host, err := coding.Agent(coding.Options{
		Sandbox: coding.NoSandbox(), Root: root, State: filepath.Join(dir, "state"), Model: m, Mode: tool.ModeYolo, Unattended: true,
		Warn: func(string) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := host.New(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range s.Run(t.Context(), event.Say(k.Prompt)) {
		if err != nil {
			t.Fatal(err)
		}
		switch b := e.Body.(type) {
		case event.Replied:
			o.dollars += b.Cost
		case event.Routed:
			o.dollars += b.Cost
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	o.solved = 1
	for _, args := range k.Check.Commands {
		check := exec.CommandContext(t.Context(), args[0], args[1:]...)
		check.Dir = root
		if check.Run() != nil {
			o.solved = 0
		}
	}
	return o
}

// leaves finds tasks that leave their folder, or wait for something.
var leaves = regexp.MustCompile(`~|/tmp|/etc|/var|/dev/shm|HOME|PORT|sleep|background|call: jobs|keep|nohup|setsid|&"|& |cron|apt|pip|npm|git config --global`)

// mostAsked is how many bytes a task may have: more is about long commands, and fits no small window.
const mostAsked = 4 << 10

// within are the tasks of the oracle that stay in their folder, for a home of their own.
func within(t *testing.T) (tasks []*eval.Task) {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HOME", home)
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[user]\nname = n\nemail = n@example.com\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	suite, err := eval.OpenSuite("testdata/oracle", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range suite.Tasks {
		// Only tasks that stay in their folder and end at once: the models are played, and the money is what counts.
		if len(k.Needs)+len(k.Graders) == 0 && len(k.Prompt) < mostAsked && !slices.Contains(k.Tags, "walled") && !leaves.MatchString(k.Prompt+k.Check.Commands[0][2]) {
			tasks = append(tasks, k)
		}
	}
	return tasks
}

// TestSmallWindow has tasks of the oracle done in a window of 8,192 tokens, including those whose results are
// longer.
func TestSmallWindow(t *testing.T) {
	tasks := within(t)
	if len(tasks) < 10 {
		t.Fatalf("%d tasks", len(tasks))
	}
	if testing.Short() {
		tasks = tasks[:3]
	}
	for _, k := range tasks {
		m := &played{name: "small", does: 1, window: 8192, seen: map[string]int{}}
		if o := solve(t, k, m); o.solved != 1 {
			t.Errorf("%s: is not done", k.Title)
		}
	}
}

// TestRouting plays a weak local model and a strong one in the cloud on the oracle's tasks, and checks the router: it
// solves more than the weak one and costs less than the strong one, and a coin that chooses for each task solves less
// for the same money. With all tasks it checks the figures in docs/ROUTING.md.
func TestRouting(t *testing.T) {
	tasks := within(t)
	tries := 3 // of each task
	if testing.Short() {
		tasks, tries = tasks[:min(4, len(tasks))], 1
	}
	asked := len(tasks) * tries
	got := map[string]outcome{}
	for name, strategy := range strategies() {
		weak := &played{name: "weak", does: weakDoes, window: 100_000, mistakes: weakly(), seen: map[string]int{}}
		strong := &played{
			name: "strong", does: strongDoes, window: 100_000, mistakes: strongly(), seen: map[string]int{},
			price: llm.Price{Input: 3, Output: 15, CacheRead: 0.3, CacheWrite: 3.75},
		}
		var sum outcome
		for try := range tries {
			weak.try, strong.try = try, try
			clear(weak.seen)
			clear(strong.seen)
			for _, k := range tasks {
				o := solve(t, k, strategy(weak, strong))
				sum = outcome{sum.solved + o.solved, sum.dollars + o.dollars}
			}
		}
		got[name] = sum
		t.Logf("%s: %.0f of %d tasks, $%.3f", name, sum.solved, asked, sum.dollars)
	}
	local, cloud := got[allLocal], got[allCloud]
	for _, name := range []string{begins, judged} {
		o := got[name]
		part := o.dollars / cloud.dollars // of the tasks that a coin may send to the cloud for the same money
		if even := local.solved + part*(cloud.solved-local.solved); o.solved <= local.solved || o.dollars >= cloud.dollars || o.solved <= even {
			t.Errorf("%s: %.0f tasks for $%.3f; a coin does %.1f", name, o.solved, o.dollars, even)
		}
	}
	if testing.Short() {
		return
	}
	got[coin] = outcome{(local.solved + cloud.solved) / 2, (local.dollars + cloud.dollars) / 2}
	document(t, asked, got)
}

// document compares the table in docs/ROUTING.md with the results, or writes it. The money depends a little on the
// names of folders, which are in the prompt.
func document(t *testing.T, asked int, got map[string]outcome) {
	t.Helper()
	const path, from, to = "../../../docs/ROUTING.md", "<!-- from TestRouting -->\n", "<!-- end of the table -->"
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, _ := strings.Cut(string(raw), from)
	old, tail, ok := strings.Cut(rest, to)
	if !ok {
		t.Fatalf("%s lacks its marks", path)
	}
	table := fmt.Sprintf("| strategy | solved of %d | US dollars |\n|---|---|---|\n", asked)
	for _, name := range []string{allLocal, coin, begins, judged, allCloud} {
		o := got[name]
		row := fmt.Sprintf("| %s | %.0f | ", name, o.solved)
		table += fmt.Sprintf("%s%.2f |\n", row, o.dollars)
		_, said, found := strings.Cut(old, row)
		said, _, _ = strings.Cut(said, " |")
		if d, err := strconv.ParseFloat(said, 64); !*update && (!found || err != nil || math.Abs(d-o.dollars) > 0.05*o.dollars+0.01) {
			t.Errorf("%s says something else than %s$%.3f; run go test ./internal/lab/eval -run TestRouting -update", path, row, o.dollars)
		}
	}
	if *update {
		if err := os.WriteFile(path, []byte(head+from+table+to+tail), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Package teams_test simulates teams: the machine is the real one (sessions, members, tasks, mailboxes, file tools), the
// models are scripts that take time, die, lie and edit the same files. So the figures show what the machine does to the
// work of many, and not whether a model finds good tasks.
package teams_test

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/delegate/subagent"
	"github.com/inspan/inspan/internal/extend/skill"
	"github.com/inspan/inspan/internal/extend/tools"
	"github.com/inspan/inspan/internal/kernel/session"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// crew is a team and its work. It is JSON, so that a process that is killed can be told of it.
type crew struct {
	Seed    int
	Members int
	Tasks   int
	Files   int           // that the tasks change, in turn
	Chain   int           // each task comes after the one so many before it; 0 means none
	Takes   time.Duration // a request to a model
	Dies    float64       // probability that a request ends its member
	Lies    float64       // probability that a member says at once that a task is done
	Cost    float64       // limit of the tree, US dollars; 0 means none
	Hops    int           // instead of tasks: how often the members, idle in between, hand a token on
	Dir     string        // of the sessions
	Root    string        // of the repository
}

// chance returns a number in [0, 1) that depends on its arguments alone.
func (c crew) chance(of ...any) float64 {
	h := fnv.New64a()
	fmt.Fprintln(h, append([]any{c.Seed}, of...)...)
	x := h.Sum64() // finalized as in MurmurHash3, since FNV alone leaves similar texts similar
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	x ^= x >> 33
	return float64(x>>11) / (1 << 53)
}

func (c crew) line(task int) string { return fmt.Sprintf("entry %03d", task) }
func (c crew) file(task int) string { return fmt.Sprintf("shared%d.txt", task%c.Files) }

// lay writes the repository.
func (c crew) lay() error {
	for i := range c.Files {
		if err := os.WriteFile(filepath.Join(c.Root, c.file(i)), []byte("top\nend\n"), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// mind is the model of the lead and of all members. It is a function of the request, as it would be after a
// restart.
type mind struct{ crew }

func (m mind) Info() llm.Info {
	return llm.Info{Provider: "sim", Model: "member", Window: 1_000_000, Prices: llm.Prices{{Input: 1, Output: 10}}}
}

func (m mind) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		task := req.Messages[0].Parts.Text()
		timer := time.NewTimer(time.Duration((0.5 + m.chance("takes", task, len(req.Messages))) * float64(m.Takes)))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			yield(llm.Chunk{}, llm.AsError(ctx.Err()))
			return
		}
		parts := m.lead(req)
		if task != leadTask {
			if m.chance("dies", task, len(req.Messages)) < m.Dies {
				yield(llm.Chunk{}, &llm.Error{Kind: llm.KindInvalid, Message: "the member dies"})
				return
			}
			parts = m.member(task, req)
		}
		r := &llm.Reply{Parts: parts, Stop: llm.StopEnd, Route: "sim/member", Usage: llm.Usage{Input: req.Tokens(), Output: 20 * len(parts)}}
		if len(parts.Calls()) > 0 {
			r.Stop = llm.StopCalls
		}
		yield(llm.Chunk{Reply: r}, nil)
	}
}

const leadTask = "do all the work"

func call(id int, name string, args map[string]any) llm.Call {
	raw, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return llm.Call{ID: fmt.Sprint("c", id), Name: name, Args: raw}
}

// lead adds the tasks, spawns the members, and one more for each that has ended without being done.
func (m mind) lead(req llm.Request) llm.Parts {
	var parts llm.Parts
	turn, all := len(req.Messages), said(req)
	spawn := func(name string) {
		parts = append(parts, call(1000*turn+len(parts), "spawn_agent", map[string]any{
			"name": name, "task": "work as " + name, "background": true, "max_turns": 10_000,
		}))
	}
	switch {
	case turn == 1 && m.Hops > 0:
		for i := range m.Members {
			spawn(fmt.Sprint("m", i+1))
		}
		return parts
	case m.Hops > 0 && strings.Count(all, "works in the background") < m.Members:
		return llm.Parts{call(turn, "team", map[string]any{"action": "members"})}
	case m.Hops > 0 && !strings.Contains(all, "token"):
		return llm.Parts{call(turn, "team", map[string]any{"action": "send", "to": "m1", "text": fmt.Sprintf("token %d.", m.Hops)})}
	case m.Hops > 0:
		return llm.Say("I wait for the others.")
	case turn == 1:
		for i := range m.Tasks {
			args := map[string]any{"action": "add_task", "text": m.line(i) + " in " + m.file(i), "check": "has " + m.line(i) + " in " + m.file(i)}
			if m.Chain > 0 && i >= m.Chain {
				args["after"] = []string{fmt.Sprint(i + 1 - m.Chain)}
			}
			parts = append(parts, call(i, "team", args))
		}
		return parts
	case !strings.Contains(all, "works in the background"):
		for i := range m.Members {
			spawn(fmt.Sprint("m", i+1))
		}
		return parts
	}
	for _, dead := range regexp.MustCompile(`\[agent (m\w+)(: failed|: broken off| can't go on)`).FindAllStringSubmatch(all, -1) {
		if heir := dead[1] + "x"; !strings.Contains(all, `"`+heir+`"`) && !slices.ContainsFunc(parts.Calls(), func(c llm.Call) bool { return strings.Contains(string(c.Args), heir) }) {
			spawn(heir)
		}
	}
	if parts == nil {
		return llm.Say("I wait for the others.")
	}
	return parts
}

// said is all text of a conversation, with calls and results.
func said(req llm.Request) string {
	var b strings.Builder
	for _, msg := range req.Messages {
		for _, p := range msg.Parts {
			switch p := p.(type) {
			case llm.Text:
				b.WriteString(p.Text)
			case llm.Call:
				b.Write(p.Args)
			case llm.Result:
				b.WriteString(p.Parts.Text())
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

// member claims tasks, does them, and waits for more, until all are done.
func (m mind) member(name string, req llm.Request) llm.Parts {
	last, result := lastCall(req)
	turn := len(req.Messages)
	if m.Hops > 0 {
		return m.hop(name, req)
	}
	team := func(action string, more ...any) llm.Parts {
		args := map[string]any{"action": action}
		for i := 0; i < len(more); i += 2 {
			args[more[i].(string)] = more[i+1]
		}
		return llm.Parts{call(turn, "team", args)}
	}
	id, line, file := mine(req)
	look := llm.Parts{call(turn, "read_file", map[string]any{"path": file})}
	done := team("done", "task", id, "text", "it is there")
	switch last {
	case "wait":
		if found := regexp.MustCompile(`Task (\d+) can be claimed`).FindStringSubmatch(result); found != nil {
			return team("claim", "task", found[1])
		}
		return team("tasks")
	case "tasks":
		if !strings.Contains(result, "[open") && !strings.Contains(result, "[waits") && !strings.Contains(result, " has it]") {
			return llm.Say("All is done.")
		}
	case "claim":
		if strings.Contains(result, "is yours: ") && m.chance("lies", name, turn) < m.Lies {
			return done
		}
		if strings.Contains(result, "is yours: ") {
			return look
		}
	case "read_file":
		if strings.Contains(result, line) {
			return done
		}
		return llm.Parts{call(turn, "edit_file", map[string]any{"path": file, "old_string": "end\n", "new_string": line + "\nend\n"})}
	case "edit_file":
		return look
	case "done":
		if strings.Contains(result, "its check did not pass") {
			return look
		}
	}
	return team("wait", "seconds", 1)
}

// hop hands on the token that came last, once, and idles.
func (m mind) hop(name string, req llm.Request) llm.Parts {
	all := said(req)
	found := regexp.MustCompile(`says; it is not the person:\]\ntoken (\d+)\.`).FindAllStringSubmatch(all, -1)
	var place, left int
	if _, err := fmt.Sscanf(name, "work as m%d", &place); err != nil || len(found) == 0 {
		return llm.Say("I idle.")
	}
	_, _ = fmt.Sscan(found[len(found)-1][1], &left)
	on := fmt.Sprintf("token %d.", left-1)
	if left == 0 || strings.Contains(all, `"text":"`+on) {
		return llm.Say("I idle.")
	}
	return llm.Parts{call(len(req.Messages), "team", map[string]any{"action": "send", "to": fmt.Sprint("m", place%m.Members+1), "text": on})}
}

// lastCall returns the last call of a conversation (of the tool team, its action) and its result.
func lastCall(req llm.Request) (what, result string) {
	for _, msg := range slices.Backward(req.Messages) {
		for _, p := range msg.Parts {
			if r, ok := p.(llm.Result); ok {
				result = r.Parts.Text() + "\n" + result
			}
		}
		if calls := msg.Parts.Calls(); len(calls) > 0 {
			var in struct{ Action string }
			_ = json.Unmarshal(calls[0].Args, &in)
			if what = calls[0].Name; what == "team" {
				what = in.Action
			}
			return what, result
		}
	}
	return "", ""
}

// mine returns the task that a member has claimed last.
func mine(req llm.Request) (id, line, file string) {
	for _, found := range regexp.MustCompile(`Task (\d+) is yours: (entry \d+) in (\S+)`).FindAllStringSubmatch(said(req), -1) {
		id, line, file = found[1], found[2], found[3]
	}
	return id, line, file
}

// checker is the tool with which checks run: "has LINE in FILE".
func checker(root string) tool.Tool {
	return tool.Tool{
		Name: "bash", Doc: "Checks.", Schema: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"},"timeout":{"type":"integer"}}}`),
		Effects: tool.NoEffects,
		Run: func(_ context.Context, c *tool.Call) (tool.Result, error) {
			var in struct{ Command string }
			_ = json.Unmarshal(c.Args, &in)
			line, file, _ := strings.Cut(strings.TrimPrefix(in.Command, "has "), " in ")
			text, err := os.ReadFile(filepath.Join(root, file))
			code := 0
			if err != nil || !strings.Contains(string(text), line+"\n") {
				code = 1
			}
			res := tool.Text("")
			res.Exit = &code
			return res, nil
		},
	}
}

func (c crew) agent(blobs tool.Blobs) (*inspan.Agent, error) {
	env, err := sandbox.Local(c.Root, blobs, sandbox.Options{})
	if err != nil {
		return nil, err
	}
	return &inspan.Agent{
		Model: mind{c}, Mode: tool.ModeYolo, Env: env, Tools: append(tools.Files(), checker(c.Root)), Unattended: true,
		Limits: inspan.Limits{Turns: -1, Cost: c.Cost, Retry: -1},
	}, nil
}

// host makes sessions of the crew's lead.
func (c crew) host() *inspan.Host {
	sessions := &session.Store{Dir: c.Dir, Sync: session.SyncKill}
	return &inspan.Host{Store: sessions, Agent: func(_ context.Context, at inspan.SessionSpec) (*inspan.Agent, error) {
		a, err := c.agent(at.Blobs)
		if err != nil {
			return nil, err
		}
		team := &subagent.Team{
			Sessions: sessions, Roles: skill.BuiltinRoles, MinuteCost: new(float64), MinuteTokens: new(int64),
			Make: func(_ context.Context, _ subagent.Order, at inspan.SessionSpec) (*inspan.Agent, error) {
				return c.agent(at.Blobs)
			},
		}
		team.Wire(a)
		return a, nil
	}}
}

// work runs the lead until it is done, from where its log is.
func (c crew) work(ctx context.Context, id string) error {
	s, err := c.host().Open(ctx, id)
	if err != nil {
		return err
	}
	var inputs []event.Body
	if st := s.Status(); st.Stopped == nil && !st.Active {
		inputs = []event.Body{event.Say(leadTask)}
	}
	for _, err := range s.Run(ctx, inputs...) {
		if err != nil {
			_ = s.Close()
			return err
		}
	}
	return s.Close()
}

func (c crew) begin(t testing.TB) string {
	t.Helper()
	if err := c.lay(); err != nil {
		t.Fatal(err)
	}
	s, err := c.host().New(t.Context(), c.Root)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return s.ID()
}

package subagent

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/store"
	"github.com/inspan/inspan/tool"
)

//go:embed team.md
var teamDoc string

const teamTool = "team"

// Limits of messages, in bytes.
const (
	maxMessage = 8 << 10
	maxTask    = 2 << 10
	maxResult  = 2 << 10
)

type teamArgs struct {
	Action string   `json:"action" enum:"members,send,wait,tasks,add_task,edit_task,assign,claim,done,release,leave"`
	To     string   `json:"to,omitempty" jsonschema:"for send: an agent's name such as k3f9a2, its kind if there is one of it, parent, or all; for add_task and assign: the one that is to do it"`
	Text   string   `json:"text,omitempty" jsonschema:"for send: the message; for add_task: what is to be done; for done: what came of it"`
	Task   string   `json:"task,omitempty" jsonschema:"number of the task"`
	After  []string `json:"after,omitempty" jsonschema:"for add_task: numbers of the tasks that must be done first"`
	Check  string   `json:"check,omitempty" jsonschema:"for add_task: a bash command that must pass before it is done"`
	Time   int      `json:"seconds,omitempty" jsonschema:"for wait: at most so long, 60 if not given; for add_task: not before"`
	Own    bool     `json:"own,omitempty" jsonschema:"for one who works for another and has agents too: the list and the agents are its own, not those it is among"`
}

// newTeamTool returns the tool that lets the members of a team work together. Lead is the team of the agent that
// has the tool, nil if it can't have one; member is the one in which it works, nil at the top.
func newTeamTool(lead, member *Team) tool.Tool {
	pick := func(own bool) (*Team, error) {
		at := member
		if member == nil || own {
			at = lead
		}
		if at == nil || !at.runs() {
			return nil, errors.New("you have no team here")
		}
		return at, nil
	}
	t := tool.New(teamTool, teamDoc, func(ctx context.Context, c *tool.Call, in teamArgs) (tool.Result, error) {
		at, err := pick(in.Own)
		if err != nil {
			return tool.Result{}, err
		}
		switch in.Action {
		case "members":
			return tool.Text(at.members(c.Session)), nil
		case "send":
			return at.send(ctx, c, in)
		case "wait":
			return at.wait(ctx, c, in)
		case "leave":
			return at.leave(c)
		}
		return at.task(ctx, c, in)
	})
	t.Effects = noEffects
	t.Resolve = func(_ context.Context, c *tool.Call) (string, json.RawMessage, error) {
		in, err := tool.Args[teamArgs](c)
		at, none := pick(in.Own)
		if err != nil || none != nil || in.Action != "done" {
			return "", nil, nil //nolint:nilerr // the call itself says what is wrong
		}
		return at.finishCall(c.Session, in)
	}
	return t
}

// newFinishTool returns the tool that team uses for the end of a task that has a check.
func newFinishTool(lead, member *Team) tool.Tool {
	t := tool.New(finishTool, "Runs the check of a task, and marks the task done if it passes. Use team, action done.", func(ctx context.Context, c *tool.Call, in finishArgs) (tool.Result, error) {
		at := member
		if member == nil || in.Own {
			at = lead
		}
		if at == nil || !at.runs() {
			return tool.Result{}, errors.New("you have no team here")
		}
		return at.finish(ctx, c, in)
	})
	t.Calls = true
	return t
}

// wireMate lets a child's agent work together with the others. The agent of a step works alone: its only output
// is its result, and it learns nothing of the other agents.
func (t *Team) wireMate(a *inspan.Agent, o Order) {
	if !o.step {
		a.Tools = append(slices.Clone(a.Tools), newTeamTool(o.Team, t))
		finish, others := newFinishTool(o.Team, t), a.Dynamic.Tools
		a.Dynamic.Tools = func(ctx context.Context) (shown, hidden []tool.Tool) {
			if others != nil {
				shown, hidden = others(ctx)
			}
			return shown, append(slices.Clone(hidden), finish)
		}
	}
}

// nameOf returns the name of a caller, for the others.
func (t *Team) nameOf(id string) string {
	if id == t.session.ID() {
		return "the agent you work for"
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if k := t.children[id]; k != nil {
		return "agent " + k.label()
	}
	return "agent " + short(id)
}

// members lists the members of the team, for one of them.
func (t *Team) members(reader string) string {
	st, soon := t.session.Status(), t.upcoming()
	t.mu.Lock()
	defer t.mu.Unlock()
	lead := "parent: the agent that the others work for"
	if st.Session == reader {
		lead += "; that is you"
	}
	lines := []string{lead}
	for _, c := range st.Children {
		k, idle := t.children[c.Child], t.idle[c.Child] != nil
		line := cmp.Or(c.Name, short(c.Child)) + ": " + c.Agent
		switch {
		case c.Child == reader:
			line += "; that is you"
		case k != nil:
			line += ", works on: " + c.Task
		case idle:
			line += ", idle"
		default:
			continue
		}
		lines = append(lines, line)
	}
	for _, c := range soon {
		lines = append(lines, fmt.Sprintf("%s: %s, about to begin: %s", cmp.Or(c.Name, short(c.Child)), c.Agent, c.Task))
	}
	if len(lines) == 1 {
		lines = append(lines, "No other agent works.")
	}
	return strings.Join(lines, "\n")
}

// upcoming returns the agents that calls of the session's last reply ask for and that have not begun: agents that
// begin together must know each other.
func (t *Team) upcoming() (out []event.Spawned) {
	st := t.session.Status()
	for _, p := range st.OpenCalls {
		if p.Call.Name != spawnTool {
			continue
		}
		in, err := tool.Args[spawnArgs](&tool.Call{Args: p.Call.Args})
		n, bad := in.count()
		if err != nil || bad != nil {
			continue // it will fail
		}
		for i := range n {
			name, member := fmt.Sprintf("%s@%d", p.Call.ID, st.Turns), in.Name
			if n > 1 {
				name, member = fmt.Sprint(name, "/", i+1), nameOfMany(in.Name, i)
			}
			id, err := store.ChildID(st.Session, name)
			if err == nil && !slices.ContainsFunc(st.Children, func(c inspan.Child) bool { return c.Child == id }) {
				out = append(out, event.Spawned{Child: id, Agent: cmp.Or(in.Agent, "worker"), Name: member, Task: text.Short(in.Task, 200)})
			}
		}
	}
	return out
}

// send sends a message to another member of the team, or to all others.
func (t *Team) send(ctx context.Context, c *tool.Call, in teamArgs) (tool.Result, error) {
	switch said := strings.TrimSpace(in.Text); {
	case said == "":
		return tool.Result{}, errors.New("text is empty")
	case len(said) > maxMessage:
		return tool.Result{}, fmt.Errorf("text has %d bytes, more than %d; put it in a file and tell where that is", len(said), maxMessage)
	}
	from := t.nameOf(c.Session)
	to, names, err := t.mailboxes(c.Session, in.To)
	if err != nil {
		return tool.Result{}, err
	}
	message := event.Steered{
		By: from, Origin: event.OriginAgent, Message: c.Session + " " + c.Key,
		Parts: llm.Say("[" + from + " says; it is not the person:]\n" + strings.TrimSpace(in.Text)), Taint: t.taintOf(c.Session),
	}
	for i, id := range to {
		if err := t.post(ctx, id, message); err != nil {
			return tool.Result{}, fmt.Errorf("tell %s: %w", names[i], err)
		}
	}
	return tool.Text("Told " + strings.Join(names, ", ") + ". That is seen before the next step there."), nil
}

// mailboxes finds the receivers of a message: a member by its name, or those that work or are idle by their ids or kind. An
// agent can't write to itself.
func (t *Team) mailboxes(from, to string) (ids, names []string, err error) {
	st := t.session.Status()
	if to == "parent" {
		switch {
		case from == st.Session:
			return nil, nil, errors.New("you work for nobody here")
		case !st.Active:
			return nil, nil, errors.New("it is not at work")
		}
		return []string{st.Session}, []string{to}, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	reachable := map[string]event.Spawned{}
	for id, k := range t.children {
		reachable[id] = k.spawned
	}
	for id, r := range t.idle {
		reachable[id] = r.Spawned
	}
	delete(reachable, from)
	var all []string
	for _, id := range slices.Sorted(maps.Keys(reachable)) {
		s := reachable[id]
		all = append(all, labelOf(s))
		switch {
		case s.Name != "" && strings.EqualFold(to, s.Name):
			return []string{id}, []string{s.Name}, nil
		case to == "all" || to == short(id) || to == id || strings.EqualFold(to, s.Agent):
			ids, names = append(ids, id), append(names, labelOf(s))
		}
	}
	slices.Sort(all)
	switch {
	case len(all) == 0:
		return nil, nil, errors.New("no other agent works")
	case len(ids) == 0:
		return nil, nil, fmt.Errorf("no agent %q works; there are %s", to, strings.Join(all, ", "))
	case len(ids) > 1 && to != "all":
		slices.Sort(names)
		return nil, nil, fmt.Errorf("%d are %s: %s", len(names), to, strings.Join(names, ", "))
	}
	return ids, names, nil
}

// taintOf returns the taint of a member's words.
func (t *Team) taintOf(id string) event.Taint {
	st := t.sessionOf(id).Status()
	return event.Taint{Untrusted: st.Untrusted, Private: st.Private}
}

// task shows or changes the list of tasks.
func (t *Team) task(ctx context.Context, c *tool.Call, in teamArgs) (tool.Result, error) {
	b := event.Tasked{
		ID: strings.TrimPrefix(in.Task, "#"), By: c.Session,
		Call: c.ID, Text: strings.TrimSpace(in.Text), Taint: t.taintOf(c.Session),
	}
	if in.Time > 0 {
		b.At = time.Now().Add(time.Duration(min(in.Time, mostSeconds)) * time.Second)
	}
	most := maxTask
	switch in.Action {
	case "tasks":
		return t.tasks(), nil
	case "add_task":
		if b.ID, b.Action = "", loop.TaskAdd; b.Text == "" {
			return tool.Result{}, errors.New("text is empty")
		}
		b.After, b.Check = taskNumbers(in.After), strings.TrimSpace(in.Check)
		if in.To != "" {
			to, err := t.assignee(c.Session, in.To)
			if err != nil {
				return tool.Result{}, err
			}
			b.For = to
		}
	case "edit_task":
		b.Action, b.After, b.Check = loop.TaskEdit, taskNumbers(in.After), strings.TrimSpace(in.Check)
	case "assign":
		b.Action, b.Text = loop.TaskAssign, ""
		if in.To != "" && in.To != "all" {
			to, err := t.assignee(c.Session, in.To)
			if err != nil {
				return tool.Result{}, err
			}
			b.For = to
		}
	case "claim":
		b.Action, b.Text = loop.TaskClaim, ""
	case "release":
		b.Action, b.Text = loop.TaskRelease, ""
	case "done":
		b.Action, most = loop.TaskDone, maxResult
	default:
		return tool.Result{}, fmt.Errorf("there is no action %q; there are members, send, wait, tasks, add_task, edit_task, assign, claim, done, release, leave", in.Action)
	}
	if len(b.Text) > most {
		return tool.Result{}, fmt.Errorf("text has %d bytes, more than %d", len(b.Text), most)
	}
	if err := t.awaitEarlier(ctx, c); err != nil {
		return tool.Result{}, err
	}
	if b.Action == loop.TaskDone {
		if err := t.completes(ctx, b); err != nil {
			return tool.Result{}, err
		}
	}
	before, after, err := t.change(ctx, b)
	if err != nil {
		return tool.Result{}, err
	}
	t.tellAssigned(ctx)
	return t.outcome(b, before, after)
}

// awaitEarlier waits for the earlier calls of the same reply that use the list, so that tasks get their numbers in the
// order of the reply.
func (t *Team) awaitEarlier(ctx context.Context, c *tool.Call) error {
	s := t.sessionOf(c.Session)
	st, earlier := s.Status(), map[string]bool{}
	for _, p := range st.OpenCalls {
		if p.Call.ID == c.ID {
			break
		}
		if p.Call.Name == c.Name && p.Parent == c.Parent {
			earlier[p.Call.ID] = true
		}
	}
	if len(earlier) == 0 {
		return nil
	}
	for e, err := range s.Events(ctx, st.Seq) {
		if err != nil {
			return err
		}
		if b, ok := e.Body.(event.Ended); ok {
			if delete(earlier, b.Call); len(earlier) == 0 {
				return nil
			}
		}
	}
	return context.Cause(ctx)
}

// sessionOf returns the session of a working member.
func (t *Team) sessionOf(id string) *inspan.Session {
	t.mu.Lock()
	defer t.mu.Unlock()
	if k := t.children[id]; k != nil {
		return k.session
	}
	return t.session
}

// taskNumbers returns the ids of tasks that a model names; nil stays nil.
func taskNumbers(named []string) (ids []string) {
	for _, id := range named {
		ids = append(ids, strings.TrimPrefix(id, "#"))
	}
	return ids
}

// assignee finds the one member that a task is for.
func (t *Team) assignee(from, to string) (string, error) {
	ids, names, err := t.mailboxes(from, to)
	switch {
	case err != nil:
		return "", err
	case len(ids) > 1:
		return "", fmt.Errorf("a task is for one agent, not for %s", strings.Join(names, ", "))
	}
	return ids[0], nil
}

// change appends a change of the list, and returns the list before and after its place in the log.
func (t *Team) change(ctx context.Context, b event.Tasked) (before, after inspan.Tasks, err error) {
	st := t.session.Status()
	if err := t.session.Send(ctx, b); err != nil {
		return before, after, err
	}
	list := st.Tasks
	for e, err := range t.session.Events(ctx, st.Seq) {
		if err != nil {
			return before, after, err
		}
		before, list = list, list.After(st.Session, e)
		if got, ok := e.Body.(event.Tasked); ok && got.By == b.By && got.Call == b.Call && got.Action == b.Action && got.ID == b.ID {
			t.noteTasks(e.Seq, list)
			return before, list, nil
		}
	}
	return before, after, ctx.Err()
}

// listed is the last known list of tasks.
type listed struct {
	seq   uint64
	tasks inspan.Tasks
}

// noteTasks records the list of tasks as of an event.
func (t *Team) noteTasks(seq uint64, list inspan.Tasks) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if seq > t.listed.seq {
		t.listed = listed{seq, list}
	}
}

// outcome describes the result of a change.
func (t *Team) outcome(b event.Tasked, before, after inspan.Tasks) (tool.Result, error) {
	if b.Action == loop.TaskAdd {
		if after.Last > before.Last {
			return tool.Text(fmt.Sprintf("It is task %d.", after.Last)), nil
		}
		if again := before.Added(b.By, b.Call); again != nil {
			return tool.Text("It is task " + again.ID + "."), nil
		}
		for _, id := range b.After {
			if n, err := strconv.Atoi(id); err != nil || n < 1 || n > after.Last {
				return tool.Result{}, fmt.Errorf("there is no task %q to come after", id)
			}
		}
		return tool.Result{}, errors.New("the list is full of what is not done")
	}
	was, is := before.Find(b.ID), after.Find(b.ID)
	switch {
	case was == nil:
		return tool.Result{}, fmt.Errorf("there is no task %q", b.ID)
	case was.Done:
		return tool.Result{}, fmt.Errorf("task %s is done, by %s", b.ID, t.holder(was.Holder, b.By))
	case b.Action == loop.TaskClaim && is.Holder == "" && is.For != "" && is.For != b.By:
		return tool.Result{}, fmt.Errorf("task %s is for %s", b.ID, t.holder(is.For, b.By))
	case b.Action == loop.TaskClaim && is.Holder == "" && len(after.WaitsFor(is)) == 0:
		return tool.Result{}, fmt.Errorf("task %s can't be claimed before %s", b.ID, is.At.Format(time.DateTime))
	case b.Action == loop.TaskClaim && is.Holder == "":
		return tool.Result{}, fmt.Errorf("task %s waits for %s, which must be done first", b.ID, numbered(after.WaitsFor(is)))
	case b.Action == loop.TaskClaim && is.Holder != b.By:
		return tool.Result{}, fmt.Errorf("task %s is %s's already", b.ID, t.holder(is.Holder, b.By))
	case b.Action == loop.TaskClaim:
		return tool.Text("Task " + b.ID + " is yours: " + is.Text), nil
	case b.Action == loop.TaskAssign && b.By != t.session.ID():
		return tool.Result{}, errors.New("only the agent that you work for assigns a task that exists; ask it with send")
	case b.Action == loop.TaskAssign:
		return tool.Text("Task " + b.ID + " is for " + cmp.Or(map[bool]string{true: "all"}[b.For == ""], t.holder(b.For, b.By)) + "."), nil
	case b.Action == loop.TaskEdit && is.By != b.By && b.By != t.session.ID():
		return tool.Result{}, fmt.Errorf("task %s was added by %s", b.ID, t.holder(is.By, b.By))
	case b.Action == loop.TaskEdit:
		return tool.Text("Task " + b.ID + ": " + is.Text), nil
	case b.Action != loop.TaskClaim && is.Holder == "" && !is.Done && was.Holder == "":
		return tool.Result{}, fmt.Errorf("task %s is nobody's; claim it first", b.ID)
	case b.Action == loop.TaskDone && !is.Done && is.Check != b.Check && (is.Holder == b.By || b.By == t.session.ID()):
		return tool.Result{}, fmt.Errorf("task %s is done once its check passes: %s", b.ID, is.Check)
	case b.Action == loop.TaskRelease && is.Holder != "", b.Action == loop.TaskDone && !is.Done:
		return tool.Result{}, fmt.Errorf("task %s is not yours; it is %s's", b.ID, t.holder(is.Holder, b.By))
	case b.Action == loop.TaskRelease:
		return tool.Text("Task " + b.ID + " is open again."), nil
	}
	return tool.Text("Task " + b.ID + " is done."), nil
}

// numbered names tasks.
func numbered(ids []string) string {
	if len(ids) == 1 {
		return "task " + ids[0]
	}
	return "tasks " + strings.Join(ids[:len(ids)-1], ", ") + " and " + ids[len(ids)-1]
}

// holder names the holder of a task, for a member of the team.
func (t *Team) holder(id, reader string) string {
	switch id {
	case "":
		return "nobody"
	case reader:
		return "you"
	case t.session.ID():
		return "parent"
	}
	for _, c := range t.session.Status().Children {
		if c.Child == id {
			return labelOf(c.Spawned)
		}
	}
	return short(id)
}

// taskList returns the last known list of tasks.
func (t *Team) taskList() inspan.Tasks {
	st := t.session.Status()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.listed.seq > st.Seq {
		return t.listed.tasks
	}
	return st.Tasks
}

// unfinished returns the tasks that a child has claimed and not marked done. They are open again once it has
// returned.
func (t *Team) unfinished(child string) (ids []string) {
	for _, task := range t.taskList().List {
		if task.Holder == child && !task.Done {
			ids = append(ids, task.ID)
		}
	}
	return ids
}

// tasks lists the tasks.
func (t *Team) tasks() tool.Result {
	list, now := t.taskList(), time.Now()
	if len(list.List) == 0 {
		return tool.Text("There are no tasks.")
	}
	var b strings.Builder
	res := tool.Result{}
	for _, task := range list.List {
		state := "open"
		if waits := list.WaitsFor(&task); len(waits) > 0 {
			state = "waits for " + numbered(waits)
		} else if task.At.After(now) {
			state = "not before " + task.At.Format(time.DateTime)
		}
		if task.For != "" {
			state += ", for " + t.holder(task.For, "")
		}
		switch {
		case task.Done:
			state = "done by " + t.holder(task.Holder, "")
		case task.Holder != "":
			state = t.holder(task.Holder, "") + " has it"
		}
		fmt.Fprintf(&b, "%s [%s] %s\n", task.ID, state, task.Text)
		if task.Check != "" {
			fmt.Fprintf(&b, "   check: %s%s\n", task.Check, map[bool]string{true: " (passed)"}[task.Evidence != ""])
		}
		if task.Result != "" {
			fmt.Fprintf(&b, "   → %s\n", task.Result)
		}
		res.Untrusted = res.Untrusted || task.Untrusted
	}
	res.Parts = llm.Say(b.String())
	return res
}

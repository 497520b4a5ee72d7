// Package subagent lets sessions work for a session: it spawns children, limits them to the rights of their
// parent, and collects their results.
//
// Its rules:
//
//  1. A child is a session of its own, with its own log. Its id follows from the parent's and the call that
//     made it, so a
//     call that is repeated after a crash finds the child, which continues where it was.
//  2. The parent's log has spawned, raised and returned, and nothing else is known about children: their costs
//     and
//     questions follow from these events.
//  3. A child may never do more than its parent: its mode is no wider, its tools are some of the parent's, and
//     the total
//     spending of a tree is checked against the limits of every session above before each request.
//  4. Whatever stops a child stops its children in the same way. Nothing of a child outlives Close.
package subagent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/extend/skill"
	"github.com/inspan/inspan/internal/safety/guard"
	"github.com/inspan/inspan/internal/world/worktree"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/store"
	"github.com/inspan/inspan/tool"
)

// Team is the children of one session. Set the fields before use and do not change them after; the methods are
// safe for concurrent use.
type Team struct {
	// Sessions stores the sessions.
	Sessions store.Store
	// Roles returns the kinds of agents. The first of a name counts.
	Roles func() []skill.Role
	// Make makes the agent of a child. The child's own team is in the Order; an agent without it (see [Team.Wire])
	// can't have children.
	Make func(ctx context.Context, o Order, at inspan.SessionSpec) (*inspan.Agent, error)
	// Trees stores the copies of the workspace for isolated children. Nil means children can't be isolated.
	Trees *worktree.Store
	// Redact removes secrets from messages to members that don't work, like that of [inspan.Watch]; nil means they
	// have none.
	Redact func(event.Body) event.Body
	// Hooks are called when a child begins and when it stops.
	Hooks []tool.Hook
	// MaxDepth is how deep children may have children; 0 means 2, so that the children of a person's session
	// may have some and these may not.
	MaxDepth int
	// MaxOpen is the largest number of children of one session that work at once; 0 means 64. The others wait.
	MaxOpen int
	// MinuteCost and MinuteTokens limit the usage of the session at the top and all that work for it in a minute,
	// in US dollars and tokens; 0 means no limit; nil means ten times the usual minute of the session, but at least
	// 10 dollars, or 10 million tokens of models without a known price.
	MinuteCost   *float64
	MinuteTokens *int64

	up *Team // of the parent session; nil at the top
	// holds says that the session's requests are checked, against its own limits and those of all sessions
	// above.
	holds bool
	// patience is how long the session waits for its model; nil means it does not.
	patience func(llm.Kind) time.Duration
	walls    tool.Walls // of the session
	// mayGive lists the tools of the session that its children can have; nil means all.
	mayGive func(ctx context.Context) []string
	depth   int // of the session: 0 at the top

	budget sharedBudget // of the whole tree, at the top

	marker guard.Marker // marks input that is not the result of a call

	mu        sync.Mutex
	session   *inspan.Session           // nil until it runs
	children  map[string]*child         // working ones, by session id
	idle      map[string]*resting       // members of the team that don't work, by session id
	told      map[string]bool           // keys of the tasks that members were told of
	alarm     *time.Timer               // for the next task that can't be claimed yet
	room      chan struct{}             // closed when a child has returned; nil means nothing waits for that
	left      map[string]childUsage     // by children that no longer work, and whose return the session may not have seen yet
	questions map[questionKey]*question // of working children, or those that worked when the program was started
	listed    listed
	life      context.Context    // ends with the team
	stop      context.CancelFunc // of life
	closed    bool
	wg        sync.WaitGroup
}

// childUsage is a child's usage.
type childUsage struct {
	cost   float64
	tokens int64
}

// Order describes a child.
type Order struct {
	Role  skill.Role
	Name  string // chosen name of a member of the team; empty means it ends with its task
	Task  string
	Tools []string  // the parent's tools that it gets; nil means see Role
	Model string    // as Role.Model; empty means see there
	Mode  tool.Mode // permission mode, no wider than the parent's
	Route string    // the parent's model, "provider/model"
	Copy  *Copy     // where it works; nil means in its parent's folder
	Team  *Team     // for children of its own; nil means it may have none
	Rules []string  // those that the person allowed its parent for the session
	// WithLimits returns a model whose requests are limited like those of the agent's session and of those above, for
	// requests outside of its conversation.
	WithLimits func(llm.Model) llm.Model
	// Limited says that there is a limit on money: a model without a known price can't be used.
	Limited bool

	Limits inspan.Limits // its turns, cost and time; the others are those of its agent

	background bool
	planner    string      // who approves its plan: "lead" or "person"; empty means it needs no approval, or has it
	fork       string      // session that it begins as a copy of; empty means none
	call       *singleCall // its only call, without a model; nil means it has a model
	step       bool        // it works for a step of a workflow, and so alone
	result     *result     // its required result; nil means text
	check      *check      // the check that it must run at the end; nil means none
}

// Copy is a separate workspace.
type Copy struct {
	Root   string
	Of     string   // the original workspace
	Closed bool     // it has no network access
	Left   []string // files missing in it; set only when it was just made, like the next
	// Lent are included files and folders that git ignores, Missing are omitted ones, with the reason.
	Lent, Missing []string
	// Ready says that Make has just run a command of the settings to prepare it; Setup is the failure of that,
	// if any.
	Ready bool
	Setup string
}

const (
	usualDepth  = 2
	usualOpen   = 64
	usualTurns  = 40
	usualTime   = 30 * time.Minute
	maxRounds   = 4                      // how often hooks may make a child continue, plus one
	mostSeconds = 24 * 60 * 60           // of a deadline
	mostKinds   = 8 << 10                // bytes of the list of kinds of agents
	leastCost   = 0.000001               // US dollars; 0 would be no limit
	grace       = 600 * time.Millisecond // for an orderly stop of a child
)

// Wire makes an agent the one of the team's session: it gets the tools, and is watched.
func (t *Team) Wire(a *inspan.Agent) {
	a.Tools = append(a.Tools[:len(a.Tools):len(a.Tools)], t.Tools()...)
	t.Watch(a)
}

// Watch makes an agent's requests be checked against the limits of its session and those above. The team learns
// of the session, and is closed with it.
func (t *Team) Watch(a *inspan.Agent) {
	t.limitModel(a)
	t.holds, t.patience, t.walls = true, a.RetryTime, a.Env.Walls
	ends := a.Lifecycle.Close
	a.Lifecycle.Started = t.onOpen
	a.Lifecycle.Close = func() error {
		t.Close()
		if ends == nil {
			return nil
		}
		return ends()
	}
}

// onOpen records the session, and continues children that worked in the background when the previous program
// ended.
func (t *Team) onOpen(s *inspan.Session) {
	st := s.Status()
	if !t.setTeam(s) {
		return
	}
	if slices.ContainsFunc(st.Children, func(c inspan.Child) bool { return c.Open }) {
		t.recall(s, st.Seq)
	}
	for _, c := range st.Children {
		switch {
		case c.Open && c.Background:
			t.goUnlessClosed(func() { t.continueChild(t.life, c) })
		case !c.Open && c.Returned != nil && c.Returned.Idle:
			t.mu.Lock()
			t.idle[c.Child] = &resting{Spawned: c.Spawned}
			t.mu.Unlock()
			t.goUnlessClosed(func() { t.watchMailbox(c.Child) })
		}
	}
	t.goUnlessClosed(func() { t.follow(s, st) })
	t.goUnlessClosed(func() { t.tellAssigned(t.life) })
}

// setTeam makes a session that of the team, unless it has one already.
func (t *Team) setTeam(s *inspan.Session) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.session != nil || t.closed {
		return false
	}
	t.session, t.children, t.left, t.questions = s, map[string]*child{}, map[string]childUsage{}, map[questionKey]*question{}
	t.idle, t.told = map[string]*resting{}, map[string]bool{}
	t.life, t.stop = context.WithCancel(context.Background())
	return true
}

// recall reads the children's questions up to an event, and the decisions made while no program ran.
func (t *Team) recall(s *inspan.Session, upto uint64) {
	for e, err := range s.Events(t.life, 0) {
		if err != nil || e.Seq > upto {
			return // following the log will report it
		}
		t.onSessionEvent(e)
		if e.Seq == upto {
			return
		}
	}
}

// Close stops all children and waits for them.
func (t *Team) Close() {
	t.mu.Lock()
	t.closed = true
	if t.stop != nil {
		t.stop()
	}
	if t.alarm != nil {
		t.alarm.Stop()
	}
	for _, k := range t.children {
		k.cancel(errClosed)
	}
	t.mu.Unlock()
	t.wg.Wait()
}

var (
	errClosed  = errors.New("the program ends")
	errStopped = errors.New("stopped")
	errWorks   = errors.New("it works already")
)

// follow reads the session's log for events about its children. If the log can't be read any more, no answer
// and no interrupt could reach them: they stop, and can continue later. Since is the status from which it follows.
func (t *Team) follow(s *inspan.Session, since inspan.Status) {
	list := since.Tasks
	for e, err := range s.Events(t.life, since.Seq) {
		if err != nil {
			t.end("", "the log of the session can't be read: "+err.Error())
			return
		}
		list = list.After(since.Session, e)
		t.noteTasks(e.Seq, list) // the session's own status may not have the event yet
		t.onSessionEvent(e)
		switch b := e.Body.(type) {
		case event.Tasked:
			t.goUnlessClosed(func() { t.tellAssigned(t.life) }) // a person may have changed the list
		case event.Cancelled:
			t.end("", cmp.Or(b.Reason, "the session was interrupted"))
		case event.Stopped:
			if b.Reason != event.ReasonDone {
				t.end("", "the session stopped: "+string(b.Reason))
			}
		}
	}
}

// end asks a child to stop, all if there is no id, and forces those that do not.
func (t *Team) end(id, why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range t.children {
		if id == "" || k.id == id {
			t.wg.Go(func() { k.stop(why) })
		}
	}
}

// spent returns the spending of the session and all that work for it.
func (t *Team) spent() (cost float64, tokens int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.session == nil {
		return 0, 0
	}
	st := t.session.Status()
	cost, tokens = st.Cost, totalUsage(st.Usage)
	// The spending of a child is in the session's sum once its return is folded there, a moment before or after
	// it is dismissed: it counts once in either case.
	counted := map[string]inspan.Child{}
	for _, c := range st.Children {
		counted[c.Child] = c
	}
	add := func(child string, u childUsage) {
		c := counted[child]
		cost, tokens = cost+u.cost-c.Cost, tokens+u.tokens-totalUsage(c.Usage)
	}
	maps.DeleteFunc(t.left, func(child string, _ childUsage) bool { return !counted[child].Open })
	for child, u := range t.left {
		add(child, u)
	}
	for child, k := range t.children {
		add(child, k.spent())
	}
	return cost, tokens
}

// openSession returns the session; nil before it runs.
func (t *Team) openSession() *inspan.Session {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.session
}

// limits returns the limits of the session; there are none before it runs.
func (t *Team) limits() (event.Limits, bool) {
	s := t.openSession()
	if s == nil {
		return event.Limits{}, false
	}
	return s.Status().Limits, true
}

// exhausted returns the limit of this session or one above that is reached; empty if none.
func (t *Team) exhausted() string {
	for at := t; at != nil; at = at.up {
		limits, ok := at.limits()
		if !ok || limits.Cost == 0 && limits.Tokens == 0 {
			continue
		}
		cost, tokens := at.spent()
		switch {
		case limits.Cost > 0 && cost >= limits.Cost:
			return fmt.Sprintf("$%.4f spent of $%.4f by the session and the agents that work for it", cost, limits.Cost)
		case limits.Tokens > 0 && tokens >= limits.Tokens:
			return fmt.Sprintf("%d tokens used of %d by the session and the agents that work for it", tokens, limits.Tokens)
		}
	}
	return ""
}

// role finds a kind of agent.
func (t *Team) role(name string) (skill.Role, error) {
	if name == "" {
		name = "worker"
	}
	var names []string
	for _, r := range t.Roles() {
		if strings.EqualFold(r.Name, name) {
			return r, nil
		}
		names = append(names, r.Name)
	}
	return skill.Role{}, fmt.Errorf("there is no kind of agent %q; there are %s", name, strings.Join(names, ", "))
}

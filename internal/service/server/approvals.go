package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/tool"
)

// Approval is a question that waits for a person's decision.
type Approval struct {
	Task    string   `json:"task" jsonschema:"empty: of a session of this machine; decide with a decided event to the session"`
	Session string   `json:"session"`
	ID      string   `json:"id" jsonschema:"id of the question"`
	Seq     uint64   `json:"seq" jsonschema:"sequence number of the question in its session"`
	Tool    string   `json:"tool"`
	Agent   string   `json:"agent,omitempty" jsonschema:"the subagent that asks"`
	Why     string   `json:"why" jsonschema:"why it asks"`
	Asks    string   `json:"asks,omitempty" jsonschema:"a question to a person; reply with answer"`
	Options []string `json:"options,omitempty" jsonschema:"suggested answers"`
	// Arguments are those of the whole call, as it will run.
	Arguments json.RawMessage `json:"arguments"`
	Effects   []string        `json:"effects" jsonschema:"effects of the call"`
	Preview   string          `json:"preview,omitempty" jsonschema:"the change, as a diff"`
	For       []string        `json:"for" jsonschema:"possible scopes of an approval"`
	Choices   []string        `json:"choices,omitempty" jsonschema:"the same as sentences that say what each allows"`
	Rules     []string        `json:"rules,omitempty" jsonschema:"rules that an approval for the session adds"`
	Until     time.Time       `json:"until,omitzero" jsonschema:"when it is denied without an answer"`
	// With are the other questions of a set, see [inspan.Sets].
	With []uint64 `json:"with,omitempty" jsonschema:"seqs of the other questions that the program asks together with this one; a decision can be for them also"`
}

// approvalList lists all open approvals.
type approvalList struct {
	Approvals []Approval `json:"approvals"`
}

func (c *call) approvals(nothing) (approvalList, error) {
	out := approvalList{Approvals: []Approval{}}
	for _, t := range c.book.open() {
		if t.Stage != StageWaiting || !c.who.sees(t.Tenant, t.place) {
			continue
		}
		st, err := c.status(t.Session)
		if errors.Is(err, fs.ErrNotExist) {
			continue // its session was removed, so its task will fail
		}
		if err != nil {
			return out, err
		}
		out.Approvals = append(out.Approvals, apart(t, inspan.Sets(st.Questions()))...)
	}
	if !c.seesOurs() {
		return out, nil
	}
	rows, err := c.glance()
	for _, r := range rows {
		if r.task.ID == "" {
			out.Approvals = append(out.Approvals, apart(Task{Session: r.ID}, r.Questions)...)
		}
	}
	return out, err
}

// apart returns the questions one by one, each with the numbers of the others in its set.
func apart(t Task, open []inspan.Pending) (out []Approval) {
	for _, p := range open {
		if len(p.Set) == 0 {
			out = append(out, approval(t, p))
			continue
		}
		for _, one := range p.Set {
			a := approval(t, one)
			for _, other := range p.Set {
				if other.Question != one.Question {
					a.With = append(a.With, other.Question)
				}
			}
			out = append(out, a)
		}
	}
	return out
}

func approval(t Task, p inspan.Pending) Approval {
	a := Approval{
		Task: t.ID, Session: t.Session, ID: p.ID(), Seq: p.Question, Tool: p.Call.Name, Agent: p.Agent, Why: text.VisibleLines(p.Reason),
		Arguments: p.Call.Args, Effects: words.Effects(p.Effects, p.Preview != ""), Preview: p.Preview, Until: p.Until,
	}
	if len(a.Arguments) == 0 {
		a.Arguments = json.RawMessage("{}")
	}
	if a.Effects == nil {
		a.Effects = []string{}
	}
	if p.IsQuestion {
		a.For = []string{"once"}
		a.Asks, a.Options = words.Question(p.Call)
		a.Asks = text.VisibleLines(a.Asks)
		for i := range a.Options {
			a.Options[i] = text.Visible(a.Options[i])
		}
		return a
	}
	a.Rules = p.Rules
	for _, o := range words.Passing(words.Options(p.Rules, p.Offers)) {
		if scope := o.For(); scope != "" {
			a.For, a.Choices = append(a.For, scope), append(a.Choices, o.Name)
		}
	}
	return a
}

// followApprovals sends the list whenever it changes.
func (c *call) followApprovals(nothing) error {
	var out *SSE
	last := ""
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	var look <-chan time.Time // at sessions of other processes, which send no news
	if c.seesOurs() {
		ticker := time.NewTicker(oursEvery)
		defer ticker.Stop()
		look = ticker.C
	}
	for c.Known() {
		news := c.book.news()
		list, err := c.approvals(nothing{})
		if err != nil {
			return err
		}
		raw, err := json.Marshal(list)
		if err != nil {
			return err
		}
		if out == nil {
			out = NewSSE(c.w)
		}
		if string(raw) != last {
			if err := out.Send("", "approvals", raw); err != nil {
				return nil //nolint:nilerr // the client has disconnected
			}
			last = string(raw)
		}
		select {
		case <-news:
		case <-look:
		case <-beat.C:
			if err := out.Beat(); err != nil {
				return nil //nolint:nilerr // the same
			}
		case <-c.Done():
			return nil
		case <-c.ctx.Done():
			return nil
		}
	}
	return nil
}

// Decision is a person's decision on a question.
type Decision struct {
	Task     string `json:"-" path:"task"`
	Question string `json:"-" path:"question"`
	Decision string `json:"decision" jsonschema:"allow or deny"`
	Seq      uint64 `json:"seq,omitempty" jsonschema:"seq of the question you saw; a mismatch is a conflict"`
	// Also are further questions of the set, as in event.Decided.
	Also   []uint64 `json:"also,omitempty" jsonschema:"seqs of further questions that the decision is for, among those in with; once or deny only"`
	For    string   `json:"for,omitempty" jsonschema:"scope of the approval, one of the question's list (default: once)"`
	Answer string   `json:"answer,omitempty" jsonschema:"answer to a question"`
	Failed bool     `json:"failed,omitempty" jsonschema:"the answer says why a tool of yours has failed"`
	Reason string   `json:"reason,omitempty" jsonschema:"reason of a denial; the model reads it"`
	// Key identifies the decision to the visitor; a repeated one counts once.
	Key string `json:"-"`
}

// within reports whether effects stay within the workspace and the network. Other effects, and a command
// without a sandbox, could reach the data of other tenants on this machine, and the server itself.
func (s *Server) within(root string, effects []tool.Effect) bool {
	return !slices.ContainsFunc(effects, func(e tool.Effect) bool {
		switch e.Kind {
		case tool.Question, tool.Network:
			return false
		case tool.Execute:
			return s.Unwalled != ""
		case tool.Read, tool.Write:
			return e.Sensitive != "" || !text.Inside(root, e.Path)
		}
		return true
	})
}

func (c *call) decide(in Decision) (accepted, error) {
	in.Key = c.Key()
	seq, err := c.Decide(in)
	return accepted{seq}, err
}

// Decide decides a question and returns the number of the event in the session. A decision here lasts at most
// for the session: clients can't write the rules of the server's operator.
func (v *Visit) Decide(in Decision) (uint64, error) {
	t, seq, err := v.before(in)
	if err != nil || seq > 0 {
		return seq, err
	}
	return v.decideIn(t, in)
}

// decideIn is Decide for a task that is known, or stands for a session without one.
func (v *Visit) decideIn(t Task, in Decision) (uint64, error) {
	m, err := v.decision(t, in)
	if err != nil {
		return 0, err
	}
	e, err := v.Send(v, t.Session, m)
	return e.Seq, err
}

// Decidable reports why a decision would be refused now.
func (v *Visit) Decidable(in Decision) error {
	t, seq, err := v.before(in)
	if err == nil && seq == 0 {
		_, err = v.decision(t, in)
	}
	return err
}

// before returns the task of a decision, and the number of the event if the visitor has already made this decision
// under the same key; 0 means not yet.
func (v *Visit) before(in Decision) (t Task, seq uint64, err error) {
	t, err = v.Find(in.Task)
	if err == nil && t.Session == "" {
		err = Missing("question", in.Question)
	}
	if err != nil || in.Key == "" {
		return t, 0, err
	}
	sent, err := v.Sent(in.Task)
	e := sent[in.Key]
	d, is := e.Body.(event.Decided)
	same := d.Call == in.Question || strings.HasPrefix(in.Question, d.Call+"-") // of a set: see [inspan.Pending.ID]
	if e.Seq > 0 && (!is || !same || d.Allow != (in.Decision == "allow")) {
		err = Conflict("this Idempotency-Key was used for another request")
	}
	return t, e.Seq, err
}

// decision returns the message for a decision, if the visitor may make it.
func (v *Visit) decision(t Task, in Decision) (m app.Message, err error) {
	st, err := v.status(t.Session)
	if err != nil {
		return m, err
	}
	p, open := st.Question(in.Question)
	switch {
	case !open:
		return m, Conflict("question %q of task %s is not open; it may be answered already", words.OneLine(in.Question, 80), t.ID)
	case in.Seq != 0 && in.Seq != p.Question:
		return m, Conflict("question %q has changed: its seq is now %d", words.OneLine(in.Question, 80), p.Question)
	}
	if len(in.Reason)+len(in.Answer) > mostPrompt {
		return m, Wrong("reason", "it is too long", fmt.Sprintf("at most %d bytes", mostPrompt))
	}
	m = app.Message{By: v.who.name, For: "once", Key: in.Key, Also: in.Also}
	can := approval(t, p)
	effects, err := alsoDecided(st.Questions(), p, in)
	if err != nil {
		return m, err
	}
	switch in.Decision {
	case "allow":
		if v.who.tenant != "" && !v.within(st.Root, effects) {
			return m, Forbidden("this call reaches beyond its workspace; only an identity without a tenant can approve it")
		}
		if m.Allow, m.Text = in.Question, in.Answer; in.For != "" {
			m.For = in.For
		}
		if !p.IsQuestion && in.Answer+in.Reason != "" {
			return m, Wrong("answer", "the call asks for no answer", "decision alone")
		}
		if why := words.Misfit(p.Call, in.Answer); why != "" {
			return m, Wrong("answer", why, "one of the question's options")
		}
		if in.Failed {
			m.Text = failure + m.Text
		}
		if !slices.Contains(can.For, m.For) {
			return m, Wrong("for", "it can't be approved for "+words.OneLine(m.For, 80), "one of the question's list")
		}
	case "deny":
		m.Deny, m.Text = in.Question, in.Reason
	default:
		return m, Wrong("decision", "it is "+words.OneLine(in.Decision, 80), "allow or deny")
	}
	return m, nil
}

// alsoDecided returns the effects of all calls that a decision covers. It returns an error if the decision
// names a question that it can't cover.
func alsoDecided(open []inspan.Pending, asked inspan.Pending, in Decision) (effects []tool.Effect, err error) {
	effects = slices.Clone(asked.Effects)
	for _, seq := range in.Also {
		i := slices.IndexFunc(open, func(p inspan.Pending) bool { return p.Question == seq })
		switch {
		case in.Decision == "allow" && in.For != "" && in.For != "once":
			return nil, Wrong("also", "questions can be allowed together once", "decisions on each alone")
		case i < 0:
			return nil, Conflict("question %d is not open; it may be answered already", seq)
		case asked.Parent == "" || open[i].Parent != asked.Parent || open[i].IsQuestion != asked.IsQuestion:
			return nil, Wrong("also", fmt.Sprintf("question %d is not asked together with %q", seq, words.OneLine(in.Question, 80)), "those in with")
		}
		effects = append(effects, open[i].Effects...)
	}
	return effects, nil
}

package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/llm"
)

const agentName = "run_agent"

// task is the arguments of run_agent.
type task struct {
	Task    string `json:"task"`
	Session string `json:"session"`
}

// report is the structured content of run_agent's result.
type report struct {
	Text     string  `json:"text"` // as in the content, which some clients ignore if there is structured content
	Session  string  `json:"session"`
	Stopped  string  `json:"stopped"` // an event.Reason
	Cost     float64 `json:"cost"`    // US dollars of the whole session
	Unpriced bool    `json:"unpriced"`
	Turns    int     `json:"turns"` // of the whole session
	Denied   int     `json:"denied"`
}

func agentTool() *sdk.Tool {
	return &sdk.Tool{
		Name: agentName,
		Description: "Has an agent work on a task in the workspace, with a session of its own that is kept, and returns what it says at the " +
			"end. " +
			"It sees nothing of your conversation, so the task must say everything. To go on with the same agent, name its session.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{` +
			`"task":{"type":"string","description":"What to do, with all that must be known for it"},` +
			`"session":{"type":"string","description":"Session that an earlier call returned, to go on with it"}},` +
			`"required":["task"],"additionalProperties":false}`),
		OutputSchema: json.RawMessage(`{"type":"object","properties":{` +
			`"text":{"type":"string","description":"what it says at the ` +
			`end"},"session":{"type":"string"},"stopped":{"type":"string","description":"why it stopped; \"done\" if it came to its end"},` +
			`"cost":{"type":"number","description":"US dollars of the session"},"unpriced":{"type":"boolean","description":"cost lacks what has ` +
			`no known price"},` +
			`"turns":{"type":"integer"},"denied":{"type":"integer","description":"calls that were not allowed"}},` +
			`"required":["text","session","stopped","cost","unpriced","turns","denied"]}`),
	}
}

// runAgent serves a call of run_agent.
func (r *tenant) runAgent(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	var in task
	err := unmarshal(req.Params.Arguments, &in)
	if err == nil && strings.TrimSpace(in.Task) == "" {
		err = errors.New("say in task what is to be done")
	}
	if err != nil {
		return failed(err), nil //nolint:nilerr // the model should see it
	}
	return r.handle(ctx, req, func(w *clientCall, _ *connection) *sdk.CallToolResult { return r.agent(w, in) })
}

// agent performs a task.
func (r *tenant) agent(w *clientCall, in task) *sdk.CallToolResult {
	s, err := r.session(in.Session)
	if err != nil {
		return failed(err)
	}
	defer s.Close()
	a := account{work: w}
	err = w.drive(s, a.onEvent, event.Said{Parts: llm.Say(in.Task), By: sender(r.principal)})
	return a.result(s.Status(), err)
}

// sender names a principal in the log.
func sender(principal string) string {
	if principal == "" {
		return "mcp"
	}
	return "mcp:" + principal
}

// session opens a new session, or an earlier one of this workspace.
func (r *tenant) session(id string) (*inspan.Session, error) {
	host := r.server.Host
	if id == "" {
		return host.New(r.ctx, r.server.Root)
	}
	if err := r.isOwnSession(id); err != nil {
		return nil, err
	}
	return host.Open(r.ctx, id)
}

// errNoSession is the only answer about sessions that are not the client's.
var errNoSession = errors.New("there is no such session; leave session out to begin a new one")

// isOwnSession reports whether run_agent began a session for this principal in this workspace. Other sessions may have
// more rights, and are hidden from the client.
func (r *tenant) isOwnSession(id string) error {
	if id == "last" || strings.ContainsAny(id, `/\`) {
		return errNoSession
	}
	for e, err := range r.server.Host.Events(r.ctx, id) {
		if err != nil {
			return errNoSession
		}
		switch b := e.Body.(type) {
		case event.Opened:
			if b.Parent != "" || e.Session != id || keep.Real(b.Root) != keep.Real(r.server.Root) {
				return errNoSession
			}
		case event.Said:
			if b.By == sender(r.principal) {
				return nil
			}
			return errNoSession
		}
	}
	return errNoSession
}

// sessionScheme is the beginning of the address of a session as a resource.
const sessionScheme = "inspan://sessions/"

// transcript returns a session of the client as a resource.
func (r *tenant) transcript(ctx context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	id := strings.TrimPrefix(req.Params.URI, sessionScheme)
	if err := r.isOwnSession(id); err != nil {
		return nil, sdk.ResourceNotFoundError(req.Params.URI)
	}
	var out strings.Builder
	if err := transcript.Markdown(&out, r.server.Host.Events(ctx, id)); err != nil {
		return nil, err
	}
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{
		URI: req.Params.URI, MIMEType: "text/markdown", Text: text.Clean(bounded(out.String())),
	}}}, nil
}

// account sums up a run.
type account struct {
	work   *clientCall
	fold   transcript.Fold
	denied int
	mute   int // calls denied because no one could be asked
}

// onEvent records an event, and reports it to the client.
func (a *account) onEvent(e event.Event) {
	for _, item := range a.fold.Apply(e) {
		switch i := item.(type) {
		case *transcript.Reply:
			if s := strings.TrimSpace(i.Text); s != "" && i.State == transcript.Whole {
				a.work.reportProgress(text.Clean(bounded(s)))
			}
		case *transcript.Call:
			a.onCall(i)
		case *transcript.Question:
			if i.Answer != nil && i.Answer.By == "nobody" {
				a.mute++
			}
		case *transcript.Note:
			if i.Notice || i.Seq == 0 {
				a.work.reportProgress(shorten(i.Text))
			}
		case *transcript.Wait:
			if i.Seq == 0 {
				a.work.reportProgress(shorten(i.Why))
			}
		case *transcript.Child:
			if i.Returned == nil {
				continue
			}
			if s, notice := words.Told(*i.Returned); notice { // it came back without finishing its work
				a.work.reportProgress(shorten(s))
			}
		}
	}
}

// onCall records the progress of a call.
func (a *account) onCall(c *transcript.Call) {
	switch about := shorten(c.Call.Name + " " + words.Subject(c.Call)); {
	case c.State == transcript.Running && c.Latest != "":
		a.work.reportProgress(shorten(c.Latest))
	case c.State == transcript.Running:
		a.work.reportProgress("▸ " + about)
	case c.State == transcript.Over && c.Ended.Outcome != event.OutcomeOK:
		if c.Ended.Outcome == event.OutcomeDenied {
			a.denied++
		}
		a.work.reportProgress("✗ " + about + ": " + string(c.Ended.Outcome))
	}
}

// result returns the result for the client. Err is an error of the harness.
func (a *account) result(st inspan.Status, err error) *sdk.CallToolResult {
	r := report{Session: st.Session, Stopped: "error", Cost: st.Cost, Unpriced: st.Unpriced, Turns: st.Turns, Denied: a.denied}
	s := a.fold.Last
	switch {
	case err != nil:
		s += "\n[the run broke off: " + err.Error() + "]"
	case st.Stopped != nil:
		r.Stopped = string(st.Stopped.Reason)
		if st.Stopped.Reason != event.ReasonDone {
			s += strings.TrimSuffix(fmt.Sprintf("\n[stopped: %s; %s", st.Stopped.Reason, st.Stopped.Detail), "; ") + "]"
		}
	}
	if a.mute > 0 {
		s += fmt.Sprintf("\n[%s needed approval and got none, as this client can't ask anybody]", text.Count(a.mute, "call"))
	}
	r.Text = bounded(strings.TrimSpace(s))
	return &sdk.CallToolResult{
		IsError: r.Stopped != string(event.ReasonDone), StructuredContent: r,
		Content: []sdk.Content{&sdk.TextContent{Text: r.Text}},
	}
}

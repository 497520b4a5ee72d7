package server

import (
	"cmp"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/inspan/inspan/internal/view/words"
)

// endpoint is one method and path of the API.
type endpoint struct {
	name         string // of the operation, for clients that are generated
	method, path string
	role         Role // lowest role that may call it; empty means no role and no token needed
	doc          string
	in, out      reflect.Type // of requests and responses
	stream       bool         // it responds with server-sent events
	live         bool         // it does so on request
	do           func(c *call) (status int, answer any, err error)

	plain http.HandlerFunc     // replaces do: it writes the response itself
	says  map[int]reflect.Type // types of its responses, by status
}

// call is one request to an endpoint.
type call struct {
	*Visit
	w http.ResponseWriter
	r *http.Request
}

// nothing is an empty request or response.
type nothing struct{}

// endpoints returns all endpoints.
func (s *Server) endpoints() []endpoint {
	return []endpoint{
		at("createTask", "POST", "/api/v1/tasks", Operator, "Submit a task. An Idempotency-Key header makes it safe to send twice.", (*call).submit),
		at("listTasks", "GET", "/api/v1/tasks", Viewer, "List tasks, the newest first.", (*call).tasks),
		at("getTask", "GET", "/api/v1/tasks/{id}", Viewer, "Read a task.", (*call).task),
		at("cancelTask", "POST", "/api/v1/tasks/{id}/cancel", Operator, "Cancel a task. It ends in stage cancelled.", (*call).cancelTask),
		at("interruptTask", "POST", "/api/v1/tasks/{id}/interrupt", Operator, "Interrupt the run of a task. One that is open takes messages afterwards.",
			(*call).interrupt),
		at("closeTask", "POST", "/api/v1/tasks/{id}/close", Operator, "Close an open task. It ends in stage completed when its run has stopped.",
			(*call).closeTask),
		at("sendMessage", "POST", "/api/v1/tasks/{id}/messages", Operator, "Send a message to the agent of a task. A running agent sees it with the results of "+
			"its current calls; an idle one starts a run.", (*call).message),
		at("deleteWorkspace", "DELETE", "/api/v1/tasks/{id}/workspace", Operator, "Remove the workspace of a task that is over, with the copies of it in which agents worked.", (*call).removeWorkspace),
		streams("streamTaskEvents", "/api/v1/tasks/{id}/events", Viewer, "Follow the events of a task's session, after Last-Event-ID. live=true adds transient "+
			"events, such as text while the model writes it.", (*call).events),
		at("rewindTask", "POST", "/api/v1/tasks/{id}/rewind", Operator, "Take an idle task back to before a message: its files, its conversation or both.",
			(*call).rewind),
		at("listWorkflows", "GET", "/api/v1/workflows", Viewer, "List the workflows that tasks can perform.", (*call).flows),
		at("listApprovals", "GET", "/api/v1/approvals", Viewer, "List the open questions of all tasks, and for the owner those of the sessions that the server shows.", (*call).approvals),
		streams("streamApprovals", "/api/v1/approvals/stream", Viewer, "Follow the list of open questions. Each change sends the whole list.",
			(*call).followApprovals),
		at("answerApproval", "POST", "/api/v1/approvals/{task}/{question}", Operator, "Approve or deny a question, or answer it.", (*call).decide),
		at("createIdentity", "POST", "/api/v1/identities", Admin, "Create an identity. Only this response contains its token.", (*call).makeIdentity),
		at("listIdentities", "GET", "/api/v1/identities", Admin, "List identities, without their tokens.", (*call).identities),
		at("deleteIdentity", "DELETE", "/api/v1/identities/{id}", Admin, "Remove an identity and revoke its token.", (*call).removeIdentity),
		at("setTenant", "PUT", "/api/v1/tenants/{name}", Admin, "Set the limits of a tenant.", (*call).setTenant),
		at("getTenant", "GET", "/api/v1/tenants/{name}", Viewer, "Read the limits of a tenant and its usage.", (*call).tenantOf),
		at("createWebhook", "POST", "/api/v1/webhooks", Admin, "Create a webhook. Only this response contains its secret.", (*call).makeWebhook),
		at("listWebhooks", "GET", "/api/v1/webhooks", Admin, "List webhooks.", (*call).webhooks),
		at("getWebhook", "GET", "/api/v1/webhooks/{id}", Admin, "Read a webhook.", (*call).oneWebhook),
		at("updateWebhook", "POST", "/api/v1/webhooks/{id}", Admin, "Change a webhook: the fields that are set.", (*call).changeWebhook),
		at("deleteWebhook", "DELETE", "/api/v1/webhooks/{id}", Admin, "Remove a webhook with its dead letters.", (*call).removeWebhook),
		at("rotateWebhookSecret", "POST", "/api/v1/webhooks/{id}/secret", Admin, "Replace the secret of a webhook. Only this response contains it.",
			(*call).renewWebhook),
		at("testWebhook", "POST", "/api/v1/webhooks/{id}/test", Admin, "Send a webhook.test event once, and report the outcome.", (*call).testWebhook),
		at("listDeadLetters", "GET", "/api/v1/webhooks/{id}/dead_letters", Admin, "List the events that could not be delivered.", (*call).deadLetters),
		at("redeliverDeadLetter", "POST", "/api/v1/webhooks/{id}/dead_letters/{letter}", Admin, "Send such an event again, once. If it is delivered, it leaves the list.",
			(*call).sendLetter),
		at("listAudit", "GET", "/api/v1/audit", Admin, "Read the audit log, the oldest entry first.", (*call).audit),
		answers("invokeAgent", "/invocations", "Run an agent, on a new task or in its conversation: the runtime contract of Bedrock AgentCore.",
			(*call).invoke),
		at("listSessions", "GET", "/api/v1/sessions", Viewer, "List the sessions of all tasks, and of the agents that work for them.", (*call).sessions),
		at("listEvents", "GET", "/api/v1/sessions/{id}/events", Viewer, "Read the events of a session, after a number.", (*call).readEvents),
		at("appendEvent", "POST", "/api/v1/sessions/{id}/events", Operator, "Append an input to a session: say something, decide, interrupt.", (*call).appendInput),
		streams("streamEvents", "/api/v1/sessions/{id}/stream", Viewer, "Follow the events of a session, as those of a task.", (*call).followSession),
		streams("streamView", "/api/v1/sessions/{id}/view", Viewer, "Follow a session as the web page shows it, from a place of its transcript on.",
			(*call).followView),
		at("listItems", "GET", "/api/v1/sessions/{id}/items", Viewer, "Read a part of a session as the web page shows it.", (*call).items),
		at("getSpend", "GET", "/api/v1/sessions/{id}/spend", Viewer, "Explain where the tokens and dollars of a session and its subagents went.",
			(*call).spend),
		at("getTeam", "GET", "/api/v1/sessions/{id}/team", Viewer, "Read the team of a session: its members with their cost and open questions, and their tasks.",
			(*call).team),
		at("assignTeamTask", "POST", "/api/v1/sessions/{id}/team/tasks/{task}", Operator, "Give a task of the team to a member, or to all.", (*call).assign),
		at("getBoard", "GET", "/api/v1/board", Viewer, "Read the board: sessions by state, and all open questions.", (*call).board),
		at("getEvaluation", "GET", "/api/v1/evals/{id}", Viewer, "Read the state of a run of an evaluation, with its trials.", (*call).evalRun),
		at("search", "GET", "/api/v1/search", Viewer, "Search the text of sessions.", (*call).search),
		at("createCode", "POST", "/api/v1/codes", Admin, "Make a code by which a browser signs in as the owner, once, within a minute.", (*call).makeCode),
		at("signIn", "POST", signInPath, Admin, "Sign a browser in, with a code as the bearer token. Only this response contains its token.",
			(*call).signIn),
		at("getTrace", "GET", "/api/v1/sessions/{id}/trace", Viewer, "Read the spans of a session, with their times, after a number.",
			(*call).trace),
		at("getCost", "GET", "/api/v1/sessions/{id}/cost", Viewer, "Sum up the costs of a session and its subagents.", (*call).cost),
		at("listPoints", "GET", "/api/v1/sessions/{id}/points", Viewer, "List the messages that a session can be rewound to.", (*call).points),
		at("listEffects", "GET", "/api/v1/sessions/{id}/effects", Viewer, "List effects of a session that a rewind can't undo.", (*call).effects),
		at("getBlob", "GET", "/api/v1/sessions/{id}/blobs/{digest}", Viewer, "Read a blob that an event of a session names.", (*call).blob),
		answers("createChatCompletion", "/v1/chat/completions", "Talk to an agent as to a model: OpenAI's chat completions.", (*call).complete),
		answers("createResponse", "/v1/responses", "Talk to an agent as to a model: OpenAI's responses.", (*call).respond),
		at("listModels", "GET", "/v1/models", Viewer, "List the models of the two endpoints above.", (*call).models),
		at("getOpenAPI", "GET", "/api/v1/openapi.json", Viewer, "Read this description.", (*call).openAPI),
		at("getMetrics", "GET", "/metrics", Viewer, "Read metrics of all tenants in the text format of Prometheus.", (*call).metrics),
		s.ping(),
		s.ready(),
		s.hooks(),
		s.socket(),
	}
}

// at returns an endpoint whose request is In: fields with a "path" or "query" tag are read from there, the
// others from the body.
func at[In, Out any](name, method, path string, role Role, doc string, f func(*call, In) (Out, error)) endpoint {
	return endpoint{
		name: name, method: method, path: path, role: role, doc: doc, in: reflect.TypeFor[In](), out: reflect.TypeFor[Out](),
		do: reading(func(c *call, in In) (int, any, error) {
			out, err := f(c, in)
			return status(method, path, out), out, err
		}),
	}
}

// reading returns what an endpoint does, once it has read its request.
func reading[In any](f func(*call, In) (int, any, error)) func(*call) (int, any, error) {
	return func(c *call) (int, any, error) {
		var in In
		if err := c.read(&in); err != nil {
			return 0, nil, err
		}
		return f(c, in)
	}
}

// status returns the status of a successful response.
func status(method, path string, out any) int {
	switch {
	case out == any(nothing{}):
		return http.StatusNoContent
	case method == http.MethodPost && strings.HasPrefix(path, "/api/") && !strings.HasSuffix(path, "}") && strings.Count(path, "/") == 3:
		return http.StatusCreated
	}
	return http.StatusOK
}

// streams returns an endpoint that responds with server-sent events.
func streams[In any](name, path string, role Role, doc string, f func(*call, In) error) endpoint {
	return endpoint{
		name: name, method: http.MethodGet, path: path, role: role, doc: doc, in: reflect.TypeFor[In](), out: reflect.TypeFor[nothing](), stream: true,
		do: reading(func(c *call, in In) (int, any, error) { return 0, nil, f(c, in) }),
	}
}

// answers returns an endpoint that talks to an agent. If f returns neither a response nor an error, it has
// responded itself, with server-sent events.
func answers[In, Out any](name, path, doc string, f func(*call, In) (*Out, error)) endpoint {
	return endpoint{
		name: name, method: http.MethodPost, path: path, role: Operator, doc: doc, in: reflect.TypeFor[In](), out: reflect.TypeFor[Out](), live: true,
		do: reading(func(c *call, in In) (int, any, error) {
			out, err := f(c, in)
			if out == nil {
				return 0, nil, err
			}
			return http.StatusOK, out, err
		}),
	}
}

// serve returns the handler of an endpoint.
func (s *Server) serve(e endpoint) http.Handler {
	if e.plain != nil {
		return e.plain
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, err := s.Visit(r, e.role)
		if err != nil {
			RefuseWith(w, err)
			return
		}
		status, answer, err := e.do(&call{v, w, r})
		switch {
		case err != nil:
			RefuseWith(w, err)
		case status == 0: // already responded
		case status == http.StatusNoContent:
			w.WriteHeader(status)
		default:
			if text, is := answer.(plainText); is {
				replyText(w, string(text))
				return
			}
			Reply(w, status, answer)
		}
	})
}

// read decodes a request.
func (c *call) read(into any) error {
	v := reflect.ValueOf(into).Elem()
	var known []string
	body := false
	for i := range v.NumField() {
		f := v.Type().Field(i)
		path, query := f.Tag.Get("path"), f.Tag.Get("query")
		switch {
		case path != "":
			v.Field(i).SetString(c.r.PathValue(path))
		case query != "":
			known = append(known, query)
			if err := set(v.Field(i), query, c.r.URL.Query()[query]); err != nil {
				return err
			}
		default:
			body = true
		}
	}
	for name := range c.r.URL.Query() {
		if !slices.Contains(known, name) {
			return Wrong(words.OneLine(name, 80), "unknown parameter", near(name, known))
		}
	}
	var err error
	switch {
	case body && c.r.ContentLength == 0 && optional(v.Type()):
	case body:
		err = Decode(c.r.Body, into)
	case c.r.ContentLength > 0:
		err = Decode(c.r.Body, &nothing{})
	}
	if err != nil {
		return err
	}
	return clean("", v)
}

// optional reports whether a body may be omitted because none of its fields is required.
func optional(t reflect.Type) bool {
	for i := range t.NumField() {
		if tag := t.Field(i).Tag.Get("json"); tag != "-" && !strings.Contains(tag, ",omit") {
			return false
		}
	}
	return true
}

// clean reports a text in a request that has control characters other than line ends and tabs, or that exceeds
// its budget. Texts reach models and terminals, and such characters would control them.
func clean(field string, v reflect.Value) error {
	below := func(name string) string { return strings.TrimPrefix(field+"."+name, ".") }
	switch v.Kind() {
	case reflect.String:
		if i := strings.IndexFunc(v.String(), controls); i >= 0 {
			return Wrong(field, fmt.Sprintf("it holds the control character %U", []rune(v.String()[i:])[0]), "text without control characters")
		}
	case reflect.Int, reflect.Int64:
		if n := v.Int(); n < -mostWhole || n > mostWhole {
			return Wrong(field, fmt.Sprintf("it is %d", n), "a number that every client can write in JSON, at most 2^53-1")
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return clean(field, v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "-" {
				name = f.Tag.Get("path") + f.Tag.Get("query")
			}
			if !f.IsExported() {
				continue
			}
			of := v.Type().Name() + "." + name
			if err := cmp.Or(fits(below(name), of, v.Field(i)), clean(below(name), v.Field(i))); err != nil {
				return err
			}
			if list := v.Field(i); list.Kind() == reflect.Slice && list.Type().Elem().Kind() == reflect.String {
				for n := range list.Len() {
					if err := fits(below(name+"."+strconv.Itoa(n)), of+"[]", list.Index(n)); err != nil {
						return err
					}
				}
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return nil // JSON, whose texts are checked when they are used
		}
		for i := range v.Len() {
			if err := clean(below(strconv.Itoa(i)), v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Map:
		for at := v.MapRange(); at.Next(); {
			if err := cmp.Or(clean(field, at.Key()), clean(below(at.Key().String()), at.Value())); err != nil {
				return err
			}
		}
	}
	return nil
}

func controls(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' && r != '\r' }

// set sets a field from a parameter of the query.
func set(field reflect.Value, name string, values []string) error {
	switch {
	case len(values) == 0:
		return nil
	case len(values) > 1:
		return Wrong(name, "it is set more than once", "one value")
	}
	if field.Kind() == reflect.Pointer {
		field.Set(reflect.New(field.Type().Elem()))
		field = field.Elem()
	}
	switch text := values[0]; field.Kind() {
	case reflect.Bool:
		if text != "true" && text != "false" {
			return Wrong(name, "it is "+strconv.Quote(text), "true or false")
		}
		field.SetBool(text == "true")
	case reflect.Int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return Wrong(name, "it is "+strconv.Quote(text), "a whole number")
		}
		field.SetInt(int64(n))
	default:
		field.SetString(text)
	}
	return nil
}

package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

// description is the API as the server describes it: every answer that a test gets is held against
// it.
type description struct {
	mu    sync.Mutex
	doc   apiDocument
	paths *http.ServeMux // of the described paths; nil means it was not read yet
}

type apiDocument struct {
	OpenAPI string
	Paths   map[string]map[string]operation
	Schemas map[string]*jsonschema.Schema `json:"-"`
}

type operation struct {
	OperationID string
	Parameters  []struct{ In, Name string }
	RequestBody *json.RawMessage
	Responses   map[string]struct {
		Content map[string]struct{ Schema *jsonschema.Schema }
	}
}

// read reads the description.
func (d *description) read(h *house) {
	h.t.Helper()
	res, err := http.DefaultClient.Do(h.as(ownersToken).request(h.t.Context(), "GET", "/api/v1/openapi.json", nil))
	if err != nil {
		h.t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	raw = bytes.ReplaceAll(raw, []byte("#/components/schemas/"), []byte("#/$defs/")) // for the validator, which reads one schema
	var shared struct {
		Components struct{ Schemas map[string]*jsonschema.Schema }
	}
	if err != nil || json.Unmarshal(raw, &d.doc) != nil || json.Unmarshal(raw, &shared) != nil {
		h.t.Fatalf("%v: %.300s", err, raw)
	}
	d.doc.Schemas = shared.Components.Schemas
	d.paths = http.NewServeMux()
	for path := range d.doc.Paths {
		d.paths.Handle(path, http.NotFoundHandler())
	}
}

// resolve makes a schema usable, with those that it refers to.
func (d *description) resolve(s *jsonschema.Schema) (*jsonschema.Resolved, error) {
	s = s.CloneSchemas()
	s.Defs = map[string]*jsonschema.Schema{}
	for name, schema := range d.doc.Schemas {
		s.Defs[name] = schema.CloneSchemas()
	}
	return s.Resolve(nil)
}

// holds reports an answer that is not described. What is for Managed Agents clients is described
// elsewhere.
func (d *description) holds(h *house, res *http.Response, raw []byte) {
	if _, bench := h.t.(*testing.B); bench {
		return
	}
	h.t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.paths == nil {
		d.read(h)
	}
	_, path := d.paths.Handler(res.Request)
	op, described := d.doc.Paths[path][strings.ToLower(res.Request.Method)]
	if !described {
		return
	}
	at := fmt.Sprintf("%s %s: %d", res.Request.Method, res.Request.URL.Path, res.StatusCode)
	answer, described := op.Responses[fmt.Sprint(res.StatusCode)]
	if !described {
		h.t.Errorf("%s is not described: %.300s", at, raw)
		return
	}
	media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	content, described := answer.Content[media]
	if !described && len(answer.Content)+len(raw) > 0 {
		h.t.Errorf("%s as %q is not described", at, media)
	}
	if !described || media != "application/json" {
		return
	}
	resolved, err := d.resolve(content.Schema)
	var value any
	if err == nil {
		err = json.Unmarshal(raw, &value)
	}
	if err == nil {
		err = resolved.Validate(value)
	}
	if err != nil {
		h.t.Errorf("%s is not as described: %v: %.300s", at, err, raw)
	}
}

// TestDescribed checks that the description names each endpoint, with its request and its response.
func TestDescribed(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	h.api.read(h)
	doc := h.api.doc
	ids := map[string]bool{}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			if op.OperationID == "" || ids[op.OperationID] || op.Responses["403"].Content == nil {
				t.Errorf("%s %s: %+v", method, path, op)
			}
			ids[op.OperationID] = true
			if strings.HasSuffix(path, "/stream") || method == "delete" {
				continue // it does not end
			}
			if _, text := h.do(h.request(t.Context(), strings.ToUpper(method), path, nil)); strings.Contains(text, "see GET /api/v1/openapi.json") {
				t.Errorf("%s %s is described and not there", method, path)
			}
		}
	}
	post := doc.Paths["/api/v1/tasks"]["post"]
	if doc.OpenAPI != "3.1.0" || len(ids) < 30 || post.RequestBody == nil || len(post.Parameters) != 1 || post.Parameters[0].Name != "Idempotency-Key" {
		t.Errorf("%+v", doc)
	}
	for _, path := range []string{"/ws", "/ping", "/readyz"} {
		if doc.Paths[path]["get"].OperationID == "" {
			t.Errorf("%s is not described", path)
		}
	}
	if doc.Paths["/api/v1/tasks"]["get"].Responses["408"].Content == nil {
		t.Error("a body that does not come is not described")
	}
}

// TestBounds checks that requests are described as strictly as the server accepts them.
func TestBounds(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	h.api.read(h)
	body := func(path, method string) *jsonschema.Resolved {
		t.Helper()
		var b struct {
			Content map[string]struct{ Schema *jsonschema.Schema }
		}
		if err := json.Unmarshal(*h.api.doc.Paths[path][method].RequestBody, &b); err != nil {
			t.Fatal(err)
		}
		resolved, err := h.api.resolve(b.Content["application/json"].Schema)
		if err != nil {
			t.Fatal(err)
		}
		return resolved
	}
	for _, tc := range []struct {
		method, path, body string
		status             int
	}{
		{"POST", "/api/v1/tasks", `{"prompt":"say: x"}`, 201},
		{"POST", "/api/v1/tasks", `{"prompt":"say: x","open":null,"labels":null,"mode":null}`, 201},
		{"POST", "/api/v1/tasks", `{"open":true}`, 201},
		{"POST", "/api/v1/tasks", `{"open":false}`, 400},
		{"POST", "/api/v1/tasks", `{"prompt":" \n"}`, 400},
		{"POST", "/api/v1/tasks", `{"prompt":"x\u0007"}`, 400},
		{"POST", "/api/v1/tasks", `{"prompt":"x","mode":"fast"}`, 400},
		{"POST", "/api/v1/tasks", `{"prompt":"x","keep":"all"}`, 400},
		{"POST", "/api/v1/tasks", `{"prompt":"x","timeout_seconds":1209601}`, 400},
		{"POST", "/api/v1/tasks", `{"prompt":"x","max_turns":9007199254740992}`, 400},
		{"POST", "/api/v1/tasks", `{"prompt":"x","max_cost":-1}`, 400},
		{"POST", "/api/v1/tasks", `{"prompt":"x","labels":{"a b":"c"}}`, 400},
		{"POST", "/api/v1/tasks", `{"prompt":"x","deny":["bash\u001b"]}`, 400},
		{"POST", "/api/v1/tasks", `{"prompt":"x","servers":[{"name":"a/b","url":"https://example.org"}]}`, 400},
		{"POST", "/api/v1/tasks", `{"prompt":"x","much":1}`, 400},
		{"POST", "/api/v1/identities", `{"name":"ann","role":"viewer","tenant":""}`, 201},
		{"POST", "/api/v1/identities", `{"name":"","role":"viewer"}`, 400},
		{"POST", "/api/v1/identities", `{"name":"bob","role":"king"}`, 400},
		{"PUT", "/api/v1/tenants/red", `{"queue":-1}`, 400},
		{"PUT", "/api/v1/tenants/red", `{"queue":3,"budget":null}`, 200},
	} {
		described := "/api/v1/tenants/{name}"
		if tc.method == "POST" {
			described = tc.path
		}
		var value any
		if err := json.Unmarshal([]byte(tc.body), &value); err != nil {
			t.Fatal(err)
		}
		status, text := h.do(h.request(t.Context(), tc.method, tc.path, tc.body))
		err := body(described, strings.ToLower(tc.method)).Validate(value)
		if status != tc.status || (err == nil) != (status < 400) {
			t.Errorf("%s %s: %d %s; by the description: %v", tc.path, tc.body, status, text, err)
		}
	}
	for query, want := range map[string]int{
		"tasks?limit=1": 200, "tasks?limit=0": 400, "audit?after=9007199254740992": 400, "sessions/x/events?after=+1": 400,
		"tasks/x/events?live=true": 404, "tasks/x/events?live=1": 400, "tasks?stage=asleep": 400, "tasks?stage=": 400,
	} {
		if status, text := h.do(h.request(t.Context(), "GET", "/api/v1/"+query, nil)); status != want {
			t.Errorf("%s: %d %s", query, status, text)
		}
	}
}

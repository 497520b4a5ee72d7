package web_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/world/web"
)

// TestVendorsSearch compares the requests and answers of engines that are models with each vendor's documentation.
func TestVendorsSearch(t *testing.T) {
	heron := web.Hit{Title: "The heron", Address: "https://www.birds.test/a", Snippet: "It is grey."}
	for _, tt := range []struct {
		provider, answer string
		q                web.Query
		path, header     string
		value            string
		body             string // a part of it that only this engine has
		want             []web.Hit
	}{
		{
			provider: "anthropic",
			answer: `{"type":"message","role":"assistant","content":[{"type":"text","text":"I will search."},
				{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"grey heron"}},
				{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[
					{"type":"web_search_result","url":"https://www.birds.test/a","title":"The heron","encrypted_content":"Eq","page_age":"2 days ago"},
					{"type":"web_search_result","url":"https://other.test/","title":"Other","encrypted_content":"Eq","page_age":null}]},
				{"type":"text","text":"Grey.","citations":[{"type":"web_search_result_location","url":"https://www.birds.test/a","title":"The heron","encrypted_index":"Eo","cited_text":"It is grey."}]}],
				"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1,"server_tool_use":{"web_search_requests":1}}}`,
			q:    web.Query{Text: "grey heron", Count: 5, Domains: []string{"birds.test"}, Recency: "week"},
			path: "/v1/messages", header: "X-Api-Key", value: key,
			body: `"tools":[{"allowed_domains":["birds.test"],"max_uses":1,"name":"web_search","type":"web_search_20250305"}]`,
			want: []web.Hit{{Title: heron.Title, Address: heron.Address, Date: "2 days ago", Snippet: heron.Snippet}},
		},
		{
			provider: "openai",
			answer: `{"object":"response","output":[{"type":"reasoning","summary":[]},
				{"type":"web_search_call","status":"completed","action":{"type":"search","query":"grey heron","sources":[{"type":"url","url":"https://www.birds.test/a"},{"type":"url","url":"https://www.birds.test/b"}]}},
				{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Über it:\nIt is grey. ([birds](x))","annotations":[
					{"type":"url_citation","start_index":21,"end_index":33,"url":"https://www.birds.test/a?utm_source=openai","title":"The heron"}]}]}]}`,
			q:    web.Query{Text: "grey heron", Count: 5, Domains: []string{"birds.test"}},
			path: "/v1/responses", header: "Authorization", value: "Bearer " + key,
			body: `"tool_choice":"required","tools":[{"filters":{"allowed_domains":["birds.test"]},"type":"web_search"}]`,
			want: []web.Hit{heron, {Address: "https://www.birds.test/b"}},
		},
		{
			provider: "gemini",
			answer: `{"candidates":[{"content":{"role":"model","parts":[{"text":"It is grey."}]},"groundingMetadata":{"webSearchQueries":["grey heron"],
				"groundingChunks":[{"web":{"uri":"https://vertexaisearch.test/redirect/1","title":"birds.test"}}],
				"groundingSupports":[{"segment":{"startIndex":0,"endIndex":11,"text":"It is grey."},"groundingChunkIndices":[0]}]}}]}`,
			q:    web.Query{Text: "grey heron", Count: 5},
			path: "/v1beta/models/m-1:generateContent", header: "X-Goog-Api-Key", value: key,
			body: `"tools":[{"google_search":{}}]`,
			want: []web.Hit{{Title: "birds.test", Address: "https://vertexaisearch.test/redirect/1", Snippet: heron.Snippet}},
		},
	} {
		s, a := engine(t, tt.provider, tt.answer)
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), "model") {
			t.Errorf("%s without a model: %v", tt.provider, err)
		}
		s.Model = "m-1"
		hits, err := s.Find(t.Context(), client(), tt.q)
		if diff := cmp.Diff(tt.want, hits); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", tt.provider, err, diff)
		}
		if raw := compact(t, a.body); a.method != "POST" || a.path != tt.path || a.header.Get(tt.header) != tt.value ||
			!strings.Contains(raw, tt.body) || !strings.Contains(raw, "grey heron") {
			t.Errorf("%s: asked %s %s with %s", tt.provider, a.method, a.path, raw)
		}
	}
}

// TestVendorsFail checks the errors for impossible searches and invalid answers.
func TestVendorsFail(t *testing.T) {
	both := web.Query{Text: "x", Count: 3, Domains: []string{"a.test"}, Exclude: []string{"b.a.test"}}
	for _, tt := range []struct {
		provider, answer string
		q                web.Query
		want             string
	}{
		{"anthropic", `{}`, both, "not both"},
		{"gemini", `{}`, both, "leave domains"},
		{"anthropic", `{"type":"message","content":[{"type":"web_search_tool_result","content":{"type":"web_search_tool_result_error",` +
			`"error_code":"max_uses_exceeded"}}]}`, web.Query{Text: "x", Count: 3}, "max_uses_exceeded"},
		{
			"anthropic", `{"type":"message","content":[{"type":"web_search_tool_result","content":7}]}`,
			web.Query{Text: "x", Count: 3},
			"not as documented",
		},
		{"anthropic", `{"type":"error"}`, web.Query{Text: "x", Count: 3}, "not as documented"},
		{"openai", `{"object":"error"}`, web.Query{Text: "x", Count: 3}, "not as documented"},
		{"gemini", `{"promptFeedback":{}}`, web.Query{Text: "x", Count: 3}, "not as documented"},
	} {
		s, _ := engine(t, tt.provider, tt.answer)
		s.Model = "m"
		if _, err := s.Find(t.Context(), client(), tt.q); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.provider, err, tt.want)
		}
	}
}

// compact is a body as JSON with its keys in order.
func compact(t *testing.T, body map[string]any) string {
	t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

package anthropic

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/anthropic/anthropictest"
	"github.com/inspan/inspan/llm/internal/wire"
)

// answerOf lets the model answer a request, which the fake must take, and
// returns the reply and what was sent.
func answerOf(t *testing.T, id string, req llm.Request, answer anthropictest.Answer) (llm.Reply, string) {
	t.Helper()
	var sent string
	m := &Model{ID: id, BaseURL: "http://vendor", HTTP: anthropictest.Transport(t, &anthropictest.Server{Answer: func(_ *http.Request, body []byte) anthropictest.Answer {
		sent = string(body)
		return answer
	}})}
	for c, err := range m.Stream(t.Context(), req) {
		if err != nil {
			t.Fatalf("%v", err)
		}
		if c.Reply != nil {
			return *c.Reply, sent
		}
	}
	t.Fatal("no reply")
	return llm.Reply{}, ""
}

func asked(text string) llm.Request {
	return llm.Request{Messages: []llm.Message{{Role: llm.User, Parts: llm.Say(text)}}}
}

func TestStopReasons(t *testing.T) {
	for reason, want := range map[string]llm.Stop{
		"end_turn": llm.StopEnd, "stop_sequence": llm.StopEnd, "tool_use": llm.StopCalls, "max_tokens": llm.StopLength,
		"pause_turn": llm.StopPause, "refusal": llm.StopRefusal, "sensitive": llm.StopRefusal,
		"model_context_window_exceeded": llm.StopWindow, "brand_new": llm.StopOther,
	} {
		got, _ := answerOf(t, "claude-opus-5-5", asked("hi"), anthropictest.Answer{Parts: llm.Say("so far"), StopReason: reason})
		if got.Stop != want || got.Parts.Text() != "so far" {
			t.Errorf("%s: %q, %q, want %q", reason, got.Stop, got.Parts.Text(), want)
		}
	}
	// A turn may end with nothing in it, and a refusal may come with details.
	if got, _ := answerOf(t, "claude-opus-5-5", asked("hi"), anthropictest.Answer{StopReason: "end_turn"}); got.Stop != llm.StopEnd || len(got.Parts) != 0 {
		t.Errorf("empty turn: %+v", got)
	}
	refused := strings.Replace(sample, `{"stop_reason":"tool_use"}`, `{"stop_reason":"refusal","stop_details":{"type":"refusal","category":"cyber","explanation":"no"}}`, 1)
	if got, _, err := decodeAll(strings.NewReader(refused)); err != nil || got.Stop != llm.StopRefusal {
		t.Errorf("refusal with details: %+v, %v", got, err)
	}
}

// TestUsage reads the figures in each of their forms: cumulative, and the writes
// to the cache in one or by how long they live.
func TestUsage(t *testing.T) {
	for usage, want := range map[string]llm.Usage{
		`{"input_tokens":3,"output_tokens":7}`: {Input: 3, CacheRead: 5, Output: 7},
		`{"output_tokens":7,"cache_creation_input_tokens":9,"cache_creation":{"ephemeral_5m_input_tokens":4,"ephemeral_1h_input_tokens":5}}`: {Input: 10, CacheRead: 5, CacheWrite: 9, Output: 7},
		`{"output_tokens":7,"cache_creation":{"ephemeral_5m_input_tokens":4,"ephemeral_1h_input_tokens":5}}`:                                 {Input: 10, CacheRead: 5, CacheWrite: 9, Output: 7},
		`{"output_tokens":7,"output_tokens_details":{"thinking_tokens":6},"server_tool_use":{"web_search_requests":1}}`:                      {Input: 10, CacheRead: 5, Output: 7, Reasoning: 6},
	} {
		got, _, err := decodeAll(strings.NewReader(strings.Replace(sample, `{"output_tokens":7}`, usage, 1)))
		if diff := cmp.Diff(want, got.Usage); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", usage, err, diff)
		}
	}
}

// TestOrphans holds that a call without its result, a result without its call and
// thinking that was changed are refused in words that healing understands.
func TestOrphans(t *testing.T) {
	call := llm.Call{ID: "toolu_1", Name: "now", Args: json.RawMessage(`{}`)}
	for name, messages := range map[string][]llm.Message{
		"call":     {{Role: llm.User, Parts: llm.Say("hi")}, {Role: llm.Assistant, Parts: llm.Parts{call}}, {Role: llm.User, Parts: llm.Say("and?")}},
		"result":   {{Role: llm.User, Parts: llm.Parts{llm.Result{CallID: "toolu_1", Name: "now"}}}},
		"thinking": {{Role: llm.User, Parts: llm.Say("hi")}, {Role: llm.Assistant, Parts: llm.Parts{llm.Reasoning{Opaque: json.RawMessage(`{"type":"thinking","thinking":"changed","signature":"c2ln"}`), Route: "anthropic/m"}, llm.Text{Text: "x"}}}, {Role: llm.User, Parts: llm.Say("and?")}},
	} {
		m := &Model{ID: "m", BaseURL: "http://vendor", HTTP: anthropictest.Transport(t, &anthropictest.Server{})}
		var last error
		for _, err := range m.Stream(t.Context(), llm.Request{Messages: messages, Tools: []llm.ToolSpec{{Name: "now"}}}) {
			last = err
		}
		if e := llm.AsError(last); e == nil || e.Kind != llm.KindHistory {
			t.Errorf("%s: %v, want %s", name, last, llm.KindHistory)
		}
	}
}

func TestClassify(t *testing.T) {
	cases := []struct {
		status      int
		body        string
		kind        llm.Kind
		used, limit int
	}{
		{400, `{"error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`, llm.KindWindow, 210000, 200000},
		{400, "{\"error\":{\"type\":\"invalid_request_error\",\"message\":\"input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease\"}}", llm.KindWindow, 188240, 178667},
		{400, `{"error":{"type":"invalid_request_error","message":"too many total text bytes: 17929476 > 16000000"}}`, llm.KindWindow, 0, 0},
		{400, `{"error":{"type":"invalid_request_error","message":"You have reached your specified API usage limits."}}`, llm.KindQuota, 0, 0},
		{400, `{"error":{"type":"invalid_request_error","message":"messages.5.content.1.image.source.base64: image exceeds 5 MB maximum: 5345844 bytes > 5242880 bytes"}}`, llm.KindHistory, 0, 0},
		{400, `{"error":{"type":"invalid_request_error","message":"At least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels"}}`, llm.KindHistory, 0, 0},
		{400, `{"error":{"type":"invalid_request_error","message":"messages.1.content.0: Expected ` + "`thinking` or `redacted_thinking`" + `, but found tool_use."}}`, llm.KindHistory, 0, 0},
		{401, `{"error":{"type":"authentication_error","message":"invalid x-api-key"}}`, llm.KindAuth, 0, 0},
		{402, `{"error":{"type":"billing_error","message":"x"}}`, llm.KindBilling, 0, 0},
		{403, `{"error":{"type":"permission_error","message":"x"}}`, llm.KindAuth, 0, 0},
		{404, `{"error":{"type":"not_found_error","message":"model: x"}}`, llm.KindNoModel, 0, 0},
		{409, `{"error":{"type":"conflict_error","message":"x"}}`, llm.KindTransient, 0, 0},
		{413, `<html>413 Request Entity Too Large</html>`, llm.KindTooLarge, 0, 0},
		{413, `{"error":{"type":"request_too_large","message":"x"}}`, llm.KindTooLarge, 0, 0},
		{429, `{"error":{"type":"rate_limit_error","message":"Number of request tokens has exceeded your per-minute rate limit"}}`, llm.KindRateLimited, 0, 0},
		{429, `{"error":{"type":"rate_limit_error","message":"Your organization has reached its enforced spend limit"}}`, llm.KindQuota, 0, 0},
		{500, `{"error":{"type":"api_error","message":"x"}}`, llm.KindTransient, 0, 0},
		{502, `<html>bad gateway</html>`, llm.KindTransient, 0, 0},
		{504, `{"error":{"type":"timeout_error","message":"x"}}`, llm.KindTransient, 0, 0},
		{529, ``, llm.KindOverloaded, 0, 0},
		{307, ``, llm.KindInvalid, 0, 0},
		{200, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, llm.KindOverloaded, 0, 0},
		{200, `{"type":"error","error":{"type":"brand_new_error","message":"x"}}`, llm.KindTransient, 0, 0},

		{400, `{"message":"Input is too long for requested model."}`, llm.KindWindow, 0, 0},
		{429, `{"message":"Too many tokens per day, please wait before trying again."}`, llm.KindQuota, 0, 0},
		{429, `[{"error":{"code":429,"message":"Resource exhausted. Please try again later.","status":"RESOURCE_EXHAUSTED"}}]`, llm.KindRateLimited, 0, 0},
		{401, `{"error":{"code":401,"message":"x","status":"UNAUTHENTICATED","details":[{"reason":"ACCESS_TOKEN_EXPIRED"}]}}`, llm.KindAuthExpired, 0, 0},
		{499, `{"error":{"code":499,"message":"x","status":"CANCELLED"}}`, llm.KindTransient, 0, 0},
		{503, `{"error":{"code":503,"message":"x","status":"UNAVAILABLE"}}`, llm.KindOverloaded, 0, 0},
		{400, `{"error":"a word"}`, llm.KindInvalid, 0, 0},
	}
	for _, c := range cases {
		if e := classify(c.status, []byte(c.body)); e.Kind != c.kind || e.Used != c.used || e.Limit != c.limit {
			t.Errorf("%d %s = %s %d %d, want %s %d %d", c.status, c.body, e.Kind, e.Used, e.Limit, c.kind, c.used, c.limit)
		}
	}
}

// TestNames holds that tools whose names the vendor refuses go by others, in the
// definitions, the history and the replies, and come back under their own.
func TestNames(t *testing.T) {
	long := strings.Repeat("long.", 20)
	clash := wire.ToolName("a.b") // a tool may have the very name that another one goes by
	tools := []string{clash, "a.b", "a b", long, "Grüße", "", "ok-1_A", strings.Repeat("x", 64)}
	req := asked("hi")
	for _, name := range tools {
		req.Tools = append(req.Tools, llm.ToolSpec{Name: name})
	}
	back := wire.ToolNames(req, wire.ToolName)
	var calls, history llm.Parts
	for i, name := range append(tools, "gone/tool") {
		history = append(history, llm.Call{ID: fmt.Sprintf("toolu_%d", i), Name: name, Args: json.RawMessage(`{}`)})
	}
	for i, name := range tools {
		calls = append(calls, llm.Call{ID: fmt.Sprintf("new_%d", i), Name: back.Theirs(name), Args: json.RawMessage(`{}`)})
	}
	calls = append(calls, llm.Call{ID: "new", Name: "invented", Args: json.RawMessage(`{}`)})
	req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Parts: history}, llm.Message{Role: llm.User})
	for _, c := range history.Calls() {
		req.Messages[2].Parts = append(req.Messages[2].Parts, llm.Result{CallID: c.ID, Name: c.Name})
	}
	reply, sent := answerOf(t, "claude-opus-5-5", req, anthropictest.Answer{Parts: calls})
	var got []string
	for _, c := range reply.Calls() {
		got = append(got, c.Name)
	}
	if diff := cmp.Diff(append(tools, "invented"), got); diff != "" {
		t.Errorf("names came back changed:\n%s", diff)
	}
	for i, name := range tools {
		theirs := back.Theirs(name)
		if strings.Count(sent, `"name":"`+theirs+`"`) != 2 {
			t.Errorf("%q goes by %q, which the request has not twice: %s", name, theirs, sent)
		}
		if slices.Contains([]int{0, 6, 7}, i) != (theirs == name) {
			t.Errorf("%q goes by %q", name, theirs)
		}
	}
	if again := string(body(&Model{ID: "claude-opus-5-5"}, req)); again != sent {
		t.Errorf("the same request has other bytes:\n%s\n%s", again, sent)
	}
}

// TestCallDeltaHasOurName holds the same for what is shown while a call streams.
func TestCallDeltaHasOurName(t *testing.T) {
	req := asked("hi")
	req.Tools = []llm.ToolSpec{{Name: "a.b"}}
	m := &Model{ID: "m", BaseURL: "http://vendor", HTTP: anthropictest.Transport(t, &anthropictest.Server{Answer: func(*http.Request, []byte) anthropictest.Answer {
		return anthropictest.Answer{Parts: llm.Parts{llm.Call{ID: "toolu_1", Name: wire.ToolName("a.b"), Args: json.RawMessage(`{"x":1}`)}}}
	}})}
	seen := false
	for c, err := range m.Stream(t.Context(), req) {
		if err != nil || c.Call != nil && c.Call.Name != "a.b" {
			t.Errorf("got %+v, %v", c.Call, err)
		}
		seen = seen || c.Call != nil
	}
	if !seen {
		t.Error("no call was shown")
	}
}

func picture(t *testing.T, kind string, width, height int) llm.Image {
	t.Helper()
	var b bytes.Buffer
	img := image.NewPaletted(image.Rect(0, 0, width, height), color.Palette{color.Black})
	var err error
	switch kind {
	case "image/png":
		err = png.Encode(&b, img)
	case "image/jpeg":
		err = jpeg.Encode(&b, img, nil)
	case "image/gif":
		err = gif.Encode(&b, img, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return llm.Image{MediaType: kind, Data: b.Bytes()}
}

// TestImagesThatDontFit holds that an image the vendor refuses by itself is left
// out with a word, wherever it stands, and that the request is not changed.
func TestImagesThatDontFit(t *testing.T) {
	wide, tall := picture(t, "image/png", 8001, 1), picture(t, "image/gif", 1, 8001)
	high := picture(t, "image/jpeg", 1, 8001)
	heavy := llm.Image{MediaType: "image/webp", Data: make([]byte, 4<<20)}
	good := picture(t, "image/png", 8000, 8)
	req := asked("Look.")
	req.Tools = []llm.ToolSpec{{Name: "shot"}}
	req.Messages[0].Parts = append(req.Messages[0].Parts, wide, good)
	req.Messages = append(req.Messages,
		llm.Message{Role: llm.Assistant, Parts: llm.Parts{llm.Call{ID: "toolu_1", Name: "shot", Args: json.RawMessage(`{}`)}}},
		llm.Message{Role: llm.User, Parts: llm.Parts{llm.Result{CallID: "toolu_1", Name: "shot", Parts: llm.Parts{tall, high, heavy, good, llm.Image{MediaType: "image/png", Digest: "its bytes were not found"}}}}})
	_, sent := answerOf(t, "claude-opus-5-5", req, anthropictest.Answer{})
	if strings.Count(sent, "An image was here") != 5 || strings.Count(sent, `"type":"image"`) != 2 {
		t.Errorf("%d words and %d images", strings.Count(sent, "An image was here"), strings.Count(sent, `"type":"image"`))
	}
	for _, p := range append(req.Messages[0].Parts[1:], req.Messages[2].Parts[0].(llm.Result).Parts...) {
		if _, ok := p.(llm.Image); !ok {
			t.Errorf("the request was changed: it holds %v", p)
		}
	}
}

// TestManyImages adds image after image: the fake takes every request, the newest
// image is always there, what was left out stays so, and what the vendor has
// cached is lost at every sixth image only.
func TestManyImages(t *testing.T) {
	cuts, gone := 0, 0
	req := asked("Look.")
	for i := range 60 {
		data := bytes.Repeat([]byte{byte(i)}, 99)
		req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Parts: llm.Say("I see.")},
			llm.Message{Role: llm.User, Parts: llm.Parts{llm.Image{MediaType: "image/webp", Data: data}}})
		sent := string(body(&Model{ID: "claude-opus-5-5"}, req))
		if err := anthropictest.Validate([]byte(sent)); err != nil {
			t.Fatalf("image %d: %v", i, err)
		}
		there, now := strings.Count(sent, `"type":"image"`), strings.Count(sent, "An image was here")
		if there > imageLimits().Count || there+now != i+1 || now < gone || !strings.Contains(sent, base64.StdEncoding.EncodeToString(data)) {
			t.Fatalf("image %d: %d there, %d gone, before %d", i, there, now, gone)
		}
		if now > gone {
			cuts++
		}
		gone = now
	}
	if cuts != 7 {
		t.Errorf("the prefix changed %d times, want 7", cuts)
	}
}

// TestHeavyImages holds the same of images that are too much together.
func TestHeavyImages(t *testing.T) {
	const heavy = 4 << 20
	parts := llm.Parts{}
	for range 6 {
		parts = append(parts, llm.Image{MediaType: "image/webp", Data: make([]byte, heavy/4*3)})
	}
	if sent := body(&Model{ID: "m"}, llm.Request{Messages: []llm.Message{{Role: llm.User, Parts: parts}}}); len(sent) > imageLimits().Bytes+4096 {
		t.Errorf("sent %d bytes", len(sent))
	}
}

// TestInterleaved holds which models are asked to think between their calls, and
// that Bedrock is asked in the body.
func TestInterleaved(t *testing.T) {
	with := asked("hi")
	with.Effort, with.Tools = "low", []llm.ToolSpec{{Name: "now"}}
	for _, c := range []struct {
		id   string
		req  llm.Request
		want bool
	}{
		{"claude-sonnet-4-5", with, true},
		{"claude-opus-4-20250514", with, true},
		{"claude-haiku-4-5", with, false},
		{"claude-3-7-sonnet-20250219", with, false},
		{"claude-opus-4-6", with, false},
		{"claude-sonnet-4-5", asked("hi"), false},
	} {
		if got := slices.Contains(betas(c.id, c.req), "interleaved-thinking-2025-05-14"); got != c.want {
			t.Errorf("%s: %v, want %v", c.id, got, c.want)
		}
	}
	if sent := string(body(&Model{ID: "us.anthropic.claude-sonnet-4-5-v1:0", Dialect: "bedrock"}, with)); !strings.Contains(sent, `"anthropic_beta":["interleaved-thinking-2025-05-14"]`) {
		t.Errorf("Bedrock is not asked in the body: %s", sent)
	}
	var header string
	m := &Model{ID: "claude-sonnet-4-5", BaseURL: "http://vendor", HTTP: tripper(func(r *http.Request) (*http.Response, error) {
		header = r.Header.Get("Anthropic-Beta")
		return nil, http.ErrServerClosed
	})}
	for _, err := range m.Stream(t.Context(), with) {
		if err == nil {
			t.Error("nobody answered, yet something came back")
		}
	}
	if header != "interleaved-thinking-2025-05-14" {
		t.Errorf("the vendor is asked for %q", header)
	}
}

// TestInfo holds that a cloud's id is found in the price book, and that the
// platform is the provider unless there is one.
func TestInfo(t *testing.T) {
	got := (&Model{ID: "us.anthropic.claude-haiku-4-5-20251001-v1:0", Dialect: "bedrock"}).Info()
	if got.Route() != "bedrock/us.anthropic.claude-haiku-4-5-20251001-v1:0" || got.Window != 200_000 || !got.Images || len(got.Prices) != 1 {
		t.Errorf("got %+v", got)
	}
	if own := (&Model{ID: "x", Provider: "mine", BaseURL: vertexBase, Window: 5}).Info(); own.Route() != "mine/x" || own.Window != 5 || own.Images {
		t.Errorf("got %+v", own)
	}
}

package anthropic

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/testkit/anthropictest"
	"github.com/inspan/inspan/llm"
)

// answerOf lets the model answer a request, which the fake must accept, and returns the reply and the request that was
// sent.
func answerOf(t *testing.T, id string, req llm.Request, answer anthropictest.Answer) (llm.Reply, string) {
	t.Helper()
	var sent string
	m := &Model{ID: id, BaseURL: "http://vendor", HTTP: anthropictest.Transport(t,
		&anthropictest.Server{Answer: func(_ *http.Request, body []byte) anthropictest.Answer {
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

// TestOrphans checks that a call without its result, a result without its call and thinking that was changed are
// refused in words that healing understands.
func TestOrphans(t *testing.T) {
	call := llm.Call{ID: "toolu_1", Name: "now", Args: json.RawMessage(`{}`)}
	for name, messages := range map[string][]llm.Message{
		"call": {
			{Role: llm.User, Parts: llm.Say("hi")},
			{Role: llm.Assistant, Parts: llm.Parts{call}},
			{Role: llm.User, Parts: llm.Say("and?")},
		},
		"result": {{Role: llm.User, Parts: llm.Parts{llm.Result{CallID: "toolu_1", Name: "now"}}}},
		"thinking": {{Role: llm.User, Parts: llm.Say("hi")}, {
			Role: llm.Assistant,
			Parts: llm.Parts{llm.Reasoning{
				Opaque: json.RawMessage(`{"type":"thinking","thinking":"changed","signature":"c2ln"}`),
				Route:  "anthropic/m",
			}, llm.Text{Text: "x"}},
		}, {Role: llm.User, Parts: llm.Say("and?")}},
	} {
		m := &Model{ID: "m", BaseURL: "http://vendor", HTTP: refusing(func(r *http.Request) (*http.Response, error) {
			w := httptest.NewRecorder() // no judge sits here: the vendor is to refuse these
			(&anthropictest.Server{}).ServeHTTP(w, r)
			return w.Result(), nil
		})}
		var last error
		for _, err := range m.Stream(t.Context(), llm.Request{Messages: messages, Tools: []llm.ToolSpec{{Name: "now"}}}) {
			last = err
		}
		if e := llm.AsError(last); e == nil || e.Kind != llm.KindHistory {
			t.Errorf("%s: %v, want %s", name, last, llm.KindHistory)
		}
	}
}

type refusing func(*http.Request) (*http.Response, error)

func (f refusing) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

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

// TestImagesThatDontFit checks that a note replaces an image that the vendor refuses by itself, at any position, and
// that the request itself is not changed.
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
		llm.Message{Role: llm.User, Parts: llm.Parts{llm.Result{
			CallID: "toolu_1", Name: "shot",
			Parts: llm.Parts{tall, high, heavy, good, llm.Image{MediaType: "image/png", Digest: "its bytes were not found"}},
		}}})
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

// TestManyImages adds image after image: the fake accepts every request, the newest image is always there, omitted
// images stay omitted, and only every sixth image loses the vendor's cache.
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

// TestHeavyImages checks the same of images that are too much together.
func TestHeavyImages(t *testing.T) {
	const heavy = 4 << 20
	parts := llm.Parts{}
	for range 6 {
		parts = append(parts, llm.Image{MediaType: "image/webp", Data: make([]byte, heavy/4*3)})
	}
	if sent := body(&Model{ID: "m"}, llm.Request{Messages: []llm.Message{{Role: llm.User, Parts: parts}}}); len(sent) > imageLimits().Bytes+
		4096 {
		t.Errorf("sent %d bytes", len(sent))
	}
}

// TestInterleaved checks which models are asked to think between their calls, and that Bedrock is asked in the body.
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
	if sent := string(body(&Model{ID: "us.anthropic.claude-sonnet-4-5-v1:0", Dialect: "bedrock"}, with)); !strings.Contains(sent,
		`"anthropic_beta":["interleaved-thinking-2025-05-14"]`) {
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

// TestInfo checks that a cloud's id is found in the price book, and that the platform is the provider unless there is
// one.
func TestInfo(t *testing.T) {
	got := (&Model{ID: "us.anthropic.claude-haiku-4-5-20251001-v1:0", Dialect: "bedrock"}).Info()
	if got.Route() != "bedrock/us.anthropic.claude-haiku-4-5-20251001-v1:0" || got.Window != 200_000 || !got.Images || len(got.Prices) != 1 {
		t.Errorf("got %+v", got)
	}
	if own := (&Model{ID: "x", Provider: "mine", BaseURL: vertexBase, Window: 5}).Info(); own.Route() != "mine/x" ||
		own.Window != 5 || own.Images {
		t.Errorf("got %+v", own)
	}
}

package router_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/router"
)

// fill is n letters and digits such as tokens have.
func fill(n int) string { return strings.Repeat("aB3dE6gH9", n/9+1)[:n] }

// secrets are texts that must stay on the machine, by name.
func secrets() [][2]string {
	upper := strings.ToUpper(fill(60))
	return [][2]string{
		{"a private key", "-----BEGIN PRIVATE KEY-----\nMII"},
		{"a private key", "x\n-----BEGIN OPENSSH PRIVATE KEY-----"},
		{"a private key", "-----BEGIN PGP PRIVATE KEY BLOCK-----"},
		{"a private key", "AGE-SECRET-KEY-1" + upper[:58]},
		{"an AWS key", "id=AKIA" + upper[:16] + "."},
		{"a GitHub token", "ghp_" + fill(36)},
		{"a GitHub token", "https://x:ghs_" + fill(40) + "@github.com"},
		{"a GitHub token", "github_pat_" + fill(82)},
		{"a GitLab token", "glpat-" + fill(20)},
		{"a Slack token", "xoxb-123456789012-" + fill(12)},
		{"a Slack hook", "https://hooks.slack.com/services/T000/B000/" + fill(24)},
		{"a Google key", "AIza" + fill(35)},
		{"a Google token", "ya29." + fill(40)},
		{"a Hugging Face token", "hf_" + fill(34)},
		{"a Stripe key", "sk_live_" + fill(24)},
		{"an npm token", "npm_" + fill(36)},
		{"a PyPI token", "pypi-AgEI" + fill(80)},
		{"a SendGrid key", "SG." + fill(22) + "." + fill(43)},
		{"a web token", "Bearer eyJhbGciOiJI.eyJzdWIiOiIx." + fill(43)},
		{"an API key", "sk-proj-" + fill(40)},
		{"an API key", `{"key":"sk-ant-api03-` + fill(30) + `"}`},
		{"a password in an address", "postgres://app:hunter2@db:5432/x"},
		{"a secret setting", "DB_PASSWORD=hunter2hunter2"},
		{"a secret setting", "   12\texport STRIPE_SECRET='s3cr3t-value'"},
		{"a secret setting", `"API_KEY": "q9w8e7r6t5"`},
		{"a secret setting", "environment:\n  JWT_SECRET: a+b/c=d!e"},
		{"a secret setting", "AWS_SECRET_ACCESS_KEY=" + fill(40)},
		{"a secret setting", "a=1\nPASSWORD=correcthorse\nb=2"},
		{"a secret setting", "API_KEY=your_key_here\nTOKEN=r3a1-0ne-here"},
	}
}

// harmless are texts that look like secrets and are none.
func harmless() []string {
	return []string{
		"-----BEGIN PUBLIC KEY-----", "-----BEGIN CERTIFICATE-----",
		"AKIAIOSFODNN7EXAMPLE", "ghp_short", "ghp_" + strings.Repeat("x", 36), "task-management-for-teams-2024-edition",
		"sk-this-is-a-css-class-name",
		"https://example.com/a:b@c", "http://localhost:8080/x", "postgres://user:password@localhost/db", "postgres://$USER:$PASS@db/x",
		"git@github.com:a/b.git",
		"API_KEY=process.env.API_KEY", "SECRET_KEY = settings.SECRET_KEY", `TOKEN = os.getenv("TOKEN")`, "PASSWORD=${PASSWORD}",
		"TOKEN=<your token>",
		"API_KEY=your-api-key-1", "MAX_TOKENS=200000000", "TOKEN: 123456789", "PASSWORD: string", "TOKEN = undefined", "DB_PASSWORD=",
		"PASSWORD=changeme1",
		"the password is needed", "monkey=12345678a", "eyJhbGciOiJIUzI1NiJ9",
	}
}

func TestSecrets(t *testing.T) {
	m := hybrid()
	for _, s := range secrets() {
		if got := m.Features(say(s[1])).Private; got != s[0] {
			t.Errorf("%q holds %q, want %q", s[1], got, s[0])
		}
	}
	for _, text := range harmless() {
		if got := m.Features(say(text)).Private; got != "" {
			t.Errorf("%q holds %q, want nothing", text, got)
		}
	}
}

// TestPrivatePatterns checks that a person's patterns count, and are not named.
func TestPrivatePatterns(t *testing.T) {
	m := hybrid()
	m.Private = []string{"(?i)project bluebird", "Müller"}
	for text, want := range map[string]string{
		"about Project Bluebird": "text that private pattern 1 matches",
		"ask Müller":             "text that private pattern 2 matches",
		"nothing":                "",
	} {
		if got := m.Features(say(text)).Private; got != want {
			t.Errorf("%q holds %q, want %q", text, got, want)
		}
	}
	m = hybrid()
	m.Private = []string{"("}
	if got := m.Features(say("nothing")).Private; got == "" {
		t.Error("a pattern that can't be read lets text through")
	}
}

// places are where a text may stand in a request.
func places() map[string]func(*llm.Request, string) {
	part := func(p func(string) llm.Part) func(*llm.Request, string) {
		return func(r *llm.Request, s string) {
			r.Messages = append(r.Messages, llm.Message{Role: llm.User, Parts: llm.Parts{llm.Text{Text: "so"}, p(s)}})
		}
	}
	args := func(s string) json.RawMessage {
		raw, _ := json.Marshal(map[string]any{"a": []string{"x", s}})
		return raw
	}
	return map[string]func(*llm.Request, string){
		"system":      func(r *llm.Request, s string) { r.System = append(r.System, s) },
		"description": func(r *llm.Request, s string) { r.Tools = append(r.Tools, llm.ToolSpec{Name: "t", Description: s}) },
		"schema":      func(r *llm.Request, s string) { r.Tools = append(r.Tools, llm.ToolSpec{Name: "t", Schema: args(s)}) },
		"text":        part(func(s string) llm.Part { return llm.Text{Text: s} }),
		"reasoning":   part(func(s string) llm.Part { return llm.Reasoning{Text: s} }),
		"arguments":   part(func(s string) llm.Part { return llm.Call{Args: args(s)} }),
		"escaped": part(func(s string) llm.Part {
			var b strings.Builder
			for _, r := range s {
				fmt.Fprintf(&b, `\u%04x`, r)
			}
			return llm.Call{Args: json.RawMessage(`{"a":"` + b.String() + `"}`)}
		}),
		"broken arguments": part(func(s string) llm.Part { return llm.Call{Args: json.RawMessage(`{}`), Invalid: "{'a':'" + s} }),
		"result":           part(func(s string) llm.Part { return llm.Result{Parts: llm.Parts{llm.Text{Text: "ok"}, llm.Text{Text: s}}} }),
	}
}

func TestSecretPlaces(t *testing.T) {
	m := hybrid()
	for name, put := range places() {
		for _, s := range secrets() {
			req := say("hello")
			put(&req, s[1])
			if got := m.Features(req).Private; got == "" {
				t.Errorf("%s: %q was not found", name, s[1])
			}
		}
	}
}

// TestHistories checks that remembering earlier requests hides nothing: whatever a session sends next, the answer is
// that for a new session.
func TestHistories(t *testing.T) {
	texts := []string{"one", "two", "three", "o", "ne", "", secrets()[4][1], "sk-", fill(24), "sk-" + fill(24)}
	m, fresh := hybrid(), hybrid()
	never := 0
	rapid.Check(t, func(t *rapid.T) {
		histories := map[string][]llm.Message{}
		for range rapid.IntRange(1, 12).Draw(t, "requests") {
			session := rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "session")
			messages := histories[session]
			messages = messages[:rapid.IntRange(max(0, len(messages)-3), len(messages)).Draw(t, "kept")]
			for _, text := range rapid.SliceOfN(rapid.SampledFrom(texts), 0, 3).Draw(t, "added") {
				parts := llm.Say(text)
				if rapid.Bool().Draw(t, "result") {
					parts = llm.Parts{llm.Result{Parts: parts}, llm.Text{Text: rapid.SampledFrom(texts).Draw(t, "beside")}}
				}
				messages = append(messages[:len(messages):len(messages)], llm.Message{Role: llm.User, Parts: parts})
			}
			histories[session] = messages
			req := llm.Request{Session: session, Messages: messages, System: rapid.SampledFrom([][]string{nil, {"x"}}).Draw(t, "system")}
			got := m.Features(req).Private
			never++
			req.Session = fmt.Sprint(never)
			if want := fresh.Features(req).Private; got != want {
				t.Fatalf("holds %q, want %q: %+v", got, want, req)
			}
		}
	})
}

// TestMovedText checks that text which only moved from one part into the next is read again.
func TestMovedText(t *testing.T) {
	m := hybrid()
	for _, tt := range []struct{ result, beside, want string }{
		{"sk-", fill(24), ""},
		{"", "sk-" + fill(24), "an API key"},
	} {
		req := llm.Request{Session: "s", Messages: []llm.Message{{
			Role:  llm.User,
			Parts: llm.Parts{llm.Result{Parts: llm.Say(tt.result)}, llm.Text{Text: tt.beside}},
		}}}
		if got := m.Features(req).Private; got != tt.want {
			t.Errorf("%q beside %q: %q, want %q", tt.beside, tt.result, got, tt.want)
		}
	}
}

// TestManyHistories checks that sessions beyond the remembered ones are read again.
func TestManyHistories(t *testing.T) {
	m := hybrid()
	for round := range 2 {
		for i := range 150 {
			req := say("nothing")
			req.Session = fmt.Sprint(i)
			want := ""
			if i%3 == 0 {
				req, want = say("AKIA"+strings.ToUpper(fill(16))), "an AWS key"
				req.Session = fmt.Sprint(i)
			}
			if got := m.Features(req).Private; got != want {
				t.Fatalf("round %d, session %d: %q, want %q", round, i, got, want)
			}
		}
	}
}

// TestPrivateStays is the promise of the package: whatever the rules, the pins,
// the force and the failures, no model that is not local is ever asked with
// text that holds a secret.
func TestPrivateStays(t *testing.T) {
	kinds := []llm.Kind{
		llm.KindTransient, llm.KindRateLimited, llm.KindQuota, llm.KindOverloaded, llm.KindTimeout, llm.KindStreamCut, llm.KindWindow,
		llm.KindTooLarge, llm.KindAuthExpired, llm.KindAuth, llm.KindBilling, llm.KindRefused, llm.KindHistory, llm.KindInvalid,
		llm.KindNoModel, llm.KindNoTools, llm.KindNoReply, llm.KindBudget,
	}
	openly, privately := 0, 0 // requests that left the machine, and private ones answered
	rapid.Check(t, func(t *rapid.T) {
		m, vendors := randomRouter(t, kinds)
		req := say("hello")
		private := false
		for range rapid.IntRange(1, 8).Draw(t, "requests") {
			if rapid.IntRange(0, 4).Draw(t, "secret") == 0 {
				secret := rapid.SampledFrom(secrets()).Draw(t, "which")[1]
				put := places()[rapid.SampledFrom([]string{"system", "description", "text", "arguments", "escaped", "result"}).Draw(t, "place")]
				put(&req, secret)
				private = true
			} else {
				places()["text"](&req, rapid.SampledFrom([]string{"go on", "why?", strings.Repeat("long ", 4000)}).Draw(t, "text"))
			}
			req.Pin = rapid.SampledFrom([]string{"", "p/r0", "p/r1", "p/r2", "other/model"}).Draw(t, "pin")
			req.Purpose = rapid.SampledFrom([]string{"", "summary"}).Draw(t, "purpose")
			before := counts(vendors)
			for c, err := range m.Stream(t.Context(), req) {
				if err == nil && c.Reply != nil && private {
					privately++
				}
			}
			for i, n := range counts(vendors) {
				switch {
				case n == before[i] || m.Routes[i].Local:
				case private:
					t.Fatalf("route %d left the machine with %+v", i, req)
				default:
					openly++
				}
			}
		}
	})
	if openly == 0 || privately == 0 {
		t.Errorf("%d open requests left the machine and %d private ones were answered; the test proves nothing", openly, privately)
	}
}

func counts(vendors []*vendor) (out []int) {
	for _, v := range vendors {
		out = append(out, v.count())
	}
	return out
}

// randomRouter has up to three routes that fail at random, and random rules.
func randomRouter(t *rapid.T, kinds []llm.Kind) (*router.Model, []*vendor) {
	m := &router.Model{Health: new(router.Health)}
	var vendors []*vendor
	var names []string
	for i := range rapid.IntRange(1, 3).Draw(t, "routes") {
		v := called(fmt.Sprintf("r%d", i))
		v.info.Window = rapid.SampledFrom([]int{0, 6000, 1_000_000}).Draw(t, "window")
		v.info.NoTools = rapid.Bool().Draw(t, "no tools")
		for _, kind := range rapid.SliceOfN(rapid.SampledFrom(append(kinds, "", "")), 0, 6).Draw(t, "failures") {
			var fail *llm.Error
			if kind != "" {
				fail = &llm.Error{Kind: kind}
			}
			v.fails = append(v.fails, fail)
		}
		vendors, names = append(vendors, v), append(names, v.info.Model)
		m.Routes = append(m.Routes, router.Route{Name: v.info.Model, Model: v, Local: rapid.Bool().Draw(t, "local")})
	}
	for range rapid.IntRange(0, 3).Draw(t, "rules") {
		private := rapid.Bool().Draw(t, "private")
		m.Rules = append(m.Rules, router.Rule{
			Use:     rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, -1, rapid.ID).Draw(t, "use"),
			MaxCost: rapid.SampledFrom([]float64{0, 0.01}).Draw(t, "cost"),
			When: router.Cond{
				MinTokens: rapid.SampledFrom([]int{0, 5000}).Draw(t, "tokens"),
				Step:      rapid.SampledFrom([]string{"", "prompt", "results", "summary"}).Draw(t, "step"),
				Private:   rapid.SampledFrom([]*bool{nil, &private}).Draw(t, "when private"),
			},
		})
	}
	m.Force = rapid.SampledFrom(append(names, "", "", "", "")).Draw(t, "force")
	return m, vendors
}

// TestPrivateTextIsTooLong checks the error about private text that is too long for the small local model that alone
// may see it: it gives the length, the window and the reason why no other model may see it. A part of such a
// conversation stays local even where it does not contain the private text.
func TestPrivateTextIsTooLong(t *testing.T) {
	m := hybrid()
	m.Private = []string{"ACME-[0-9]+"}
	var last error
	for _, err := range m.Stream(t.Context(), say("ACME-1 "+strings.Repeat("word ", 80_000))) {
		last = err
	}
	got := llm.AsError(last)
	if got == nil || got.Kind != llm.KindWindow || got.Limit != 32_768 || got.Private == "" || strings.Contains(got.Error(), "ACME") {
		t.Fatalf("got %+v", got)
	}
	part := say("Refactor, redesign, find the race, prove why: nothing of it shows.")
	part.Private = got.Private
	for chunk, err := range m.Stream(t.Context(), part) {
		if err != nil {
			t.Fatal(err)
		}
		if chunk.Routed != nil && (chunk.Routed.Info.Provider != "ollama" || chunk.Routed.Window != 32_768) {
			t.Errorf("routed to %+v", chunk.Routed)
		}
	}
}

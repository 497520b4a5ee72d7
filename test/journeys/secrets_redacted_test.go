package journeys_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/redact"
	"github.com/inspan/inspan/internal/safety/secret"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// TestSecretsStayOut follows a registered value, and one that only has the shape
// of a token, through everything a session writes, shows and sends.
func TestSecretsStayOut(t *testing.T) {
	const value = "correct-horse-battery-9174"
	shaped := "ghp" + "_" + strings.Repeat("a1B2c3", 6)
	var ran, judged []string
	peek := tool.New("peek", "", func(_ context.Context, c *tool.Call, in struct {
		Text string `json:"text"`
	},
	) (tool.Result, error) {
		ran = append(ran, in.Text)
		c.Progress("working with " + value)
		return tool.Result{
			Parts: llm.Say("it is " + value + " and " + shaped),
			Files: []tool.File{{Path: "/w/a", Digest: "d", Written: true, Diff: "+" + value}},
		}, errors.New("failed near " + value)
	})
	peek.Effects = func(_ context.Context, c *tool.Call) ([]tool.Effect, error) {
		return []tool.Effect{{Kind: tool.External, Text: "use " + string(c.Args)}}, nil
	}
	peek.Preview = func(_ context.Context, c *tool.Call) (string, error) { return "+ " + string(c.Args), nil }
	blobs := &memoryBlobs{}
	model := &watched{Model: scripted(t, `call: peek {"text":"`+placeholder(t, value)+` please"}`, "The value is "+value+".")}
	a := inspan.Agent{
		Model: model, Tools: []tool.Tool{peek}, Mode: "ask", Env: tool.Env{Blobs: blobs},
		System:  []event.Added{{Source: "AGENTS.md", Text: "the password is " + value}},
		Secrets: inspan.Secrets{Values: func() map[string]string { return map[string]string{"DOOR": value} }, Key: []byte(testKey)},
		Judges: []tool.Judge{tool.JudgeFunc(func(_ context.Context, c *tool.Call, effects []tool.Effect) (tool.Verdict, error) {
			raw, err := json.Marshal(effects)
			judged = append(judged, string(c.Args)+string(raw))
			return tool.Verdict{}, err
		})},
	}
	log := event.NewMemory("m")
	s := open(t, &a, log)
	var shown []event.Event
	for _, input := range []event.Body{event.Say("use " + value + " or " + shaped), event.Decided{Call: "", Allow: true}} {
		if d, ok := input.(event.Decided); ok {
			d.Call, d.By = s.Status().Waiting[0].Call.ID, "ann"
			input = d
		}
		for e, err := range s.Run(t.Context(), input) {
			if err != nil {
				t.Fatal(err)
			}
			shown = append(shown, e)
		}
	}
	for name, what := range map[string]any{"events": shown, "requests": model.asked, "status": s.Status(), "judges": judged} {
		raw, err := json.Marshal(what)
		if err != nil {
			t.Fatal(err)
		}
		for _, held := range []string{value, shaped} {
			if strings.Contains(string(raw), held) {
				t.Errorf("%s hold %s: %s", name, held, raw)
			}
		}
		if (name == "events" || name == "requests") && !strings.Contains(string(raw), placeholder(t, value)) {
			t.Errorf("%s hold no placeholder: %s", name, raw)
		}
	}
	if len(ran) != 1 || ran[0] != value+" please" {
		t.Errorf("the tool got %q", ran)
	}
}

const deploys = "hunterzq77wkk31vx" // what no log may hold

// hush fails the test if anything holds the secret.
func hush(t *testing.T, what string, v any) {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(raw), deploys) {
		t.Errorf("%s hold the secret: %s", what, raw)
	}
}

// TestNoRuleNamesASecret checks that no secret is in a proposed rule, in the words of a command that judges see, or in
// a stored answer, and that rules without a secret are still offered.
func TestNoRuleNamesASecret(t *testing.T) {
	for _, tc := range []struct {
		does []tool.Effect
		want []string
	}{
		{[]tool.Effect{{Kind: tool.Execute, Text: "make " + deploys, Words: &tool.Words{Argv: []string{"make", deploys}, Exact: true}}}, nil},
		{[]tool.Effect{{Kind: tool.Write, Path: "/w/" + deploys + "/a"}}, nil},
		{[]tool.Effect{{Kind: tool.Network, Text: deploys + ".example.com"}}, nil},
		{[]tool.Effect{{Kind: tool.Write, Path: "/w/b"}, {Kind: tool.Write, Path: "/w/" + deploys}}, nil},
		{[]tool.Effect{{Kind: tool.Write, Path: "/w/b"}}, []string{"write(b)"}},
	} {
		var ran, judged, remembered []string
		does := tool.New("does", "", func(_ context.Context, c *tool.Call, _ struct{}) (tool.Result, error) {
			ran = append(ran, c.ID)
			return tool.Text("ok"), nil
		})
		does.Effects = func(context.Context, *tool.Call) ([]tool.Effect, error) { return tc.does, nil }
		a := redacting(t, "call: does {}", "done")
		a.Tools = []tool.Tool{does}
		a.Judges = []tool.Judge{tool.JudgeFunc(func(_ context.Context, _ *tool.Call, effects []tool.Effect) (tool.Verdict, error) {
			for _, e := range effects {
				if e.Words != nil {
					judged = append(judged, e.Words.Argv...)
				}
			}
			return tool.Verdict{}, nil
		})}
		a.Approvals.Remember = func(_ context.Context, _ event.Scope, rules []string) error {
			remembered = append(remembered, rules...)
			return nil
		}
		log := event.NewMemory("s")
		s := open(t, &a, log)
		events := drivenTo(t, s, said("go"))
		waiting := s.Status().Waiting
		if len(waiting) != 1 || !slices.Equal(waiting[0].Rules, tc.want) {
			t.Fatalf("%+v: waiting %+v", tc.does, waiting)
		}
		events = append(events, drivenTo(t, s, event.Decided{Call: waiting[0].Call.ID, Allow: true, Scope: event.ScopeProject})...)
		if len(ran) != 1 || !slices.Equal(remembered, tc.want) {
			t.Errorf("%+v: ran %q, remembered %q", tc.does, ran, remembered)
		}
		hush(t, "events", events)
		hush(t, "judges", judged)
		hush(t, "the status", s.Status())
	}
}

// TestSecretsFromElsewhere checks that no secret enters by text of others: names and descriptions of tools, states of
// servers, paths, errors, to-do items, jobs, and texts to or from hooks.
func TestSecretsFromElsewhere(t *testing.T) {
	path, failed := "/w/"+deploys+".txt", ""
	var seen []string
	leaks := tool.New("leaks", "Uses "+deploys+".", func(_ context.Context, c *tool.Call, _ struct{}) (tool.Result, error) {
		digest, _ := c.Seen.Digest(path)
		seen = append(seen, digest)
		return tool.Result{
			Parts: llm.Say("see " + path), Files: []tool.File{{Path: path, Digest: "d1"}}, Show: "# " + deploys, Cwd: "/w/" + deploys,
			Todo: []tool.Todo{{Text: "use " + deploys, State: tool.TodoOpen}}, Job: &tool.Job{ID: "1", Command: "deploy " + deploys},
			Lasting: "skill " + deploys,
		}, errors.New("no " + deploys)
	})
	leaks.Schema = json.RawMessage(`{"type":"object","properties":{"key":{"type":"string","default":"` + deploys + `"}}}`)
	other := leaks
	other.Name = deploys
	var dirs []string
	leaks.Effects = func(_ context.Context, c *tool.Call) ([]tool.Effect, error) {
		dirs = append(dirs, c.Cwd)
		return []tool.Effect{{Kind: tool.Execute, Text: "deploy", Dir: c.Cwd, Vars: "A=" + deploys}}, nil
	}
	h := &hook{say: map[tool.Moment]func(tool.Point) (tool.Outcome, error){
		tool.BeforeCall: func(p tool.Point) (tool.Outcome, error) {
			raw, err := json.Marshal([]any{p.Call.Cwd, p.Effects})
			failed += string(raw)
			return tool.Outcome{}, err
		},
		tool.AfterCall: func(p tool.Point) (tool.Outcome, error) {
			raw, err := json.Marshal([]any{p.Result, p.Call.Cwd})
			failed += p.Failed + string(raw)
			return tool.Outcome{Text: "mind " + deploys}, err
		},
	}}
	a := redacting(t, "call: leaks {}", "call: leaks {}", "call: "+deploys+" {}", "done")
	a.Mode, a.Hooks = "yolo", []tool.Hook{h}
	a.Dynamic.Tools = func(context.Context) ([]tool.Tool, []tool.Tool) { return []tool.Tool{leaks, other}, nil }
	a.Dynamic.Servers = func(context.Context, func(string)) []event.Server {
		return []event.Server{{Name: "s", State: "failed", Why: "it said " + deploys}}
	}
	model := &watched{Model: a.Model}
	a.Model = model
	s := open(t, &a, event.NewMemory("s"))
	events := drivenTo(t, s, event.Titled{Title: "about " + deploys}, said("go"))
	hush(t, "events", events)
	hush(t, "requests", model.asked)
	hush(t, "the hook", failed)
	if len(seen) != 2 || seen[1] != "d1" || len(dirs) < 2 || dirs[len(dirs)-1] != "/w/"+deploys {
		t.Errorf("calls know the files %v and start from %q", seen, dirs)
	}
	if switched := bodiesOf[event.Switched](drivenTo(t, s, said("again"))); len(switched) > 0 {
		t.Errorf("the tools count as changed: %+v", switched)
	}
}

// TestSpelledSecretsStayOut checks that a secret that a tool prints in colours, with invisible characters inside, or in
// shell quoting, is neither stored, shown nor sent, and that the next call gets exactly the printed text.
func TestSpelledSecretsStayOut(t *testing.T) {
	for _, odd := range []string{
		"hunter\x1b[01;31m\x1b[Kzq77w\x1b[m\x1b[Kkk31vx", "hunter\u200bzq77w\u200bkk31vx", "hunter\"zq77w\"kk31vx", "hunter\\\nzq77wkk31vx",
		"h\x00u\x00n\x00t\x00e\x00r\x00zq77w\x00k\x00k31vx", "hunter\u202ezq77wkk31vx", "hunterzq77w" + strings.Repeat("\u200b", 9) + "kk31vx",
		strings.Map(func(r rune) rune { return 0xe0000 + r }, deploys), // tags that mirror it
	} {
		known := secret.Vault{Key: []byte(testKey)}
		known.Add("DEPLOY_TOKEN", deploys)
		args, err := json.Marshal(wordArgs{Word: known.Redact(odd)})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		paint := tool.New("paint", "", func(_ context.Context, c *tool.Call, in wordArgs) (tool.Result, error) {
			got = append(got, in.Word)
			c.Progress("grep: " + odd)
			return tool.Result{Parts: llm.Say("found " + odd + " in a file"), Show: odd}, nil
		})
		a := redacting(t, `call: paint {"word":"x"}`, "call: paint "+string(args), "It is "+odd+".")
		model := &watched{Model: a.Model}
		a.Model, a.Tools, a.Mode = model, []tool.Tool{paint}, "yolo"
		s := open(t, &a, event.NewMemory("s"))
		events := drivenTo(t, s, said("use "+odd))
		for name, what := range map[string]any{"events": events, "requests": model.asked, "the status": s.Status()} {
			raw, err := json.Marshal(what)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(raw), "zq77w") || name != "the status" && !strings.Contains(string(raw), "[secret:") {
				t.Errorf("%q: %s hold it, or nothing: %s", odd, name, raw)
			}
		}
		if len(got) != 2 || got[1] != odd {
			t.Errorf("the tool got %q, want %q", got, odd)
		}
	}
}

// TestSecretInPieces checks that a secret which a reply brings in pieces is in none that are shown, and that the pieces
// still make up the reply.
func TestSecretInPieces(t *testing.T) {
	a := redacting(t, "unused")
	a.Model = inPieces{"the key is hunter", "zq77w", "kk31vx", ", and that", " is", " all hunter"}
	s := open(t, &a, event.NewMemory("s"))
	var events []event.Event
	for e, err := range s.Run(t.Context(), said("go")) {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	text, held := "", 0
	for _, d := range bodiesOf[event.Delta](events) {
		text += d.Text
		if strings.Contains(d.Text, "zq77") {
			held++
		}
	}
	if want := last[event.Replied](t, events).Parts.Text(); text != want || held > 0 || !strings.Contains(want, placeholder(t, deploys)) {
		t.Errorf("shown %q, replied %q", text, want)
	}
}

// inPieces is a model that streams these texts.
type inPieces []string

func (p inPieces) Info() llm.Info { return llm.Info{Provider: "p", Model: "m"} }

func (p inPieces) Stream(context.Context, llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		for _, text := range p {
			if !yield(llm.Chunk{Text: text}, nil) {
				return
			}
		}
		yield(llm.Chunk{Reply: &llm.Reply{Parts: llm.Say(strings.Join(p, "")), Stop: llm.StopEnd, Route: "p/m"}}, nil)
	}
}

// TestPlaceholdersOfLaterRuns checks that a placeholder stands for the same secret for every process that continues a
// session, in whatever order it sees the secrets, and that numbers of old logs and invented placeholders stand for
// nothing.
func TestPlaceholdersOfLaterRuns(t *testing.T) {
	first, second := "correct-horse-battery-9174", "quick-brown-foxes-2231"
	var got []string
	echo := tool.New("echo", "", func(_ context.Context, _ *tool.Call, in wordArgs) (tool.Result, error) {
		got = append(got, in.Word)
		return tool.Text("ok"), nil
	})
	log := event.NewMemory("s")
	for i, known := range []map[string]string{{"A": first}, {"B": second, "C": first}, {"B": second}} {
		call := `call: echo {"word":"` + placeholder(t, first) + ` [secret:1] [secret:aaaaaaaa]"}`
		a := redacting(t, call, "done", call, "done", call, "done")
		a.Tools, a.Mode, a.Secrets.Values = []tool.Tool{echo}, "yolo", func() map[string]string { return known }
		s := open(t, &a, log)
		drivenTo(t, s, said("use "+[]string{first, second, second}[i]))
	}
	want := []string{first + " [secret:1] [secret:aaaaaaaa]", first +
		" [secret:1] [secret:aaaaaaaa]", placeholder(t, first) + " [secret:1] [secret:aaaaaaaa]"}
	if !slices.Equal(got, want) {
		t.Errorf("the tool got %q, want %q", got, want)
	}
}

// BenchmarkRedactedDelta measures the work of a session for a piece of a reply.
func BenchmarkRedactedDelta(b *testing.B) {
	for name, body := range map[string]event.Body{
		"delta": event.Delta{Text: " word"},
		"reply": event.Replied{Parts: llm.Say(strings.Repeat("a line of text as it stands in replies\n", 2500))},
	} {
		b.Run(name, func(b *testing.B) {
			v := secret.Vault{Key: []byte(testKey)}
			v.Add("DEPLOY_TOKEN", deploys)
			for b.Loop() {
				redact.MapText(body, v.Redact)
			}
		})
	}
}

// TestLeftoversNameNoSecret checks that the report about a process that outlives its call contains no part of a secret
// that the call was given, even if the shell has taken the secret apart.
func TestLeftoversNameNoSecret(t *testing.T) {
	const value = "hunter&zq77wkk;31vx"
	does := tool.New("does", "", func(context.Context, *tool.Call, struct {
		Command string `json:"command"`
	},
	) (tool.Result, error) {
		return tool.Text("ok"), nil
	})
	does.Effects = func(context.Context, *tool.Call) ([]tool.Effect, error) {
		return []tool.Effect{{Kind: tool.Read, Path: "/w/a"}}, nil
	}
	a := redacting(t, `call: does {"command":"make `+value+`"}`, "done")
	a.Secrets.Values = func() map[string]string { return map[string]string{"DEPLOY_TOKEN": value} }
	a.Mode, a.Tools = "yolo", []tool.Tool{does}
	a.Lifecycle.Shutdown = func(bool, tool.Mode) inspan.Leftovers {
		return inspan.Leftovers{Ended: []tool.Leftover{{Command: "make hunter"}}, Kept: []tool.Leftover{{Command: "zq77wkk"}}}
	}
	s := open(t, &a, event.NewMemory("s"))
	drivenTo(t, s, said("go"))
	left := s.Shutdown()
	if got := left.Ended[0].Command + left.Kept[0].Command; strings.Contains(got, "hunter") || strings.Contains(got, "zq77wkk") {
		t.Errorf("left: %+v", left)
	}
}

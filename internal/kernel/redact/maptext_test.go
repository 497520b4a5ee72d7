package redact_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/redact"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

const hush = "HUSH"

// filled is a value of a type with hush in everything that can hold it.
func filled(t reflect.Type, depth int) reflect.Value {
	v := reflect.New(t).Elem()
	switch {
	case t == reflect.TypeFor[time.Time]() || depth > 9:
	case t == reflect.TypeFor[json.RawMessage]():
		v.SetBytes([]byte(`{"` + hush + `1":"a \"` + hush + `\" <b>","n":[1,true,"` + hush + `"]}`))
	case t == reflect.TypeFor[[]byte]():
		v.SetBytes([]byte(hush))
	case t == reflect.TypeFor[llm.Parts]():
		for _, part := range []llm.Part{llm.Text{}, llm.Image{}, llm.Reasoning{}, llm.Call{}, llm.Result{}, llm.Unknown{}} {
			v.Set(reflect.Append(v, filled(reflect.TypeOf(part), depth+3)))
		}
	default:
		fill(v, depth)
	}
	return v
}

func fill(v reflect.Value, depth int) {
	t := v.Type()
	switch t.Kind() {
	case reflect.String:
		v.SetString("the " + hush + " of it")
	case reflect.Struct:
		for i := range t.NumField() {
			v.Field(i).Set(filled(t.Field(i).Type, depth+1))
		}
	case reflect.Pointer:
		p := reflect.New(t.Elem())
		p.Elem().Set(filled(t.Elem(), depth+1))
		v.Set(p)
	case reflect.Slice:
		v.Set(reflect.Append(v, filled(t.Elem(), depth+1), filled(t.Elem(), depth+1)))
	case reflect.Map:
		v.Set(reflect.MakeMap(t))
		v.SetMapIndex(filled(t.Key(), depth+1), filled(t.Elem(), depth+1))
	case reflect.Bool, reflect.Int, reflect.Int64, reflect.Uint64, reflect.Float64:
	default:
		panic(fmt.Sprintf("MapText and this test don't know what is in a %s", t))
	}
}

// holding lists the fields, and the named string types, in which a value holds hush.
func holding(v reflect.Value, field string, found map[string]bool) {
	switch v.Kind() {
	case reflect.String:
		if name := v.Type().String(); name != "string" {
			field = name
		}
		if strings.Contains(v.String(), hush) {
			found[field] = true
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				holding(v.Field(i), v.Type().String()+"."+f.Name, found)
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			found[field] = found[field] || strings.Contains(string(v.Bytes()), hush)
			break
		}
		for i := range v.Len() {
			holding(v.Index(i), field, found)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			holding(key, field, found)
			holding(v.MapIndex(key), field, found)
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			holding(v.Elem(), field, found)
		}
	}
}

// TestMapTextLeavesNothing fills every field of every kind of body. Only the fields listed here may stay unchanged:
// ids, names that are known elsewhere, texts signed by a vendor, and words of this program. A new field counts as text
// unless it is added here.
func TestMapTextLeavesNothing(t *testing.T) {
	found := map[string]bool{}
	for _, body := range append(testkit.Bodies(), event.Unknown{}) {
		in := filled(reflect.TypeOf(body), 0).Interface().(event.Body)
		out := redact.MapText(in, func(s string) string { return strings.ReplaceAll(s, hush, "…") })
		if again := filled(reflect.TypeOf(body), 0).Interface(); !reflect.DeepEqual(in, again) {
			t.Errorf("%T was changed: %s", in, cmp.Diff(again, in))
		}
		holding(reflect.ValueOf(out), "", found)
		if _, err := json.Marshal(out); err != nil {
			t.Errorf("%T can't be written: %v", out, err)
		}
	}
	maps.DeleteFunc(found, func(_ string, held bool) bool { return !held })
	want := []string{
		"event.Asked.Route", "event.Cancelled.Message", "event.Checkpoint.ID", "event.Claimed.Writer", "event.Compacted.Route",
		"event.Compacted.Snapshot", "event.Compaction", "event.Corpus.Small", "event.Decided.Call", "event.Decided.Message",
		"event.Ended.Call", "event.Ended.EndedJobs",
		"event.Ended.Parent", "event.ErrorClass", "event.Failed.Route", "event.Finished.Job", "event.Forked.From",
		"event.Healing", "event.Judged.Asked", "event.Judged.Call", "event.Judged.Parent", "event.Judged.Route", "event.Lever",
		"event.Opened.Parent", "event.Opened.Root", "event.Opened.Traceparent", "event.Origin", "event.Outcome", "event.Place",
		"event.Progress.Call", "event.Pruning", "event.Raised.Call", "event.Raised.Child", "event.Raised.ID", "event.Reach", "event.Reason",
		"event.Recorded.By", "event.Recorded.ID", "event.Recorded.Key", "event.Recorded.Of", "event.Recorded.Sent",
		"event.Replied.Route", "event.Restored.After", "event.Restored.Before", "event.Restored.To", "event.Returned.Child",
		"event.Rewound.Snapshot", "event.Routed.From", "event.Routed.Judge", "event.Routed.Route", "event.Said.Context",
		"event.Said.Message", "event.Scope", "event.Source.Blob", "event.Spawned.Call", "event.Spawned.Child", "event.Spawned.Name", "event.Spawned.Root",
		"event.Spawned.Route",
		"event.Stage", "event.Staged.By", "event.Staged.Session", "event.Staged.Task",
		"event.Started.Call", "event.Started.Parent", "event.Started.Sum", "event.Steered.Message", "event.StepBlob.Digest", "event.StepEnded.Step",
		"event.StepStarted.Parent", "event.StepStarted.Step", "event.Stopped.Digest", "event.Switched.Route", "event.TaskAction",
		"event.Tasked.After", "event.Tasked.By", "event.Tasked.Call", "event.Tasked.For", "event.Tasked.ID", "event.Unknown.Name", "event.Waiting.Call",
		"event.Wanted.Call", "event.Wanted.Parent", "event.Why", "event.Workspace.Copy", "event.Workspace.Manifest", "llm.Call.ID",
		"llm.Call.Wire", "llm.Consulted.Route", "llm.Image.Data", "llm.Image.Digest", "llm.Kind", "llm.Reasoning.Opaque",
		"llm.Reasoning.Route", "llm.Result.CallID", "llm.Stop", "tool.Action", "tool.Class", "tool.EffectKind", "tool.File.Digest",
		"tool.Job.ID", "tool.Mode", "tool.Moment", "tool.Proposal.Blob", "tool.TodoState",
	}
	if d := cmp.Diff(want, slices.Sorted(maps.Keys(found))); d != "" {
		t.Error(d)
	}
}

// TestMapTextKeepsTheRest checks that a body without anything to change stays the same, and that only the texts in JSON
// are changed.
func TestMapTextKeepsTheRest(t *testing.T) {
	for _, body := range testkit.Bodies() {
		if out := redact.MapText(body, func(s string) string { return s }); !reflect.DeepEqual(out, body) {
			t.Errorf("%T: %s", body, cmp.Diff(body, out))
		}
	}
	change := func(s string) string {
		return strings.NewReplacer("hunter2", "<X>", "123456789012", "[N]", `"`, "'").Replace(s)
	}
	for raw, want := range map[string]string{
		`{"b": "hunter2", "a":1.50, "hunter2" :{}}`: `{"b": "<X>", "a":1.50, "<X>" :{}}`,
		`{"pin":123456789012,"n":-1e5}`:             `{"pin":"[N]","n":-1e5}`,
		`["a\"b","\u0068unter2","\u00e9"]`:          `["a'b","<X>","\u00e9"]`,
		`"hunter2"`:                                 `"<X>"`,
		`{"cut":"hunter2`:                           `{'cut':'<X>`,
		``:                                          ``,
	} {
		out := redact.MapText(event.Judged{Args: json.RawMessage(raw)}, change).(event.Judged)
		if string(out.Args) != want {
			t.Errorf("%s became %s, want %s", raw, out.Args, want)
		}
	}
	if out := redact.MapText(nil, change); out != nil {
		t.Errorf("nothing became %v", out)
	}
	effects := []tool.Effect{{Kind: tool.Execute, Words: &tool.Words{Argv: []string{"make", "hunter2"}}}}
	out := redact.MapText(event.Judged{Effects: effects}, change).(event.Judged)
	if got, was := out.Effects[0].Words.Argv[1], effects[0].Words.Argv[1]; got != "<X>" || was != "hunter2" {
		t.Errorf("words: %s, %s", got, was)
	}
}

func BenchmarkMapText(b *testing.B) {
	text := strings.Repeat("a line of text as it stands in replies, and no secret\n", 2000)
	for name, body := range map[string]event.Body{
		"delta": event.Delta{Text: " word"}, "reply": event.Replied{Parts: llm.Say(text)},
		"arguments": event.Replied{Parts: llm.Parts{llm.Call{
			Name: "x",
			Args: json.RawMessage(`{"text":` + string(must(json.Marshal(text))) + `}`),
		}}},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				redact.MapText(body, func(s string) string { return s })
			}
		})
	}
}

func must(raw []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return raw
}

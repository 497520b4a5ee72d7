package testkit

import (
	"encoding/json"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/fault"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// Bodies returns one body of every kind of event with every field set, in the order of bodies.go and calls.go.
func Bodies() []event.Body {
	parts := llm.Parts{
		llm.Text{Text: "text <&> \"é\" \u2028\n"},
		llm.Image{MediaType: "image/png", Digest: "sha256-0"},
		llm.Reasoning{Text: "hm", Opaque: json.RawMessage(`{"sig":"a<b","n":1e2}`), Route: "p/m"},
		llm.Call{ID: "c", Name: "read", Args: json.RawMessage(`{"parts":[1,"]"]}`), Invalid: "{"},
		llm.Result{CallID: "c", Name: "read", Parts: llm.Say("ok"), Error: true},
	}
	call := &llm.CallDelta{Name: "read", Args: `{"pa`}
	consulted := []llm.Consulted{{
		Purpose: "review", Route: "a/b", Usage: llm.Usage{Input: 1}, Cost: 0.1, Unpriced: true, Millis: 3, Cause: llm.KindTimeout,
	}}
	return []event.Body{
		event.Opened{
			Format: 1, App: "inspan 1", Root: "/w", Folder: "7 1.2", Parent: "p", Agent: "worker", Levers: event.Levers{Verify: "on"}, Config: "c",
			Labels: map[string]string{"ticket": "7"}, Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
			Corpus: event.Corpus{Sources: []event.Source{{Name: "https://a.example/b", Blob: "d"}}, Small: "p/small"},
		},
		event.Forked{From: "s", Seq: 7},
		event.Titled{Title: "t"},
		event.Pinned{On: true},
		event.Moved{Root: "/w2"},
		event.Withdrawn{Of: 3},
		event.Said{
			Parts: parts, By: "me", Origin: event.OriginLead, Message: "m", Context: "x",
			Taint: event.Taint{Untrusted: true, Private: true},
		},
		event.Steered{
			Parts: parts, By: "me", Origin: event.OriginAgent, Message: "m", Why: []event.Why{loop.WhyTodo},
			Taint: event.Taint{Untrusted: true, Private: true},
		},
		event.Decided{
			Args: json.RawMessage(`{"command":"ls"}`),
			Also: []uint64{8, 9},
			Call: "c", Question: 7, Allow: true, By: "me", Rule: "r",
			Scope: event.ScopeProject, Reach: event.ReachEdits, Reason: "w", Answer: "a", Message: "m",
		},
		event.Cancelled{Limit: event.ReasonMaxTime, All: true, By: "me", Reason: "w", Message: "m", Rate: &event.Rate{Cost: 0.5, Tokens: 9}},
		event.Claimed{Writer: "w", Epoch: 3, By: "h:1", Unattended: true, Keeps: true, NoKeep: true},
		event.Asked{Turn: 2, Route: "p/m"},
		event.Replied{
			Parts: parts, Stop: llm.StopCalls, Route: "p/m", Cost: 0.1, Unpriced: true, RequestID: "r", ReplyID: "i", Server: "h:1", Millis: 5, First: 2,
			Usage: llm.Usage{Input: 1, CacheRead: 2, CacheWrite: 3, Output: 4, Reasoning: 5, Estimated: true},
		},
		event.Failed{Cause: llm.KindQuota, Message: "m", Retry: 0.5, Status: 429, Limit: 3, Route: "a/b", Usage: llm.Usage{Input: 1}, Cost: 0.25, Millis: 4},
		event.Routed{
			Route: "a/b", Rule: "r", Reason: "why", From: "c/d", Cause: llm.KindOverloaded, Error: "e", Window: 3, Private: "p",
			Judged: "hard", Judge: "e/f", Usage: llm.Usage{Input: 1}, Cost: 0.25, Millis: 4, Took: 5,
		},
		event.Hooked{Moment: tool.PromptSaid, By: "h", Action: tool.Deny, Reason: "r", Text: "t"},
		event.Healed{Level: loop.HealImages, Cause: llm.KindTooLarge},
		event.Pruned{Upto: 4, Why: loop.PruneCold, Before: 9, After: 5},
		event.Judged{
			Call: "c", Action: tool.Ask, By: "mode", Reason: "w", Tool: "t", Args: json.RawMessage(`{"a":1}`),
			Effects: []tool.Effect{{Kind: tool.Write, Path: "/w/a", Text: "t", Class: tool.ProvenInside}}, Private: true, Text: "x", Cost: 0.01,
			Route: "a/b", Parent: "p", Asked: "d", Caller: true, Consulted: consulted, RequestedAhead: true, Ways: []string{"--allow x"},
		},
		event.Wanted{Call: "c", Parent: "p"},
		event.Waiting{
			Call: "c", Preview: "-a\n+b", Rules: []string{"write(a)"}, Until: time.Unix(1e9, 0).UTC(),
			Offers: []event.Offer{{Reach: event.ReachEdits, Rules: []string{"edits"}}}, Shown: []tool.File{{Path: "/w/a", Digest: "d"}},
		},
		event.Started{Call: "c", Parent: "p", Sum: "d"},
		event.Ended{
			Store: map[string]json.RawMessage{"k": json.RawMessage(`[1]`)},
			Call:  "c", Outcome: event.OutcomeOK, Parts: parts, Cwd: "/w", Exit: new(int), Todo: []tool.Todo{{Text: "t", State: tool.TodoDoing}},
			Show: "# s", Untrusted: true, Lasting: "l", Again: true, Cost: 0.02, Millis: 3,
			Job: &tool.Job{ID: "1", Command: "c", Keep: true}, EndedJobs: []string{"2"}, Left: true,
			Parent: "p", Class: fault.ErrorExit, Ways: []string{"--add-dir /x"}, Fetched: map[string]int{"pypi.org": 2},
			Files:    []tool.File{{Path: "/w/a", Digest: "d", Written: true, Diff: "+", Partial: true}},
			Proposal: &tool.Proposal{Name: "n", Blob: "b"},
		},
		event.Added{Where: event.PlaceTail, Source: "AGENTS.md", Text: "t", Taint: event.Taint{Untrusted: true, Private: true}},
		event.Switched{
			Route: "p/m", Effort: "low", Mode: "auto", Limits: &event.Limits{Turns: 2, Cost: 1.5, Tokens: 3, Seconds: 4},
			Window: &event.Window{Tokens: 5, Reserve: 6}, Folders: []string{"/x"},
			Tools:  []llm.ToolSpec{{Name: "n", Description: "d", Schema: json.RawMessage(`{"type":"object"}`)}},
			Retold: "sha256-ab",
		},
		event.Checkpoint{ID: "c", After: true, Left: 1},
		event.Workspace{Copy: "c", N: 2, Manifest: "sha256-ab", Bytes: 3, Left: 1, Stays: "it is too large"},
		event.Restored{To: "a", Before: "b", After: "c", Files: []string{"x", "y"}, Removed: []string{"y"}, Kept: 1},
		event.Rewound{To: 3, Of: 9, Snapshot: json.RawMessage(`{"v":1}`)},
		event.Compact{Focus: "f"},
		event.Kept{Why: loop.CompactAsked, Reason: "r", Usage: llm.Usage{Input: 1}, Cost: 0.1, Consulted: consulted},
		event.Compacted{
			Why: loop.CompactWindow, How: "model", Lacks: []string{"x"}, Route: "p/m", Usage: llm.Usage{Input: 1}, Cost: 0.1, Of: 7, Consulted: consulted,
			Before: 10, After: 1, Snapshot: json.RawMessage(`{"v":[1,2]}`),
		},
		event.Spawned{
			Child: "s.1", Call: "c", Agent: "explore", Name: "scout", Task: "look", Route: "p/m",
			Mode: "plan", Root: "/w2", Background: true, Args: json.RawMessage(`{"task":"look"}`),
		},
		event.Raised{
			Of: 5,
			ID: "1/c", Call: "c0", Child: "s.1", Agent: "explore", Tool: "bash", Args: json.RawMessage(`{"a":1}`),
			Effects: []tool.Effect{{Kind: tool.Write, Path: "/w/a"}},
			Reason:  "r", Preview: "p", Rules: []string{"bash(x)"}, Until: time.Unix(9, 0).UTC(),
			Offers: []event.Offer{{Reach: event.ReachHost, Rules: []string{"network(a)"}}},
		},
		event.Returned{
			Child: "s.1", Reason: event.ReasonDone, Detail: "d", Parts: parts, Turns: 2, Usage: llm.Usage{Input: 1}, Cost: 0.1, Unpriced: true, Idle: true,
			Taint: event.Taint{Untrusted: true, Private: true},
		},
		event.Paused{Until: time.Unix(9, 0).UTC(), Cause: llm.KindQuota, Message: "m", Child: "s.1"},
		event.Tasked{ID: "1", Action: loop.TaskDone, By: "s.1", Call: "c", Text: "t", After: []string{"2"}, At: time.Unix(9, 0).UTC(), For: "s.2", Check: "make", Taint: event.Taint{Untrusted: true, Private: true}},
		event.Finished{Job: "1", Exit: new(int), Error: "e", Seconds: 1.5, Line: "l", Kept: true, Command: "c", PID: 7},
		event.StepStarted{Step: "s", Does: "run", Title: "t", Parent: "p", Input: json.RawMessage(`{"a":1}`), Again: true},
		event.StepEnded{
			Step: "s", Outcome: event.OutcomeFailed, Result: json.RawMessage(`[1]`), Error: "e", Class: fault.ErrorNetwork, Cost: 0.1, Millis: 3,
			Blobs: []event.StepBlob{{Name: "n", Digest: "sha256-0", Size: 9, Type: "text/plain"}},
			Taint: event.Taint{Untrusted: true, Private: true},
		},
		event.Recorded{Of: "task", ID: "1", Value: json.RawMessage(`{"a":1}`), By: "ann", Key: "k", Sent: "sha256-0"},
		event.Staged{Task: "1", Stage: "failed", Why: "w", Session: "s", By: "ann", Result: json.RawMessage(`[1]`)},
		event.Stopped{Reason: event.ReasonFailed, Cause: llm.KindAuth, Detail: "d", Digest: "1:ab"},
		event.Note{Topic: "t", Text: "x"},
		event.Delta{Text: "t", Reasoning: "r", Call: call, Void: true},
		event.Progress{Call: "c", Text: "t", Wait: 1.5},
	}
}

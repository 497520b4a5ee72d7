// Package profile adapts the harness to single models, as data: the edit tool that
// a model uses reliably, the complexity of tool schemas, tool support, and the
// reasoning effort over a run. It also reads the machine's memory for local models.
package profile

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/inspan/inspan/llm"
)

// Profile is a row of a table: the facts about the models that match. An empty field says nothing.
type Profile struct {
	// Match is a pattern over "provider/model" as for [path.Match], except that * also matches slashes and case
	// is ignored.
	Match string `toml:"match"`
	// Edit is the tool that changes files: "replace" (edit_file), "patch" (apply_patch), "editor" (the type
	// that Anthropic has for one), "lines" (edit_lines) or "write" (only write_file).
	Edit string `toml:"edit"`
	// Schema is the form of tool schemas for the model: "full", or "plain" as by [Plain].
	Schema string `toml:"schema"`
	// Tools are "native", with the prompt as a fallback, or in the "prompt".
	Tools string `toml:"tools"`
	// Reasoning effort on the first turn of a run, on later ones, and after a failed call, of llm.Efforts; empty
	// means the requested one.
	First   string `toml:"first"`
	Rest    string `toml:"rest"`
	Trouble string `toml:"trouble"`
	// Prompt is added to the system prompt.
	Prompt string `toml:"prompt"`
}

// table is the built-in knowledge; the first rows win. Each row gives the reason why it is here. "lines" rests on
// reported measurements: "The harness problem" (February 2026) saw edits addressed by line improve 15 models by 5
// to 14 points, one from 6.7 to 68.3 %; an independent repeat saw them degrade strong models from 95 to 70 %, so
// they are only for weak ones.
func table() []Profile {
	const lines, plain, prompt = "lines", "plain", "prompt"
	return []Profile{
		// Distilled from R1 by its thoughts alone: no tool was in the training.
		{Match: "*deepseek-r1*distill*", Edit: lines, Schema: plain, Tools: prompt},
		{Match: "*/deepseek-r1:[1378]*b*", Edit: lines, Schema: plain, Tools: prompt}, // Ollama's names of the same
		// Their templates have no place for tools.
		{Match: "*codellama*", Edit: lines, Schema: plain, Tools: prompt},
		{Match: "*gemma2*", Edit: lines, Schema: plain, Tools: prompt},
		{Match: "*gemma-2-*", Edit: lines, Schema: plain, Tools: prompt},
		{Match: "*phi3*", Edit: lines, Schema: plain, Tools: prompt},
		{Match: "*phi-3*", Edit: lines, Schema: plain, Tools: prompt},
		// Trained for tools, too small for exact text and nested schemas.
		{Match: "*gemma*", Edit: lines, Schema: plain},
		{Match: "*/phi*", Edit: lines, Schema: plain},
		{Match: `*llama3*[:\-][1238]b*`, Edit: lines, Schema: plain},
		{Match: `*llama-3*[:\-][1238]b*`, Edit: lines, Schema: plain},
		{Match: "*llama3.2", Edit: lines, Schema: plain}, // 3b, if no size is named
		{Match: "*llama3.1", Edit: lines, Schema: plain}, // 8b
		{Match: "*llama3", Edit: lines, Schema: plain},   // 8b
		{Match: "*mistral*7b*", Edit: lines, Schema: plain},
		{Match: "*/mistral", Edit: lines, Schema: plain}, // 7b at Ollama
		{Match: `*qwen[23]*[:\-][01].[5-7]b*`, Edit: lines, Schema: plain},
		{Match: `*qwen[23]*[:\-][3478]b*`, Edit: lines, Schema: plain},
		// Trained on patches by their vendor, whose own agent offers nothing else: reported to get 91 to 94 %
		// of them right, while others' models fail at more than half.
		{Match: "*gpt-[56]*", Edit: "patch"},
		{Match: "*codex*", Edit: "patch"},
	}
}

// Schedule returns the default efforts over a run: models think hardest about the plan at the beginning and the
// final answer, both of which respond to words and not to results. It is only for models whose vendors accept an
// effort on every turn. One vendor's cache of the conversation does not survive a change of effort, which costs a
// run two readings.
func Schedule(route string) Profile {
	for _, match := range []string{
		"*claude-*-4-[6-9]*", "*claude-*-[5-9]", "*claude-*-[5-9]-*", "*gpt-5*", "*gpt-6*", "*/o[34]*", "*gemini-2.5*", "*gemini-[3-9]*",
	} {
		if matches(match, route) {
			return Profile{Match: match, First: "high", Rest: "medium"}
		}
	}
	return Profile{}
}

// For returns the profile of the model with this route, "provider/model". Own rows come before the built-in
// ones. For every field the first matching row that sets it wins; the defaults are "replace", "full" and
// "native".
func For(route string, own []Profile) Profile {
	var p Profile
	for _, row := range slices.Concat(own, table(), []Profile{{Match: "*", Edit: "replace", Schema: "full", Tools: "native"}}) {
		if !matches(row.Match, route) {
			continue
		}
		p.Edit = cmp.Or(p.Edit, row.Edit)
		p.Schema = cmp.Or(p.Schema, row.Schema)
		p.Tools = cmp.Or(p.Tools, row.Tools)
		p.First = cmp.Or(p.First, row.First)
		p.Rest = cmp.Or(p.Rest, row.Rest)
		p.Trouble = cmp.Or(p.Trouble, row.Trouble)
		p.Prompt = cmp.Or(p.Prompt, row.Prompt)
	}
	return p
}

// matches treats slashes like any other letter, so that * matches them. A bad pattern matches nothing.
func matches(pattern, route string) bool {
	fold := func(s string) string { return strings.ReplaceAll(strings.ToLower(s), "/", "\x00") }
	ok, err := path.Match(fold(pattern), fold(route))
	return ok && err == nil
}

// Check names the first field with an invalid value.
func (p Profile) Check() error {
	if _, err := path.Match(p.Match, ""); err != nil || p.Match == "" {
		return fmt.Errorf("match: %q is not a pattern", p.Match)
	}
	efforts := llm.Efforts()
	for _, f := range []struct {
		name, value string
		allowed     []string
	}{
		{"edit", p.Edit, []string{"replace", "patch", "editor", "lines", "write"}},
		{"schema", p.Schema, []string{"full", "plain"}},
		{"tools", p.Tools, []string{"native", "prompt"}},
		{"first", p.First, efforts},
		{"rest", p.Rest, efforts},
		{"trouble", p.Trouble, efforts},
	} {
		if f.value != "" && !slices.Contains(f.allowed, f.value) {
			return fmt.Errorf("%s: unknown value %q; use %s", f.name, f.value, strings.Join(f.allowed, ", "))
		}
	}
	return nil
}

// Model returns m with the profile's effort and schemas. It does not move tools into the prompt, and does not
// add the profile's prompt: the session's builder does both.
func (p Profile) Model(m llm.Model) llm.Model {
	if p.Schema != "plain" && p.First+p.Rest+p.Trouble == "" {
		return m
	}
	return profiled{m, p}
}

// Scheduled returns m with the schedule of efforts for its route, for requests without an effort. See
// [Schedule].
func Scheduled(m llm.Model) llm.Model {
	if p := Schedule(m.Info().Route()); p.First != "" {
		return scheduled{m, p}
	}
	return m
}

type scheduled struct {
	llm.Model
	profile Profile
}

// Stream implements [llm.Model].
func (m scheduled) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	if req.Effort == "" {
		req.Effort = m.profile.effort(req)
	}
	return m.Model.Stream(ctx, req)
}

type profiled struct {
	llm.Model
	profile Profile
}

// Stream implements [llm.Model].
func (m profiled) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	req.Effort = m.profile.effort(req)
	if m.profile.Schema == "plain" {
		req.Tools = slices.Clone(req.Tools)
		for i, t := range req.Tools {
			req.Tools[i].Schema, _ = Plain(t.Schema)
		}
	}
	return m.Model.Stream(ctx, req)
}

// effort follows the schedule. Requests outside of the conversation are excluded.
func (p Profile) effort(req llm.Request) string {
	if req.Purpose != "" || len(req.Messages) == 0 {
		return req.Effort
	}
	effort := p.First
	for _, part := range req.Messages[len(req.Messages)-1].Parts {
		if r, ok := part.(llm.Result); ok && r.Error {
			return cmp.Or(p.Trouble, req.Effort)
		} else if ok {
			effort = p.Rest
		}
	}
	return cmp.Or(effort, req.Effort)
}

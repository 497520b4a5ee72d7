package plugin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/extend/hook"
	"github.com/inspan/inspan/internal/extend/mcp"
	"github.com/inspan/inspan/internal/extend/skill"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/llm"
)

// runs lists the programs that the plugin could run.
func (r *reading) runs() {
	say := func(format string, args ...any) {
		r.out.Runs = append(r.out.Runs, text.Visible(fmt.Sprintf(format, args...)))
	}
	for _, h := range r.out.Hooks {
		what := "runs " + strings.Join(append([]string{h.Command}, h.Args...), " ")
		if h.URL != "" {
			what = "sends events to " + h.URL
		}
		at := string(h.On)
		if h.Match != "" && h.Match != "*" {
			at += " of " + h.Match
		}
		say("hook at %s: %s", at, what)
	}
	for _, name := range slices.Sorted(maps.Keys(r.out.Servers)) {
		say("MCP server %s: %s", name, serverRuns(name, r.out.Servers[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(r.out.Workflows)) {
		say("workflow %s: runs the commands and agents in %s, when a person runs it", name, r.out.Workflows[name].Path)
	}
	entries := map[string]bool{}
	for _, l := range r.leaves {
		entry := r.program(l)
		switch {
		case entry != "":
			entries[entry] = true
			say("tool %s", l.path)
		case l.runs():
			say("script %s", l.path)
		}
	}
	r.out.programs = len(entries)
	for _, f := range r.out.Skills {
		list, _ := listed(f)
		for _, s := range list {
			if len(s.Tools) > 0 {
				say("skill %s: may use %s without asking", s.Name, strings.Join(s.Tools, ", "))
			}
		}
	}
}

// program returns the entry of a folder of tools that has a file as its program; empty if none.
func (r *reading) program(l leaf) string {
	for _, f := range r.out.Tools {
		dir, err := filepath.Rel(r.Dir, f.Dir)
		if err != nil || !l.exec {
			continue
		}
		below, is := strings.CutPrefix(l.path, filepath.ToSlash(dir)+"/")
		if dir == "." {
			below, is = l.path, true
		}
		entry, name, deep := strings.Cut(below, "/")
		if is && !strings.HasPrefix(entry, ".") && !strings.HasPrefix(entry, "_") && (!deep || name == entry || name == "run") {
			return path.Join(filepath.ToSlash(dir), entry)
		}
	}
	return ""
}

// serverRuns describes the program that an MCP server would start, or its address. Values of variables are omitted,
// because they may be secrets.
func serverRuns(name string, raw json.RawMessage) string {
	data, err := json.Marshal(map[string]any{"mcpServers": map[string]any{name: raw}})
	var list []mcp.Server
	if err == nil {
		list, _, err = mcp.ReadFile("plugin.json", "", data)
	}
	if err != nil || len(list) != 1 {
		return "of an unknown type: " + string(raw)
	}
	s := list[0]
	if s.URL != "" {
		text := "connects to " + text.Address(s.URL)
		for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
			text += ", header " + name + ": " + s.Headers[name]
		}
		return text
	}
	text := "starts " + strings.Join(s.Command, " ")
	for _, more := range []struct {
		word string
		list []string
	}{{" with ", slices.Sorted(maps.Keys(s.Env))}, {", may reach ", s.Hosts}, {", may read ", s.Read}, {", may change ", s.Write}} {
		if len(more.list) > 0 {
			text += more.word + strings.Join(more.list, ", ")
		}
	}
	return text
}

// Names of the variable for the folder of a plugin.
const (
	claudeRoot = "CLAUDE_PLUGIN_ROOT"
	ownRoot    = "INSPAN_PLUGIN_ROOT"
)

// fill inserts the folder in a text for models.
func (r *reading) fill(text string) string {
	return strings.NewReplacer("${"+claudeRoot+"}", r.at, "${"+ownRoot+"}", r.at).Replace(text)
}

// filled inserts the folder in all texts of a JSON value.
func (r *reading) filled(raw json.RawMessage) json.RawMessage {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return raw
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(r.walk(v)) != nil {
		return raw
	}
	return bytes.TrimSpace(b.Bytes())
}

func (r *reading) walk(v any) any {
	switch v := v.(type) {
	case string:
		return r.fill(v)
	case []any:
		for i := range v {
			v[i] = r.walk(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = r.walk(v[k])
		}
	}
	return v
}

// rooted gives a hook the folder of the plugin. A command line finds it in a variable, so that no character of
// the path has a meaning for the shell; where the variable is not in quotes, it gets them, so that a blank does
// not split it.
func (r *reading) rooted(h hook.Config) hook.Config {
	h.PluginRoot = r.at
	h.Command = strings.ReplaceAll(h.Command, ownRoot, claudeRoot)
	for i, arg := range h.Args {
		h.Args[i] = strings.ReplaceAll(arg, ownRoot, claudeRoot)
	}
	if h.URL == "" && h.Args == nil {
		h.Command = quotedRoot(h.Command)
	}
	return h
}

// quotedRoot puts quotes around unquoted uses of the variable in a command line.
func quotedRoot(line string) string {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(line), "")
	if err != nil {
		return line // sh will report it
	}
	bare := map[int]int{} // ends by beginnings
	syntax.Walk(file, func(n syntax.Node) bool {
		if _, is := n.(*syntax.ParamExp); is {
			return false // its words are in its quotes
		}
		w, is := n.(*syntax.Word)
		if !is {
			return true
		}
		for _, p := range w.Parts {
			if v, is := p.(*syntax.ParamExp); is && v.Param != nil && v.Param.Value == claudeRoot {
				bare[int(v.Pos().Offset())] = int(v.End().Offset())
			}
		}
		return true
	})
	syntax.Walk(file, func(n syntax.Node) bool { // the text of a here-document is a word, in which quotes are literal
		if d, is := n.(*syntax.Redirect); is && d.Hdoc != nil {
			for _, p := range d.Hdoc.Parts {
				delete(bare, int(p.Pos().Offset()))
			}
		}
		return true
	})
	for _, at := range slices.Backward(slices.Sorted(maps.Keys(bare))) {
		line = line[:at] + `"` + line[at:bare[at]] + `"` + line[bare[at]:]
	}
	return line
}

// Cost estimates how many tokens the plugin adds to every prompt, with a line for each part of it. Commands add
// nothing before they are typed, and tools count only once they have been asked, which does not happen here.
func (p Plugin) Cost() (tokens int, lines []string) {
	parts := p.Parts()
	add := func(kind, name, str string) {
		n := llm.Message{Parts: llm.Say(str)}.Tokens()
		tokens += n
		lines = append(lines, fmt.Sprintf("%s %s: %s", kind, name, text.Count(n, "token")))
	}
	for _, f := range parts.Skills {
		list, _ := listed(f)
		for _, s := range list {
			if str := skill.Index([]skill.Skill{s}, 0); str != "" {
				add("skill", s.Name, str)
			}
		}
	}
	for _, a := range parts.Agents {
		add("agent", a.Name, "- "+a.Name+": "+words.OneLine(a.Description, 200)+"\n")
	}
	if len(parts.Tools) > 0 {
		lines = append(lines, "tools: unknown until they have described themselves")
	}
	if len(parts.Servers) > 0 {
		lines = append(lines, "MCP servers: unknown until they have listed their tools")
	}
	return tokens, lines
}

// Listed lists the skills of the plugin by their full names; warnings describe unusable ones.
func (p Parts) Listed() (skills []skill.Skill, warnings []string) {
	for _, f := range p.Skills {
		list, warned := listed(f)
		skills, warnings = append(skills, list...), append(warnings, warned...)
	}
	return skills, warnings
}

// Programs counts the files that could be tools. Their actual number is known once they are asked.
func (p Parts) Programs() int { return p.programs }

package plugin

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/extend/custom"
	"github.com/inspan/inspan/internal/extend/hook"
	"github.com/inspan/inspan/internal/extend/skill"
	"github.com/inspan/inspan/internal/safety/foreign"
)

const maxJSON = 1 << 20 // bytes of a file of hooks or servers

// Parts are the parts of a plugin. Names of commands and agents already have the prefix "NAME:"; those of tools and
// servers don't, because they have rules of their own. The folder of the plugin replaces ${CLAUDE_PLUGIN_ROOT} and
// ${INSPAN_PLUGIN_ROOT}; hooks find it in their environment.
type Parts struct {
	Skills   []skill.Folder
	Commands []skill.Command
	Agents   []skill.Role
	// Workflows are files by their names, with the plugin's name as prefix.
	Workflows map[string]File
	Hooks     []hook.Config
	Tools     []custom.Folder
	Servers   map[string]json.RawMessage // in the form of .mcp.json, by name
	Runs      []string                   // programs that may run, one line each without hidden characters, for the person who enables it
	Problems  []string                   // unusable parts, for people

	programs int
}

// Parts reads the plugin's parts. A broken plugin has none.
func (p Plugin) Parts() Parts {
	if p.Broken {
		return Parts{}
	}
	out, err := p.parts(p.Dir)
	if err != nil {
		return Parts{Problems: []string{p.Name + ": " + text.Line(err.Error())}}
	}
	return out
}

// reading is a plugin while its parts are read.
type reading struct {
	Plugin
	root *os.Root
	at   string // the text for the folder
	out  Parts
}

// parts reads the parts; at is the path of its folder in its texts.
func (p Plugin) parts(at string) (Parts, error) {
	root, err := keep.OpenFolder(p.Dir)
	if err != nil {
		return Parts{}, err
	}
	defer func() { _ = root.Close() }()
	r := reading{Plugin: p, root: root, at: at}
	r.skills()
	r.commands()
	r.agents()
	r.tools()
	r.workflows()
	if err := errors.Join(r.hooks(), r.servers()); err != nil {
		return Parts{}, err
	}
	r.runs()
	return r.out, nil
}

func (r *reading) problem(format string, args ...any) {
	r.out.Problems = append(r.out.Problems, text.Line(r.Name+": "+fmt.Sprintf(format, args...)))
}

func (r *reading) source() string { return "plugin " + r.Name }

// has reports whether there is a file at a path, and whether there is one below it.
func (r *reading) has(at string) (file, folder bool) {
	for _, l := range r.leaves {
		file = file || l.path == at
		folder = folder || at == "." || strings.HasPrefix(l.path, at+"/")
	}
	return file, folder
}

// places lists the places of parts of a kind: the usual folder, and those in the manifest.
func (r *reading) places(usual string, named []string) (out []string) {
	if _, folder := r.has(usual); folder {
		out = append(out, usual)
	}
	for _, at := range named {
		file, folder := r.has(at)
		switch {
		case !file && !folder:
			r.problem("%s of its plugin.json names %s, which is not there", usual, at)
		case !slices.Contains(out, at):
			out = append(out, at)
		}
	}
	return out
}

// markdown lists the markdown files at a place, with the paths that name them.
func (r *reading) markdown(place string) (out [][2]string) {
	for _, l := range r.leaves {
		below, is := l.path, place == "."
		if !is {
			below, is = strings.CutPrefix(l.path, place+"/")
		}
		if l.path == place {
			below, is = path.Base(place), true
		}
		if is && strings.HasSuffix(l.path, ".md") && !strings.HasPrefix(path.Base(l.path), ".") {
			out = append(out, [2]string{l.path, below})
		}
	}
	return out
}

func (r *reading) skills() {
	whole := map[string]int{} // by path, where it is in the list
	for _, at := range r.places("skills", r.manifest.skills) {
		if file, folder := r.has(at); file && !folder {
			r.problem("its skills in %s can't be used: it is a file, not a folder", at)
			continue
		}
		dir, only := at, ""
		if is, _ := r.has(path.Join(at, "SKILL.md")); is {
			dir, only = path.Dir(at), path.Base(at)
		}
		if at == "." && only != "" {
			r.problem("its SKILL.md is at the top: a skill needs a folder of its own")
			continue
		}
		i, is := whole[dir]
		switch {
		case !is:
			i = len(r.out.Skills)
			whole[dir] = i
			f := skill.Folder{Path: filepath.Join(r.Dir, filepath.FromSlash(dir)), Source: r.source(), Prefix: r.Name + ":"}
			if only != "" {
				f.Only = []string{only}
			}
			r.out.Skills = append(r.out.Skills, f)
		case only == "":
			r.out.Skills[i].Only = nil
		case r.out.Skills[i].Only != nil:
			r.out.Skills[i].Only = append(r.out.Skills[i].Only, only)
		}
	}
}

// listed returns the skills of a folder, with their full names.
func listed(f skill.Folder) (out []skill.Skill, warnings []string) {
	l := skill.Library{Folders: []skill.Folder{f}}
	return l.List()
}

func (r *reading) commands() {
	seen := map[string]bool{}
	for _, place := range r.places("commands", r.manifest.commands) {
		for _, file := range r.markdown(place) {
			data, err := readFile(r.root, file[0], skill.MaxText)
			var c skill.Command
			if err == nil {
				c, err = skill.ParseCommand(file[1], r.source(), data)
			}
			if err != nil {
				r.problem("%s is not a command: %v", file[0], err)
				continue
			}
			c.Name, c.Text = r.Name+":"+c.Name, r.fill(c.Text)
			if key := strings.ToLower(c.Name); !seen[key] && len(seen) < skill.MaxCommands {
				seen[key] = true
				r.out.Commands = append(r.out.Commands, c)
			}
		}
	}
}

func (r *reading) agents() {
	skills := map[string]bool{}
	for _, f := range r.out.Skills {
		list, _ := listed(f)
		for _, s := range list {
			skills[s.Name] = true
		}
	}
	seen := map[string]bool{}
	for _, place := range r.places("agents", r.manifest.agents) {
		for _, file := range r.markdown(place) {
			data, err := readFile(r.root, file[0], skill.MaxText)
			var a skill.Role
			if err == nil {
				a, err = skill.ParseRole(path.Base(file[1]), r.source(), data)
			}
			if err != nil {
				r.problem("%s is not a kind of agent: %v", file[0], err)
				continue
			}
			a.Name, a.Prompt = r.Name+":"+a.Name, r.fill(a.Prompt)
			for i, s := range a.Skills {
				if skills[r.Name+":"+s] {
					a.Skills[i] = r.Name + ":" + s
				}
			}
			if key := strings.ToLower(a.Name); !seen[key] && len(seen) < skill.MaxRoles {
				seen[key] = true
				r.out.Agents = append(r.out.Agents, a)
			}
		}
	}
}

// File is a file of the plugin.
type File struct {
	Path string // in the folder of the plugin
	Data []byte
}

// workflows reads the files; each is parsed only when it is used.
func (r *reading) workflows() {
	for _, l := range r.leaves {
		dir, name := path.Split(l.path)
		ext := path.Ext(name)
		base := strings.TrimSuffix(name, ext)
		if dir != "workflows/" || ext != ".yaml" && ext != ".js" {
			continue
		}
		data, err := readFile(r.root, l.path, maxWorkflow)
		if err != nil {
			r.problem("%s can't be used: %v", l.path, err)
			continue
		}
		if r.out.Workflows == nil {
			r.out.Workflows = map[string]File{}
		}
		r.out.Workflows[r.Name+":"+base] = File{Path: l.path, Data: data}
	}
}

// maxWorkflow is the limit for a workflow's file, in bytes.
const maxWorkflow = 256 << 10

func (r *reading) tools() {
	for _, at := range r.places("tools", r.manifest.tools) {
		if _, folder := r.has(at); !folder {
			r.problem("its tools in %s can't be used: it is a file, not a folder", at)
			continue
		}
		pinned := r.entries(at)
		r.out.Tools = append(r.out.Tools, custom.Folder{
			Dir: filepath.Join(r.Dir, filepath.FromSlash(at)), Source: r.source(),
			Trusted: func(path, digest string) bool { return digest != "" && pinned[filepath.Base(path)] == digest },
		})
	}
}

// entries returns the digests, in the form of internal/extend/custom, of the entries in a folder of tools, by
// name, so that nothing runs that was not installed.
func (r *reading) entries(dir string) map[string]string {
	lines, out := map[string][]string{}, map[string]string{}
	leaves := slices.Clone(r.leaves) // in the order of a walk through folders
	slices.SortStableFunc(leaves, func(a, b leaf) int {
		return slices.Compare(strings.Split(a.path, "/"), strings.Split(b.path, "/"))
	})
	for _, l := range leaves {
		below, is := strings.CutPrefix(l.path, dir+"/")
		if dir == "." {
			below, is = l.path, true
		}
		entry, rest, deep := strings.Cut(below, "/")
		switch {
		case !is:
		case deep:
			lines[entry] = append(lines[entry], fmt.Sprintf("file %q %q %s\n", rest, "", l.sum))
		default:
			out[entry] = l.sum
		}
	}
	for entry, list := range lines {
		d := sha256.Sum256([]byte(strings.Join(list, "")))
		out[entry] = hex.EncodeToString(d[:])
	}
	return out
}

// contents returns the contents of JSON files and a manifest, with their origins.
func (r *reading) contents(usual string, named []part) (texts [][]byte, from []string, err error) {
	if is, _ := r.has(usual); is && !slices.ContainsFunc(named, func(p part) bool { return p.path == usual }) {
		named = slices.Concat([]part{{path: usual}}, named)
	}
	for _, n := range named {
		data, at := []byte(n.inline), n.path
		if data == nil {
			if data, err = readFile(r.root, n.path, maxJSON); err != nil {
				return nil, nil, fmt.Errorf("%s: %w", n.path, err)
			}
		} else {
			at = "plugin.json"
		}
		if data, err = foreign.Plain(data); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", at, err)
		}
		texts, from = append(texts, data), append(from, at)
	}
	return texts, from, nil
}

func (r *reading) hooks() error {
	texts, from, err := r.contents("hooks/hooks.json", r.manifest.hooks)
	if err != nil {
		return err
	}
	for i, data := range texts {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(data, &fields); err != nil {
			return fmt.Errorf("%s: its hooks can't be read: %w", from[i], err)
		}
		if fields["hooks"] == nil && from[i] == "plugin.json" { // which may have the events at the top level
			data = slices.Concat([]byte(`{"hooks":`), data, []byte("}"))
		}
		list, notes, err := hook.ReadClaude(data, r.source())
		if err != nil {
			return fmt.Errorf("%s: %w", from[i], err)
		}
		for _, note := range notes {
			r.out.Problems = append(r.out.Problems, text.Line(note))
		}
		for _, h := range list {
			r.out.Hooks = append(r.out.Hooks, r.rooted(h))
		}
	}
	return nil
}

func (r *reading) servers() error {
	texts, from, err := r.contents(".mcp.json", r.manifest.servers)
	if err != nil {
		return err
	}
	for i, data := range texts {
		var file map[string]json.RawMessage
		err := json.Unmarshal(data, &file)
		if inner := file["mcpServers"]; err == nil && inner != nil {
			file = nil
			err = json.Unmarshal(inner, &file)
		}
		if err != nil {
			return fmt.Errorf("%s: its servers can't be read: %w", from[i], err)
		}
		for _, name := range slices.Sorted(maps.Keys(file)) {
			if _, is := r.out.Servers[name]; is {
				r.problem("its server %s is there twice; the first counts", name)
				continue
			}
			if r.out.Servers == nil {
				r.out.Servers = map[string]json.RawMessage{}
			}
			r.out.Servers[name] = r.filled(file[name])
		}
	}
	return nil
}

// reach lists everything in a plugin that could run or could give rights. Text for a model that no program uses
// is omitted.
func (p Plugin) reach() string {
	parts, err := p.parts("/") // wherever it is
	if err != nil {
		return "unknown: " + err.Error()
	}
	hooks, err1 := json.Marshal(parts.Hooks)
	servers, err2 := json.Marshal(parts.Servers)
	if err := errors.Join(err1, err2); err != nil {
		return "unknown: " + err.Error()
	}
	d := sha256.New()
	fmt.Fprintf(d, "%s\n%s\n%q\n%q\n", hooks, servers, parts.Runs, p.manifest.tools)
	for _, l := range p.leaves {
		if named := strings.Contains(string(hooks)+string(servers), path.Base(l.path)); named || !p.prose(l) {
			fmt.Fprintf(d, "%q %t %s\n", l.path, l.exec, l.sum)
		}
	}
	return hex.EncodeToString(d.Sum(nil))
}

// prose reports whether a file is text for people and models.
func (p Plugin) prose(l leaf) bool {
	if l.runs() || strings.HasPrefix(l.path, "tools/") || slices.ContainsFunc(p.manifest.tools,
		func(at string) bool { return at == "." || strings.HasPrefix(l.path, at+"/") }) {
		return false
	}
	switch ext := strings.ToLower(path.Ext(l.path)); {
	case ext == ".md" || ext == ".txt" || slices.Contains(manifests(), l.path):
		return true
	case ext == "":
		return slices.Contains([]string{"LICENSE", "README", "NOTICE", "CHANGELOG", "AUTHORS"}, path.Base(l.path))
	}
	return l.path == ".gitignore" || l.path == ".gitattributes"
}

package equipment

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/extend/skill"
	"github.com/inspan/inspan/internal/safety/consent"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/workflow"
)

// Workflow is a file that may contain a workflow.
type Workflow struct {
	Name   string // that runs it: that of the file, prefixed with that of its plugin
	Source string // "project", "user", the plugin, or "built in"
	File   string
	Data   []byte
	Why    string   // why it can't be run; empty means no known obstacle
	Hides  []string // sources of other workflows with this name
}

// mostWorkflow bounds a workflow's file, and mostWorkflows the workflows per folder.
const (
	mostWorkflow  = 256 << 10
	mostWorkflows = 200
)

// Workflows lists the workflows for a workspace, "" for any: its own, the user's, those of plugins, and
// built-in ones. The first of two with the same name counts. One of the workspace runs only if a person trusts
// its exact content; sum is as in [consent.Store.ReviewRunning].
func (s *Set) Workflows(root, sum string) []Workflow {
	var list []Workflow
	if root != "" {
		list = s.trusted(root, sum, workflowsIn(filepath.Join(root, ".inspan", "workflows"), skill.FromProject))
	}
	for _, f := range s.own("workflows") {
		list = append(list, workflowsIn(f.Path, f.Source)...)
	}
	for _, p := range s.Plugins() {
		for _, name := range slices.Sorted(maps.Keys(p.Workflows)) {
			f := p.Workflows[name]
			w := Workflow{Name: name, Source: p.Name, File: path.Base(f.Path), Data: f.Data}
			if err := p.Check(); err != nil {
				w.Why = err.Error()
			}
			list = append(list, w)
		}
	}
	for name, data := range workflow.BuiltIn() {
		list = append(list, Workflow{Name: name, Source: "built in", File: name + ".yaml", Data: data})
	}
	var first []Workflow
	for _, w := range list {
		if i := slices.IndexFunc(first, func(o Workflow) bool { return o.Name == w.Name }); i >= 0 {
			first[i].Hides = append(first[i].Hides, w.Source)
			continue
		}
		first = append(first, w)
	}
	return first
}

// workflowsIn reads the files of a folder.
func workflowsIn(dir, source string) (out []Workflow) {
	root, err := keep.OpenFolder(dir)
	if err != nil {
		return nil
	}
	defer func() { _ = root.Close() }()
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil
	}
	for _, e := range entries[:min(len(entries), mostWorkflows)] {
		name, ok := workflowName(e.Name())
		if !ok {
			continue
		}
		w := Workflow{Name: name, Source: source, File: filepath.Join(dir, e.Name())}
		if w.Data, err = keep.ReadFile(root, e.Name(), mostWorkflow); err != nil {
			w.Why = err.Error()
		}
		out = append(out, w)
	}
	return out
}

// trusted marks workflows of the workspace that may not run. It compares the bytes that were read.
func (s *Set) trusted(root, sum string, list []Workflow) []Workflow {
	if len(list) == 0 {
		return nil
	}
	review, err := s.Consent.ReviewRunning(root, sum)
	for i := range list {
		at := ".inspan/workflows/" + filepath.Base(list[i].File)
		digest := keep.SHA256(list[i].Data)
		ok := err == nil && slices.ContainsFunc(review.Trusted, func(t consent.Item) bool {
			return t.Path == at && t.Digest == digest
		})
		if !ok && list[i].Why == "" {
			list[i].Why = at + " is not trusted; 'inspan trust' shows it and asks"
		}
	}
	return list
}

// settled returns the reason why a file that a person names by its path may not run. Files that inspan finds in the
// workspace by itself need trust, however they are named.
func settled(root, name string, list []Workflow) error {
	file, err := filepath.EvalSymlinks(name)
	if err != nil || root == "" {
		return err
	}
	if file, err = filepath.Abs(file); err != nil {
		return err
	}
	rel, err := filepath.Rel(filepath.Join(root, ".inspan"), file)
	if err != nil || !filepath.IsLocal(rel) {
		return nil //nolint:nilerr // it is elsewhere
	}
	i := slices.IndexFunc(list, func(w Workflow) bool { return w.File == file })
	if i < 0 {
		return fmt.Errorf("%s: in .inspan, only .yaml and .js files of the folder workflows can run", name)
	}
	if list[i].Why != "" {
		return errors.New(list[i].Why)
	}
	return nil
}

// Workflow finds a workflow by its name, or reads the .yaml or .js file that a person names by a path, with
// everything that it uses, and checks it. To run it, all of that must be trusted.
func (s *Set) Workflow(root, sum, name string, run bool) (*workflow.Workflow, error) {
	list := s.Workflows(root, sum)
	find := func(name string) (string, []byte, error) {
		i := slices.IndexFunc(list, func(w Workflow) bool { return w.Name == name })
		switch {
		case i < 0:
			var names []string
			for _, w := range list {
				names = append(names, w.Name)
			}
			err := fmt.Errorf("no workflow %q%s; see 'inspan workflow list'", name, words.DidYouMean(name, names))
			return "", nil, words.Misuse{Err: err}
		case list[i].Why != "" && (run || len(list[i].Data) == 0):
			return "", nil, errors.New(list[i].Why)
		}
		return list[i].File, list[i].Data, nil
	}
	if _, file := workflowName(name); file || strings.HasSuffix(name, ".yml") {
		data, err := keep.Read(name)
		if err != nil {
			return nil, err
		}
		if err := settled(root, name, list); err != nil && run {
			return nil, err
		}
		return workflow.Parse(name, data, find)
	}
	file, data, err := find(name)
	if err != nil {
		return nil, err
	}
	return workflow.Parse(file, data, find)
}

// workflowName returns the name by which the workflow in a file is run; ok is false if no workflow can be in a file
// with that name.
func workflowName(file string) (name string, ok bool) {
	for _, ext := range []string{".yaml", ".js"} {
		if name, ok = strings.CutSuffix(filepath.Base(file), ext); ok {
			return name, name != "" && !strings.HasPrefix(name, ".")
		}
	}
	return "", false
}

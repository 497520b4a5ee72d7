package managed

import (
	"cmp"
	"context"
	_ "embed" // the text of the tool
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/service/server"
	"github.com/inspan/inspan/tool"
)

//go:embed memory_store.md
var memoryDoc string

// memoryRoot is the path of memory stores for clients and agents. There is no such folder: an agent has a tool
// for it, so that read-only stores stay read-only, and each change makes a version at once.
const memoryRoot = "/mnt/memory/"

// memoryArgs are the arguments of the tool.
type memoryArgs struct {
	Command string `json:"command" enum:"list,read,write,edit,move,delete"`
	Path    string `json:"path" jsonschema:"such as /mnt/memory/STORE/projects/a.md"`
	Content string `json:"content,omitempty" jsonschema:"for write: the whole text"`
	Old     string `json:"old_text,omitempty" jsonschema:"for edit"`
	New     string `json:"new_text,omitempty" jsonschema:"for edit"`
	To      string `json:"to,omitempty" jsonschema:"for move: the new path"`
	Version string `json:"version,omitempty" jsonschema:"for write, move and delete of a memory that is there: its version, as read has told it"`
}

// memoryTool is the tool of one session. It has no state: the model names the version of a memory that it has
// read.
type memoryTool struct {
	visit  *server.Visit
	task   string
	stores []resource
}

func (t *memoryTool) tool() tool.Tool {
	out := tool.New("memory_store", strings.TrimSpace(memoryDoc), func(ctx context.Context, _ *tool.Call, in memoryArgs) (tool.Result, error) {
		text, err := t.run(ctx, in)
		if err != nil {
			return tool.Result{}, err
		}
		return tool.Text(text), nil
	})
	out.Effects = t.effects
	return out
}

// effects returns the effects on files at the path of the memory in the workspace, so that modes and rules for
// files also apply to memories.
func (t *memoryTool) effects(_ context.Context, c *tool.Call) ([]tool.Effect, error) {
	in, err := tool.Args[memoryArgs](c)
	if err != nil {
		return nil, err
	}
	paths, kind := []string{in.Path}, tool.Write
	switch in.Command {
	case "list", "read":
		kind = tool.Read
	case "move":
		paths = append(paths, in.To)
	}
	var out []tool.Effect
	for _, path := range paths {
		r, _, err := t.find(path)
		if err == nil && kind == tool.Write && r.Access == readOnly {
			err = fmt.Errorf("%s is read-only", r.MountPath)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", tool.ErrInvalid, err)
		}
		out = append(out, tool.Effect{Kind: kind, Path: filepath.Join(c.Env.Root, filepath.FromSlash(path))})
	}
	return out, nil
}

// find returns the store of a path, and the path in it.
func (t *memoryTool) find(path string) (resource, string, error) {
	var names []string
	for _, r := range t.stores {
		if rest, in := strings.CutPrefix(path, r.MountPath); in && (rest == "" || rest[0] == '/') {
			return r, rest, nil
		}
		names = append(names, r.MountPath)
	}
	return resource{}, "", fmt.Errorf("%q is in no memory store; there are %s", path, strings.Join(names, ", "))
}

// run makes a call.
func (t *memoryTool) run(ctx context.Context, in memoryArgs) (string, error) {
	r, path, err := t.find(in.Path)
	if err != nil {
		return "", err
	}
	v, err := t.visit.For(ctx, t.task, "")
	if err != nil {
		return "", err
	}
	m := memories{v, r.Store, &actor{Type: "session_actor", Session: t.task}}
	if _, err := v.Object(ofMemoryStore, r.Store); err != nil {
		return "", fmt.Errorf("%s is gone: its store was deleted", r.MountPath)
	}
	all := readMemories(v.Objects(ofMemory(r.Store)))
	if in.Command == "list" {
		return directory(all, r.MountPath, path), nil
	}
	k, there := at(all, path)
	if in.Command == "write" && !there {
		if _, err := m.createMemory(path, in.Content, nil); err != nil {
			return "", err
		}
		return "Created: " + told(keep.SHA256([]byte(in.Content))), nil
	}
	if !there {
		return "", fmt.Errorf("there is no memory at %s", in.Path)
	}
	return t.on(m, k, in)
}

const versionDigits = 12 // of the digest of a memory that a model gets

// told returns the version of a memory as a model sees it.
func told(digest string) string { return "version " + digest[:versionDigits] }

// on makes a call on an existing memory.
func (t *memoryTool) on(m memories, k memory, in memoryArgs) (string, error) {
	switch in.Command {
	case "read":
		k, text, err := m.text(k.ID)
		if err != nil {
			return "", err
		}
		return told(k.Digest) + "\n\n" + cmp.Or(text, "(it is empty)"), nil
	case "edit":
		return edited(m, k.ID, in)
	}
	switch {
	case in.Version == "":
		return "", fmt.Errorf("there is a memory at %s; read it, and say its version", in.Path)
	case k.Digest[:versionDigits] != in.Version:
		return "", fmt.Errorf("the memory has changed: it has %s; read it again", told(k.Digest))
	}
	switch in.Command {
	case "write":
		return "Written: " + told(keep.SHA256([]byte(in.Content))), m.change(k.ID, &in.Content, nil, k.Digest)
	case "delete":
		return "Deleted.", m.remove(k.ID, k.Digest)
	}
	to, path, err := t.find(in.To)
	if err == nil && to.Store != m.store {
		err = errors.New("a memory stays in its store")
	}
	if err == nil {
		err = m.change(k.ID, nil, &path, k.Digest)
	}
	return "Moved.", err
}

// edited changes the current text of a memory, even if it has changed meanwhile.
func edited(m memories, id string, in memoryArgs) (string, error) {
	for {
		k, text, err := m.text(id)
		if err != nil {
			return "", err
		}
		if n := strings.Count(text, in.Old); in.Old == "" || n != 1 {
			return "", fmt.Errorf("old_text must be in the memory exactly once, and is there %d times", n)
		}
		next := strings.Replace(text, in.Old, in.New, 1)
		if err = m.change(id, &next, nil, k.Digest); !errors.Is(err, errChanged) {
			return "Edited: " + told(keep.SHA256([]byte(next))), err
		}
	}
}

// directory lists the memories of a store below a path.
func directory(all []memory, mount, path string) string {
	var lines []string
	for _, k := range all {
		if rest, in := strings.CutPrefix(k.Path, strings.TrimSuffix(path, "/")); in && (rest == "" || rest[0] == '/') {
			lines = append(lines, fmt.Sprintf("%s%s %d bytes", mount, k.Path, k.Size))
		}
	}
	if len(lines) == 0 {
		return "There is no memory."
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// prompted returns the prompt's text about memory stores.
func prompted(stores []resource) string {
	var b strings.Builder
	b.WriteString("# Memory stores\n\nWhat is in them outlasts this session. Use the tool memory_store.\n")
	for _, r := range stores {
		access := "read and write"
		if r.Access == readOnly {
			access = "read-only"
		}
		fmt.Fprintf(&b, "\n- %s (%s): %s", r.MountPath, access, cmp.Or(r.Description, r.Name))
		if r.Instructions != nil {
			fmt.Fprintf(&b, "\n  %s", strings.ReplaceAll(*r.Instructions, "\n", "\n  "))
		}
	}
	return b.String()
}

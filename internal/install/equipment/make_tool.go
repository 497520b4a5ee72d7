package equipment

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/delegate/script"
	"github.com/inspan/inspan/internal/extend/custom"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/tool"
)

//go:embed make_tool.md
var makeToolDoc string

// MakeTool is the name of the tool that lets a model write tools.
const MakeTool = "make_tool"

type makeArgs struct {
	Name        string         `json:"name" jsonschema:"letters, digits, _ and -"`
	Description string         `json:"description" jsonschema:"what it does and when to use it"`
	Kind        string         `json:"kind,omitempty" enum:"program,script" jsonschema:"program if not given"`
	Schema      map[string]any `json:"schema" jsonschema:"JSON Schema of the arguments, of type object"`
	Effects     *makeEffects   `json:"effects,omitempty" jsonschema:"if not given, it only reads the workspace"`
	Seconds     int            `json:"timeout_seconds,omitempty" jsonschema:"60 if not given"`
	Code        string         `json:"code"`
	Tests       []makeTest     `json:"tests" jsonschema:"1 to 20 calls"`
}

type makeEffects struct {
	Read     bool     `json:"read,omitempty" jsonschema:"it reads the workspace"`
	Write    bool     `json:"write,omitempty" jsonschema:"it changes the workspace"`
	Network  []string `json:"network,omitempty" jsonschema:"hosts that it talks to"`
	External string   `json:"external,omitempty" jsonschema:"its other effects, after: it would"`
}

type makeTest struct {
	Args   map[string]any    `json:"args"`
	Expect string            `json:"expect" jsonschema:"what it prints"`
	Calls  []custom.TestCall `json:"calls,omitempty" jsonschema:"of a script: what its calls bring, as no tool is called"`
}

// draft returns the draft that the model wrote.
func (in makeArgs) draft() (custom.Draft, error) {
	d := custom.Draft{Kind: in.Kind, Name: in.Name, Description: in.Description, Seconds: in.Seconds, Code: in.Code}
	if d.Kind == "" {
		d.Kind = custom.KindProgram
	}
	var err error
	if d.Schema, err = json.Marshal(in.Schema); err == nil && in.Effects != nil {
		d.Effects, err = json.Marshal(in.Effects)
	}
	for _, t := range in.Tests {
		args, failed := json.Marshal(t.Args)
		err = errors.Join(err, failed)
		d.Tests = append(d.Tests, custom.Test{Args: args, Expect: t.Expect, Calls: t.Calls})
	}
	return d, errors.Join(err, d.Check())
}

// Maker returns the tool that lets a model write tools, for a session with the tools in list. Without a sandbox
// there is none. Scripts says whether the model may also write scripts.
func (s *Set) Maker(env tool.Env, list []tool.Tool, scripts bool) []tool.Tool {
	if env.Procs == nil || !env.Walls.Workspace || !env.Walls.Read {
		return nil
	}
	taken := Names()
	for _, t := range list {
		taken = append(taken, t.Name)
	}
	m := maker{set: s, taken: taken, scripts: scripts}
	t := tool.New(MakeTool, strings.TrimSpace(makeToolDoc), m.run)
	t.Effects = func(_ context.Context, c *tool.Call) ([]tool.Effect, error) {
		d, err := m.read(c)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", tool.ErrInvalid, err)
		}
		return []tool.Effect{{Kind: tool.Execute, Text: "the tests of the new tool " + d.Name + ", in an empty folder"}}, nil
	}
	t.Preview = func(_ context.Context, c *tool.Call) (string, error) {
		d, err := m.read(c)
		return d.Code, err
	}
	return []tool.Tool{t}
}

// maker creates tools.
type maker struct {
	set     *Set
	taken   []string
	scripts bool
}

func (m maker) read(c *tool.Call) (custom.Draft, error) {
	in, err := tool.Args[makeArgs](c)
	if err != nil {
		return custom.Draft{}, err
	}
	d, err := in.draft()
	if err != nil {
		return d, err
	}
	if slices.ContainsFunc(m.taken, func(name string) bool { return strings.EqualFold(name, d.Name) }) {
		return d, fmt.Errorf("%s is the name of another tool: take another", d.Name)
	}
	if d.Kind == custom.KindScript && !m.scripts {
		return d, errNoScripts
	}
	return d, nil
}

// run tests a draft and proposes it if its tests pass.
func (m maker) run(ctx context.Context, c *tool.Call, _ makeArgs) (tool.Result, error) {
	d, err := m.read(c)
	if err != nil {
		return tool.Result{}, err
	}
	data, err := json.Marshal(d)
	if err != nil {
		return tool.Result{}, err
	}
	if c.Env.Clean != nil {
		if clean, err := io.ReadAll(c.Env.Clean(bytes.NewReader(data))); err != nil || !bytes.Equal(clean, data) {
			return tool.Result{}, errors.New("the tool holds a secret, so it is not kept: have it take that as an argument, or read it " +
				"from a file of the workspace")
		}
	}
	if c.Env.Blobs == nil {
		return tool.Result{}, errors.New("this session can keep no tools")
	}
	trials, err := m.set.Try(ctx, d)
	if err != nil {
		return tool.Result{}, err
	}
	if !custom.Passed(trials) {
		return tool.Text(custom.DescribeTrials(trials)), errors.New("the tool was not made: its tests do not pass")
	}
	blob, err := c.Env.Blobs.Put(ctx, bytes.NewReader(data))
	if err != nil {
		return tool.Result{}, fmt.Errorf("keep the tool: %w", err)
	}
	out := tool.Text(custom.DescribeTrials(trials) + d.Name + " is a tool of this session from your next request on.")
	out.Proposal = &tool.Proposal{Name: d.Name, Blob: blob}
	return out, nil
}

// Try runs the tests of a draft in a sandbox around a temporary folder.
func (s *Set) Try(ctx context.Context, d custom.Draft) (trials []custom.Trial, err error) {
	fresh, err := os.MkdirTemp("", "inspan-trial-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(fresh)) }()
	env, err := s.Env(keep.Real(fresh))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, env.Close()) }()
	if d.Kind == custom.KindScript {
		return d.Try(ctx, env, s.scripted(d))
	}
	in, dir, err := s.laid(d)
	if err != nil {
		return nil, err
	}
	own, err := in.Trial(dir, env.Walls)
	if err != nil {
		return nil, err
	}
	return d.Try(ctx, env, own)
}

// mostScripts bounds the calls above a call of a script, so that scripts that call themselves or each other end
// soon: each level multiplies the calls by up to a thousand.
const mostScripts = 2

// scripted returns the tool of a script. Each call that it makes is judged like one of the model.
func (s *Set) scripted(d custom.Draft) tool.Tool {
	return tool.Tool{
		Name: d.Name, Doc: d.Description, Schema: d.Schema, Calls: true,
		Run: func(ctx context.Context, c *tool.Call) (tool.Result, error) {
			if loop.Depth(c.ID) >= mostScripts {
				return tool.Result{}, fmt.Errorf("%s is a script, and there are %d calls above it: call it from fewer", d.Name, mostScripts)
			}
			return script.Perform(ctx, c, s.Self, d.Code, c.Args, script.Limits{})
		},
	}
}

// laid writes a draft of a program to a folder of its own. The folder can be removed at any time: the blob of
// the draft is authoritative, and each call checks the digest.
func (s *Set) laid(d custom.Draft) (in custom.Installed, dir string, err error) {
	if in, err = d.Install(nil); err != nil {
		return in, "", err
	}
	dir = filepath.Join(s.WrittenDir(), in.Digest())
	if err := keep.MakeDir(dir); err != nil {
		return in, "", err
	}
	err = in.Write(dir, ".")
	if errors.Is(err, fs.ErrExist) { // changed, or written by another process
		if err = os.RemoveAll(filepath.Join(dir, in.Name)); err == nil {
			err = in.Write(dir, ".")
		}
	}
	return in, dir, err
}

// Written returns a function that makes tools from the proposals of a session's model, whose blobs are given,
// see [inspan.Agent]. Content from a log gets the same checks as content from a model. Scripts is as for
// [Set.Maker].
func (s *Set) Written(
	blobs tool.Blobs, wrap func([]tool.Tool) []tool.Tool, scripts bool,
) func(context.Context, tool.Proposal) (tool.Tool, error) {
	return func(ctx context.Context, p tool.Proposal) (tool.Tool, error) {
		d, err := Drafted(ctx, blobs, p)
		if err != nil {
			return tool.Tool{}, err
		}
		if slices.ContainsFunc(Names(), func(name string) bool { return strings.EqualFold(name, d.Name) }) {
			return tool.Tool{}, errors.New("it has the name of a built-in tool")
		}
		t, err := s.toolOf(d, scripts)
		if err != nil {
			return tool.Tool{}, err
		}
		return wrap([]tool.Tool{t})[0], nil
	}
}

func (s *Set) toolOf(d custom.Draft, scripts bool) (tool.Tool, error) {
	switch {
	case d.Kind == custom.KindScript && !scripts:
		return tool.Tool{}, errNoScripts
	case d.Kind == custom.KindScript:
		return s.scripted(d), nil
	}
	in, dir, err := s.laid(d)
	if err != nil {
		return tool.Tool{}, err
	}
	return in.Tool(dir)
}

var errNoScripts = errors.New("scripts are switched off here, by the lever script: write a program")

// Drafted reads the draft of a proposal from the blobs of its session.
func Drafted(ctx context.Context, blobs tool.Blobs, p tool.Proposal) (custom.Draft, error) {
	r, err := blobs.Get(ctx, p.Blob)
	if err != nil {
		return custom.Draft{}, err
	}
	defer func() { _ = r.Close() }()
	data, err := io.ReadAll(io.LimitReader(r, custom.MaxDraft+1))
	if err != nil {
		return custom.Draft{}, err
	}
	if sum := sha256.Sum256(data); keep.BlobName(sum[:]) != p.Blob {
		return custom.Draft{}, errors.New("its content has changed since it was kept")
	}
	d, err := custom.ReadDraft(data)
	if err == nil && d.Name != p.Name {
		err = fmt.Errorf("it calls itself %s", d.Name)
	}
	return d, err
}

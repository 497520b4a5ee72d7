package permission

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/extend/tools"
	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/internal/safety/policy"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// Bounds on the content of files that a message names.
const (
	mostNamed  = 8
	namedBytes = 16 << 10 // per file
	namedTotal = 32 << 10 // for all files
)

// Named reads the text files and images that a message names as @path, and returns their content for the session;
// without parts there are none. It reads only what read_file could read without asking in mode ask, and leaves other
// files to the model.
func (s *Set) Named(ctx context.Context, root, message string) (event.Said, error) {
	names := named(root, message)
	if len(names) == 0 {
		return event.Said{}, nil
	}
	b, err := s.bench(root, Line{})
	if err != nil {
		return event.Said{}, err
	}
	defer func() { _ = b.env.Close() }()
	var read []string
	var content strings.Builder
	said := event.Said{By: words.NamedFiles, Origin: event.OriginHarness}
	var images llm.Parts
	for _, name := range names {
		text, image, private := b.read(ctx, name)
		room := min(namedBytes, namedTotal-content.Len())
		if text == "" || room <= 0 {
			continue
		}
		content.WriteString(words.File(name, text, room))
		read, said.Private = append(read, name), said.Private || private
		images = append(images, image...)
	}
	if len(read) > 0 {
		said.Parts = append(llm.Say(words.Named(read, content.String())), images...)
	}
	return said, ctx.Err()
}

// Refused returns an error if a rule denies effects that a person requested directly. If a rule or the mode
// would ask, the request counts as approval.
func (s *Set) Refused(env tool.Env, rules []inspan.Rule, effects []tool.Effect) error {
	known, err := parsed(rules)
	if err != nil {
		return err
	}
	p := policy.Policy{Map: s.Places(env.Root), Rules: known}
	v := verdict(p.Findings(&tool.Call{Name: "web_fetch", Env: env, Cwd: env.Root, Mode: tool.ModeAsk}, effects))
	if v.Action == tool.Deny {
		return fmt.Errorf("%s: %s", v.By, v.Reason)
	}
	return nil
}

// named returns the files that a message names, without duplicates. Punctuation at the end of a name is
// dropped, unless a file has that name.
func named(root, message string) (names []string) {
	for _, word := range strings.Fields(message) {
		name, marked := strings.CutPrefix(word, "@")
		if !marked {
			continue
		}
		if !isFile(root, name) {
			name = strings.TrimRight(name, ".,;:!?)\"'")
		}
		if isFile(root, name) && !slices.Contains(names, name) && len(names) < mostNamed {
			names = append(names, name)
		}
	}
	return names
}

func isFile(root, name string) bool {
	if !filepath.IsAbs(name) {
		name = filepath.Join(root, name)
	}
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// bench judges calls in a workspace without a session.
type bench struct {
	policy policy.Policy
	env    tool.Env
}

func (s *Set) bench(root string, l Line) (b bench, err error) {
	rules, err := s.RulesFor(root, l)
	if err != nil {
		return b, err
	}
	if b.policy.Rules, err = parsed(rules); err != nil {
		return b, err
	}
	if b.env, err = s.EnvOf(root, nil, nil, rules, "", nil); err != nil {
		return b, err
	}
	b.policy.Map = s.Places(b.env.Root)
	if looker, ok := b.env.Files.(places.Looker); ok {
		b.policy.Map.Look = looker.Look
	}
	return b, nil
}

// call makes a call of a built-in tool, and returns how it is judged.
func (b bench) call(
	ctx context.Context, name string, in map[string]string, mode tool.Mode,
) (of tool.Tool, call *tool.Call, findings []policy.Finding, err error) {
	args, err := json.Marshal(in)
	if err != nil {
		return of, nil, nil, err
	}
	call = &tool.Call{ID: "explain", Name: name, Args: args, Env: b.env, Cwd: b.env.Root, Mode: mode}
	core := tools.Core(&tools.Shell{Home: keep.Home()}, "")
	of = core[slices.IndexFunc(core, func(t tool.Tool) bool { return t.Name == name })]
	effects, err := of.Effects(ctx, call)
	if err != nil {
		return of, nil, nil, err
	}
	return of, call, b.policy.Findings(call, effects), nil
}

// verdict combines findings into one verdict.
func verdict(findings []policy.Finding) tool.Verdict {
	verdicts := []tool.Verdict{}
	for _, f := range findings {
		verdicts = append(verdicts, f.Verdict)
	}
	return policy.Combine(verdicts)
}

// read reads a file as read_file does: its text, or what it says about an image, and the image. The text is empty
// if reading is not allowed or it is another file.
func (b bench) read(ctx context.Context, name string) (text string, image llm.Parts, private bool) {
	of, call, findings, err := b.call(ctx, "read_file", map[string]string{"path": name}, tool.ModeAsk)
	if err != nil || verdict(findings).Action != tool.Allow {
		return "", nil, false
	}
	res, err := of.Run(ctx, call)
	if err != nil {
		return "", nil, false
	}
	for _, p := range res.Parts {
		switch p.(type) {
		case llm.Text:
		case llm.Image:
			image = append(image, p)
		default:
			return "", nil, false
		}
	}
	return res.Parts.Text(), image, b.policy.Private(policy.Judged(findings))
}

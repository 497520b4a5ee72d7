package equipment

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/world/forge"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

//go:embed read_issue.md
var readIssueDoc string

const (
	usualIssue = 100_000 // bytes
	mostIssue  = 150_000
	partIssue  = 28_000 // per part of a result; longer parts would be cut in the middle
)

type issueArgs struct {
	Issue string `json:"issue" jsonschema:"OWNER/REPO#NUMBER, GROUP/PROJECT!NUMBER (merge request), both without a path here, or an address"`
	From  int    `json:"from,omitempty" jsonschema:"byte to go on from"`
	Max   int    `json:"max_bytes,omitempty" jsonschema:"bytes of text; 100000 if not given, at most 150000"`
}

// Tools returns the further tools for workflow steps. An agent gets them only if its order names them: see
// [Ordered].
func (f *Forges) Tools() []tool.Tool {
	t := tool.New("read_issue", strings.TrimSpace(readIssueDoc), f.read)
	t.Effects = func(ctx context.Context, c *tool.Call) ([]tool.Effect, error) {
		in, err := tool.Args[issueArgs](c)
		if err != nil {
			return nil, err
		}
		site, _, err := f.named(ctx, in.Issue)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", tool.ErrInvalid, err)
		}
		host, _, _ := strings.Cut(site.Host(), ":")
		return []tool.Effect{{Kind: tool.Network, Text: host}}, nil
	}
	return []tool.Tool{t}
}

// Ordered removes tools from a list that an agent gets only if its order names them.
func Ordered(list []tool.Tool, wants func(name string) bool) []tool.Tool {
	return slices.DeleteFunc(slices.Clone(list), func(t tool.Tool) bool { return t.Name == "read_issue" && !wants(t.Name) })
}

// read runs the tool.
func (f *Forges) read(ctx context.Context, _ *tool.Call, in issueArgs) (tool.Result, error) {
	if in.From < 0 || in.Max < 0 || in.Max > mostIssue {
		return tool.Result{}, fmt.Errorf("from can't be negative, and max_bytes is at most %d", mostIssue)
	}
	site, n, err := f.named(ctx, in.Issue)
	if err != nil {
		return tool.Result{}, err
	}
	says, err := site.Read(ctx, n)
	if err != nil {
		return tool.Result{}, err
	}
	if in.From >= len(says) && in.From > 0 {
		return tool.Result{}, errors.New("it ends before that")
	}
	most := in.Max
	if most == 0 {
		most = usualIssue
	}
	rest := strings.ToValidUTF8(says[in.From:], "")
	shown := text.Head(rest, most)
	if len(shown) < len(rest) {
		shown += fmt.Sprintf("\n[%d bytes more; go on with from: %d]", len(rest)-len(shown), in.From+len(shown))
	}
	return tool.Result{Untrusted: true, Parts: inParts(shown)}, nil
}

// inParts splits a text into parts that each fit into a result.
func inParts(all string) (out llm.Parts) {
	for all != "" {
		part := text.Head(all, partIssue)
		out, all = append(out, llm.Text{Text: part}), all[len(part):]
	}
	return out
}

// named returns the site of an issue name, and the full name with its project.
func (f *Forges) named(ctx context.Context, issue string) (forge.Site, forge.Name, error) {
	n, err := forge.Parse(strings.TrimSpace(issue))
	if err != nil {
		return forge.Site{}, n, err
	}
	origin, err := f.origin(ctx)
	if err != nil && n.Project == "" {
		return forge.Site{}, n, err
	}
	return f.sites.Of(n, origin)
}

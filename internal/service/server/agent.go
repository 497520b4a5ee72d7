package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/internal/extend/mcp"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/tool"
)

// MCPServer is an MCP server that the agent of a task may use.
type MCPServer struct {
	Name string `json:"name"`
	URL  string `json:"url" jsonschema:"address; https, but for servers on the machine itself, which only identities without a tenant can name"`
}

// ClientTool is a tool that the client runs: a call of it is an open question, and the model gets the answer as
// the result.
type ClientTool struct {
	Name        string          `json:"name" jsonschema:"1 to 64 letters, digits, dashes and underscores"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"input_schema" jsonschema:"JSON schema of the arguments, of type object"`
}

// checkAgent reports what is wrong with the agent's settings in a spec of a tenant. Tenants can't make the
// server talk to its own machine. Installed are the names of the tools other than the built-in ones and those
// of the spec.
func (p Spec) checkAgent(tenant string, installed []string) error {
	o := app.Options{Ask: p.Ask, Deny: p.Deny}
	for _, made := range p.Tools {
		o.Tools = append(o.Tools, made.tool())
	}
	err := o.Check()
	if err == nil {
		err = o.CheckNames(installed)
	}
	if err != nil {
		field, what, _ := strings.Cut(strings.TrimPrefix(err.Error(), "--"), ": ")
		return Wrong(field, what, "rules such as bash or write(docs/**)")
	}
	for i, s := range p.Servers {
		if strings.Contains(s.URL, "${") { // variables of the server itself would be expanded
			return Wrong(fmt.Sprintf("servers.%d.url", i), "it names a variable", "an address without ${")
		}
		u, err := url.Parse(s.URL)
		if err != nil || u.Host == "" || !slices.Contains([]string{"https", "http"}, u.Scheme) {
			return Wrong(fmt.Sprintf("servers.%d.url", i), "not an address of a server", "https://...")
		}
		if err := CheckElsewhere(fmt.Sprintf("servers.%d.url", i), tenant, u); err != nil {
			return err
		}
		if err := checkName(fmt.Sprintf("servers.%d.name", i), s.Name); err != nil {
			return err
		}
	}
	for i, t := range p.Tools {
		if _, values := measure(t.Schema); values > mostSchema {
			return Wrong(fmt.Sprintf("tools.%d.input_schema", i), fmt.Sprintf("it holds more than %d values", mostSchema), "fewer values")
		}
		var kind struct{ Type string }
		if err := errors.Join(json.Unmarshal(t.Schema, &kind), t.tool().CheckSchema()); err != nil || kind.Type != "object" {
			return Wrong(fmt.Sprintf("tools.%d.input_schema", i), "not a schema that a tool can have", "a JSON schema of type object")
		}
		if err := checkName(fmt.Sprintf("tools.%d.name", i), t.Name); err != nil {
			return err
		}
	}
	return nil
}

// installed returns the names of tools that a session can have in addition to the built-in ones. It looks for
// them only if there are rules that could name them.
func (s *Server) installed(ctx context.Context, p Spec) (names []string) {
	for _, t := range s.Options.Tools {
		names = append(names, t.Name)
	}
	if s.ToolNames != nil && len(p.Ask)+len(p.Deny) > 0 {
		names = append(names, s.ToolNames(ctx, p.Folder)...)
	}
	return names
}

// tool returns the tool as the model sees it.
func (t ClientTool) tool() tool.Tool {
	return tool.Tool{
		Name: t.Name, Doc: t.Description, Schema: t.Schema,
		Effects: func(context.Context, *tool.Call) ([]tool.Effect, error) {
			return []tool.Effect{{Kind: tool.Question, Text: "the client runs " + t.Name}}, nil
		},
		Run: func(_ context.Context, c *tool.Call) (tool.Result, error) {
			said, failed := Answered(c.Answer)
			switch {
			case failed:
				return tool.Result{}, errors.New(said)
			case said == "":
				return tool.Text("(no output)"), nil
			}
			return tool.Text(said), nil
		},
	}
}

// failure is the prefix of the answer to a failed call of a client's tool.
const failure = "\x00failed: "

// Answered returns the text of the answer to a call of a client's tool, and whether it is the error of a failed
// call.
func Answered(answer string) (said string, failed bool) {
	said, failed = strings.CutPrefix(answer, failure)
	return said, failed
}

// host makes the host for the session of a task.
func (s *Server) host(t Task) (*inspan.Host, error) {
	o := s.options(t)
	if t.Spec.Workflow != "" {
		w, err := s.workflow(t.Spec.Workflow)
		if err != nil {
			return nil, err
		}
		o.Program = &app.Program{Workflow: w, Inputs: t.Spec.Inputs}
	}
	if s.Equip != nil {
		v, err := s.For(s.ctx, t.ID, "")
		if err == nil {
			err = s.Equip(v, t, &o)
		}
		if err != nil {
			return nil, err
		}
	}
	return s.Host(o)
}

// options returns the options of the agent of a task.
func (s *Server) options(t Task) app.Options {
	o := s.Options
	o.Model, o.Effort, o.Mode = cmp.Or(t.Spec.Model, o.Model), cmp.Or(t.Spec.Effort, o.Effort), cmp.Or(t.Spec.Mode, s.mode(t.Tenant))
	o.Limits.Cost = config.Lesser(config.Lesser(o.Limits.Cost, t.Spec.MaxCost), s.book.left(t))
	o.Limits.Turns = config.Lesser(o.Limits.Turns, t.Spec.MaxTurns)
	o.Unattended, o.Elsewhere, o.Guest = t.Spec.Unattended, t.Spec.Elsewhere, t.Tenant != ""
	o.Limits.RetryLong, o.Foreign = true, []string{s.Dir}
	if s.travels(t) {
		o.Carry = s.Carry.At(s.workspace(t))
	}
	o.Labels = map[string]string{labelTask: t.ID, labelTenant: t.Tenant}
	maps.Copy(o.Labels, t.Spec.Labels)
	texts := []string{o.AppendSystem}
	if !t.Spec.Open {
		texts = append(texts, cmp.Or(s.Contract, Contract))
	}
	texts = append(texts, t.Spec.System)
	texts = slices.DeleteFunc(texts, func(text string) bool { return strings.TrimSpace(text) == "" })
	o.AppendSystem = strings.TrimSpace(strings.Join(texts, "\n\n"))
	o.Ask, o.Deny = slices.Concat(o.Ask, t.Spec.Ask), slices.Concat(o.Deny, t.Spec.Deny)
	o.Tools, o.Servers = slices.Clone(o.Tools), slices.Clone(o.Servers)
	for _, made := range t.Spec.Tools {
		o.Tools = append(o.Tools, made.tool())
	}
	for _, r := range t.Spec.Servers {
		o.Servers = append(o.Servers, mcp.Server{Name: r.Name, URL: r.URL, Source: mcp.Client, Unpinned: true})
	}
	return o
}

// mode returns the most permissive mode for tasks of a tenant. In mode yolo commands run without a sandbox, so
// tasks of a tenant can't have it.
func (s *Server) mode(tenant string) tool.Mode {
	if tenant != "" && s.Options.Mode == tool.ModeYolo {
		return tool.ModeAuto
	}
	return s.Options.Mode
}

// CheckElsewhere reports an address that an identity of a tenant can't name: the server does not talk to its
// own machine for a tenant.
func CheckElsewhere(field, tenant string, u *url.URL) error {
	if tenant != "" && (u.Scheme != "https" || netguard.IsHere(u.Hostname()) || netguard.Loopback(u.Hostname())) {
		return Wrong(field, "an identity of a tenant can only name servers elsewhere", "https and a public host")
	}
	return nil
}

package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/llm"
)

// maxListed is how many prompts or resources of a server are listed.
const maxListed = 1000

// Prompt is a prompt template that a server offers to the person.
type Prompt struct {
	Server, Name, Doc string
	Args              []Arg
}

// Arg is an argument of a [Prompt].
type Arg struct {
	Name, Doc string
	Required  bool
}

// Resource is readable content of a server.
type Resource struct {
	URI       string // with {names} to be filled in if it is a template
	Name, Doc string
	Type      string // media type; may be empty
}

// Prompts lists the prompts of all connected servers, by server and name.
func (m *Manager) Prompts() []Prompt {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []Prompt
	for _, s := range m.slots {
		if s.client != nil && m.agreed(s) != nil {
			out = append(out, s.prompts...)
		}
	}
	slices.SortStableFunc(out, func(a, b Prompt) int { return strings.Compare(a.Server+"\x00"+a.Name, b.Server+"\x00"+b.Name) })
	return out
}

// readPrompts reads the prompts of a server again.
func (m *Manager) readPrompts(ctx context.Context, s *slot, c *client) {
	list, err := c.prompts(ctx)
	if err != nil && ctx.Err() == nil {
		m.warn("The prompts of the MCP server " + c.server.Name + " can't be read: " + err.Error())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s.prompts = list
}

// asking bounds one request to a server.
func (c *client) asking(ctx context.Context) (context.Context, func()) {
	limited, cancel := context.WithTimeout(ctx, askTime)
	bound, stop := c.bound(limited)
	return bound, func() { stop(); cancel() }
}

// capable returns the server's capabilities.
func (c *client) capable() sdk.ServerCapabilities {
	if said := c.session.InitializeResult(); said != nil && said.Capabilities != nil {
		return *said.Capabilities
	}
	return sdk.ServerCapabilities{}
}

func (c *client) prompts(ctx context.Context) ([]Prompt, error) {
	if c.capable().Prompts == nil {
		return nil, nil
	}
	ctx, stop := c.asking(ctx)
	defer stop()
	var out []Prompt
	for p, err := range c.session.Prompts(ctx, nil) {
		if err != nil || len(out) == maxListed {
			return out, c.explain(err)
		}
		prompt := Prompt{Server: c.server.Name, Name: p.Name, Doc: described(p.Description, p.Title)}
		for _, a := range p.Arguments {
			prompt.Args = append(prompt.Args, Arg{a.Name, described(a.Description, a.Title), a.Required})
		}
		if !hidden(p.Name) {
			out = append(out, prompt)
		}
	}
	return out, nil
}

// hidden reports whether a name contains invisible characters.
func hidden(name string) bool { return text.Visible(name) != name || name == "" }

func described(text, title string) string {
	if text == "" {
		text = title
	}
	return words.OneLine(text, 500)
}

// explain cleans a server's error.
func (c *client) explain(err error) error {
	var answer *jsonrpc.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &answer):
		return fmt.Errorf("the MCP server %s says: %s", c.server.Name, words.OneLine(answer.Message, 1000))
	}
	return fmt.Errorf("the MCP server %s: %w", c.server.Name, c.ending(err))
}

// Prompt returns the text of a prompt with its arguments filled in. It is untrusted.
func (m *Manager) Prompt(ctx context.Context, server, name string, args map[string]string) (string, error) {
	c, err := m.find(server)
	if err != nil {
		return "", err
	}
	ctx, stop := c.asking(ctx)
	defer stop()
	res, err := c.session.GetPrompt(ctx, &sdk.GetPromptParams{Name: name, Arguments: args})
	if err != nil {
		return "", c.explain(err)
	}
	var texts []string
	for _, message := range res.Messages {
		for _, part := range contents([]sdk.Content{message.Content}) {
			text, is := part.(llm.Text)
			switch {
			case !is:
				texts = append(texts, "[an image: not shown]")
			case message.Role == "assistant":
				texts = append(texts, "You said: "+text.Text)
			default:
				texts = append(texts, text.Text)
			}
		}
	}
	return strings.Join(texts, "\n\n"), nil
}

// Resources lists a server's resources, templates last.
func (m *Manager) Resources(ctx context.Context, server string) ([]Resource, error) {
	c, err := m.find(server)
	if err != nil || c.capable().Resources == nil {
		return nil, err
	}
	ctx, stop := c.asking(ctx)
	defer stop()
	var out []Resource
	for r, err := range c.session.Resources(ctx, nil) {
		if err != nil || len(out) == maxListed {
			return out, c.explain(err)
		}
		out = append(out, listed(r.URI, r.Name, described(r.Description, r.Title), r.MIMEType))
	}
	for r, err := range c.session.ResourceTemplates(ctx, nil) {
		if err != nil || len(out) >= maxListed {
			return out, nil //nolint:nilerr // many servers that have resources know no templates
		}
		out = append(out, listed(r.URITemplate, r.Name, described(r.Description, r.Title), r.MIMEType))
	}
	return out, nil
}

func listed(uri, name, doc, kind string) Resource {
	return Resource{URI: words.OneLine(uri, 2000), Name: words.OneLine(name, 200), Doc: doc, Type: words.OneLine(kind, 100)}
}

// Read returns a resource of a server. It is untrusted.
func (m *Manager) Read(ctx context.Context, server, uri string) (llm.Parts, error) {
	c, err := m.find(server)
	if err != nil {
		return nil, err
	}
	ctx, stop := c.asking(ctx)
	defer stop()
	res, err := c.session.ReadResource(ctx, &sdk.ReadResourceParams{URI: uri})
	if err != nil {
		return nil, c.explain(err)
	}
	var list []sdk.Content
	for _, r := range res.Contents {
		list = append(list, &sdk.EmbeddedResource{Resource: r})
	}
	return contents(list), nil
}

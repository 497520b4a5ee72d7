package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inspan/inspan/internal/secret"
	"github.com/inspan/inspan/internal/words"
	"github.com/inspan/inspan/llm"
)

const maxAsked = 32 << 10 // bytes of a schema of what is asked

// elicit asks the person what a server wants to know, through the call that it is
// asked for. Forms for secrets are declined: nobody here could tell where they lead.
func (c *client) elicit(ctx context.Context, p *sdk.ElicitParams) (*sdk.ElicitResult, error) {
	declined, cancelled := &sdk.ElicitResult{Action: "decline"}, &sdk.ElicitResult{Action: "cancel"}
	by := c.whom()
	if by == nil {
		return cancelled, nil
	}
	defer by.pause()()
	message := "The MCP server " + c.name + " asks: " + short(words.VisibleLines(p.Message), maxDoc)
	if p.Mode == "url" {
		return visit(ctx, by.call.Ask, message, p.URL)
	}
	schema, err := json.Marshal(p.RequestedSchema)
	if err != nil || p.Mode != "" && p.Mode != "form" || len(schema) > maxAsked || wantsSecret(schema) {
		return declined, nil //nolint:nilerr // what can't be read is not asked
	}
	form, err := readForm(schema)
	if err != nil {
		return declined, nil //nolint:nilerr // as above
	}
	values, err := form.fill(ctx, by.call.Ask, message)
	switch {
	case err != nil:
		return cancelled, nil //nolint:nilerr // the server need not know why
	case values == nil:
		return declined, nil
	}
	return &sdk.ElicitResult{Action: "accept", Content: values}, nil
}

// asker puts a question before the person, see [tool.Call].
type asker func(ctx context.Context, question string, options []string) (string, error)

// visit asks the person to do something in a browser. Nothing is opened for them:
// they see where it leads.
func visit(ctx context.Context, ask asker, message, address string) (*sdk.ElicitResult, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || len(address) > 2000 || words.Visible(address) != address {
		return &sdk.ElicitResult{Action: "decline"}, nil //nolint:nilerr // nobody could tell where it leads
	}
	answer, err := ask(ctx, message+"\nIt wants you to go to "+u.Hostname()+":\n"+address, []string{"done", "no"})
	switch {
	case err != nil:
		return &sdk.ElicitResult{Action: "cancel"}, nil //nolint:nilerr // the server need not know why
	case answer == "done":
		return &sdk.ElicitResult{Action: "accept"}, nil
	}
	return &sdk.ElicitResult{Action: "decline"}, nil
}

// sample has the model answer a server. The person sees what it is to be asked and
// can say no.
func (c *client) sample(ctx context.Context, model func(context.Context, llm.Request) (*llm.Reply, error), p *sdk.CreateMessageParams) (*sdk.CreateMessageResult, error) {
	refused := errors.New("the person does not want that")
	by := c.whom()
	if by == nil {
		return nil, refused
	}
	defer by.pause()()
	req, text := request(p)
	answer, err := by.call.Ask(ctx, "The MCP server "+c.name+" wants to ask your model, at your cost:\n"+short(words.VisibleLines(text), maxDoc), []string{"yes", "no"})
	if err != nil || answer != "yes" {
		return nil, refused
	}
	reply, err := model(ctx, req)
	if err != nil {
		return nil, errors.New("the model did not answer")
	}
	reason := "endTurn"
	if reply.Stop == llm.StopLength {
		reason = "maxTokens"
	}
	return &sdk.CreateMessageResult{Content: &sdk.TextContent{Text: reply.Parts.Text()}, Model: reply.Route, Role: "assistant", StopReason: reason}, nil
}

// request is what a server wants to ask a model, and all of it as text.
func request(p *sdk.CreateMessageParams) (req llm.Request, text string) {
	var said []string
	if p.SystemPrompt != "" {
		req.System = []string{p.SystemPrompt}
		said = append(said, "(instructions) "+p.SystemPrompt)
	}
	for _, m := range p.Messages {
		role := llm.User
		if m.Role == "assistant" {
			role = llm.Assistant
		}
		parts := contents([]sdk.Content{m.Content})
		req.Messages = append(req.Messages, llm.Message{Role: role, Parts: parts})
		said = append(said, "("+string(role)+") "+parts.Text())
	}
	req.MaxOutput = int(min(max(p.MaxTokens, 1), maxSampled))
	return req, strings.Join(said, "\n")
}

const maxSampled = 8192 // tokens of an answer to a server

// wantsSecret reports whether a field is called like what nobody should type into
// the form of a stranger.
func wantsSecret(schema []byte) bool {
	var form struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(schema, &form) != nil {
		return true
	}
	for name := range form.Properties {
		if secret.Named(strings.ToUpper(name)) {
			return true
		}
	}
	return false
}

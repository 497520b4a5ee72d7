package mcp

import (
	"context"
	"errors"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/llm"
)

// Sampling, in which servers ask the client's model, is deprecated since revision 2026-07-28. It is supported
// as long as servers use it.

const maxSampled = 8192 // tokens of an answer to a server

// sampler is [Manager.Sample].
type sampler = func(ctx context.Context, req llm.Request) (reply *llm.Reply, cost float64, err error)

// sampling lets servers ask a model.
func (c *client) sampling(o *sdk.ClientOptions, model sampler) {
	//nolint:staticcheck // see above
	o.CreateMessageHandler = func(ctx context.Context, r *sdk.CreateMessageRequest) (*sdk.CreateMessageResult, error) {
		ctx, stop := c.bound(ctx)
		defer stop()
		return c.sample(ctx, c.whom(), model, r.Params)
	}
}

// sample lets the model answer a server. The person sees the request and can decline it, through the call that
// it is made for; it is declined if no running call can ask.
//
//nolint:staticcheck // see above
func (c *client) sample(ctx context.Context, by *patience, model sampler, p *sdk.CreateMessageParams) (*sdk.CreateMessageResult, error) {
	refused := errors.New("the person declined")
	if by == nil {
		return nil, refused
	}
	defer by.pause()()
	req, s := request(p)
	shown := text.VisibleLines(s)
	if len(shown) > maxDoc || pictures(req) {
		return nil, errors.New("it is too long to show to the person")
	}
	answer, err := by.ask(ctx, "The MCP server "+c.server.Name+" asks to use your model, at your cost:\n"+shown, []string{"yes", "no"})
	if err != nil || answer != "yes" {
		return nil, refused
	}
	ctx, done := by.within(ctx)
	defer done()
	reply, cost, err := model(ctx, req)
	by.pay(cost)
	if err != nil {
		return nil, errors.New("the model did not answer")
	}
	reason := "endTurn"
	if reply.Stop == llm.StopLength {
		reason = "maxTokens"
	}
	//nolint:staticcheck // see above
	return &sdk.CreateMessageResult{
		Content: &sdk.TextContent{Text: reply.Parts.Text()},
		Model:   reply.Route, Role: "assistant", StopReason: reason,
	}, nil
}

// pictures reports whether a request contains anything but text.
func pictures(req llm.Request) bool {
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			if _, is := p.(llm.Text); !is {
				return true
			}
		}
	}
	return false
}

// request converts a server's request for the model, and returns all of it as text.
func request(p *sdk.CreateMessageParams) (req llm.Request, text string) { //nolint:staticcheck // see above
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

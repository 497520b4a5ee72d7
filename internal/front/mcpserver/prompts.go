package mcpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inspan/inspan/internal/view/words"
)

// promptTool is the tool that invokes a skill for the person at the client. It is not among the tools for clients.
const promptTool = "prompt"

// withSkills looks which skills there are before a request about prompts.
func (r *tenant) withSkills(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		if strings.HasPrefix(method, "prompts/") {
			r.offerSkills()
		}
		return next(ctx, method, req)
	}
}

// offerSkills offers the skills that a person may invoke.
func (r *tenant) offerSkills() {
	list, _ := r.server.Skills.List()
	r.mu.Lock()
	defer r.mu.Unlock()
	var names []string
	for _, s := range list {
		if s.Hidden {
			continue
		}
		names = append(names, s.Name)
		r.sdk.AddPrompt(&sdk.Prompt{
			Name: s.Name, Description: words.OneLine(s.Description, 1000),
			Arguments: []*sdk.PromptArgument{{Name: "args", Description: words.OneLine(cmp.Or(s.Hint, "its subject"), 200)}},
		}, r.prompt)
	}
	r.sdk.RemovePrompts(slices.DeleteFunc(r.prompts, func(name string) bool { return slices.Contains(names, name) })...)
	r.prompts = names
}

// prompt invokes a skill by a call in a session of the connection, so that its text is judged and redacted like any.
func (r *tenant) prompt(ctx context.Context, req *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
	args, err := json.Marshal(map[string]string{"name": req.Params.Name, "args": req.Params.Arguments["args"]})
	if err != nil {
		return nil, err
	}
	call := &sdk.CallToolRequest{Session: req.Session, Extra: req.Extra, Params: &sdk.CallToolParamsRaw{
		Meta: req.Params.Meta, Name: promptTool, Arguments: args,
		InputResponses: req.Params.InputResponses, RequestState: req.Params.RequestState,
	}}
	res, err := r.handle(ctx, call, func(w *clientCall, d *connection) *sdk.CallToolResult { return d.call(w, promptTool, args) })
	if err != nil {
		return nil, err
	}
	out := &sdk.GetPromptResult{InputRequests: res.InputRequests, RequestState: res.RequestState}
	for _, part := range res.Content {
		if text, ok := part.(*sdk.TextContent); ok && res.IsError {
			return nil, errors.New(text.Text)
		}
		out.Messages = append(out.Messages, &sdk.PromptMessage{Role: "user", Content: part})
	}
	return out, nil
}

package mcp

import (
	"context"
	"encoding/json"
	"strings"
	"unicode"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/safety/secret"
	"github.com/inspan/inspan/internal/view/words"
)

const maxAsked = 32 << 10 // bytes of a schema of what is asked

// elicit asks the person the server's question, through the call that the server works for; it declines if no
// running call can ask. Forms for secrets are declined: no one here could tell where the answer goes.
func (c *client) elicit(ctx context.Context, by *patience, p *sdk.ElicitParams) (*sdk.ElicitResult, error) {
	declined, cancelled := &sdk.ElicitResult{Action: "decline"}, &sdk.ElicitResult{Action: "cancel"}
	if by == nil {
		return cancelled, nil
	}
	defer by.pause()()
	message := "The MCP server " + c.server.Name + " asks: " + text.Cut(text.VisibleLines(p.Message), maxDoc)
	if p.Mode == "url" {
		return visit(ctx, by.ask, message, p.URL)
	}
	schema, err := json.Marshal(p.RequestedSchema)
	if err != nil || p.Mode != "" && p.Mode != "form" || len(schema) > maxAsked || wantsSecret(schema) {
		return declined, nil //nolint:nilerr // what can't be read is not asked
	}
	form, err := readForm(schema)
	if err != nil {
		return declined, nil //nolint:nilerr // as above
	}
	values, err := form.fill(ctx, by.ask, message)
	switch {
	case err != nil:
		return cancelled, nil //nolint:nilerr // the server need not know why
	case values == nil:
		return declined, nil
	}
	return &sdk.ElicitResult{Action: "accept", Content: values}, nil
}

// asker asks the person a question, see [tool.Call].
type asker func(ctx context.Context, question string, options []string) (string, error)

// visit asks the person to do something in a browser. It only shows the address and opens nothing.
func visit(ctx context.Context, ask asker, message, address string) (*sdk.ElicitResult, error) {
	question, options, ok := words.VisitQuestion(message, address)
	if !ok {
		return &sdk.ElicitResult{Action: "decline"}, nil
	}
	answer, err := ask(ctx, question, options)
	switch {
	case err != nil:
		return &sdk.ElicitResult{Action: "cancel"}, nil //nolint:nilerr // the server need not know why
	case answer == options[0]:
		return &sdk.ElicitResult{Action: "accept"}, nil
	}
	return &sdk.ElicitResult{Action: "decline"}, nil
}

// wantsSecret reports whether a field's name or description asks for something that should not be typed into a
// stranger's form.
func wantsSecret(schema []byte) bool {
	var form struct {
		Properties map[string]struct {
			Title       string `json:"title"`
			Description string `json:"description"`
		} `json:"properties"`
	}
	if json.Unmarshal(schema, &form) != nil {
		return true
	}
	for name, f := range form.Properties {
		for _, text := range []string{name, f.Title, f.Description} {
			text = strings.ToUpper(strings.Join(strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }),
				"_"))
			if secret.Named(text) || secretWord(text) {
				return true
			}
		}
	}
	return false
}

// secretWord looks for words for secrets that are not names of variables.
func secretWord(text string) bool {
	for word := range strings.SplitSeq(text, "_") {
		switch word {
		case "PASS", "PWD", "PASSCODE", "PIN", "OTP", "CVV", "CVC", "SSN", "MNEMONIC":
			return true
		}
	}
	return false
}

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inspan/inspan/internal/secret"
	"github.com/inspan/inspan/internal/words"
)

const maxAsked = 32 << 10 // bytes of a schema of what is asked

// elicit asks the person what a server wants to know. Forms for secrets, and what
// is to be done in a browser, are declined: nobody here could tell where it leads.
func elicit(ctx context.Context, server string, ask func(context.Context, string, json.RawMessage) (json.RawMessage, error), p *sdk.ElicitParams) (*sdk.ElicitResult, error) {
	declined := &sdk.ElicitResult{Action: "decline"}
	schema, err := json.Marshal(p.RequestedSchema)
	if err != nil || p.Mode != "" && p.Mode != "form" || len(schema) > maxAsked || wantsSecret(schema) {
		return declined, nil //nolint:nilerr // what can't be read is not asked
	}
	var tree any
	left := maxValues
	err = json.Unmarshal(schema, &tree)
	if err == nil {
		err = tame(tree, 0, &left)
	}
	if err == nil {
		schema, err = json.Marshal(tree)
	}
	if err != nil {
		return declined, nil //nolint:nilerr // as above
	}
	message := "The MCP server " + server + " asks: " + short(words.VisibleLines(p.Message), maxDoc)
	data, err := ask(ctx, message, schema)
	switch {
	case err != nil:
		return &sdk.ElicitResult{Action: "cancel"}, nil //nolint:nilerr // the server need not know why
	case data == nil:
		return declined, nil
	}
	var values map[string]any
	if err := json.Unmarshal(data, &values); err != nil {
		return nil, errors.New("what the person said could not be read")
	}
	return &sdk.ElicitResult{Action: "accept", Content: values}, nil
}

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

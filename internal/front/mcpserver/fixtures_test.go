//nolint:staticcheck // the suite wants what the protocol has deprecated
package mcpserver_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// The conformance suite asks for tools, prompts and resources by name. They are
// registered with the server that the product makes, behind its gate.

const watched = "test://watched-resource"

// prepared are the options that the fixtures need.
func prepared(o *sdk.ServerOptions) {
	o.Capabilities = nil // what is registered is offered, logging too
	o.CompletionHandler = func(context.Context, *sdk.CompleteRequest) (*sdk.CompleteResult, error) {
		return &sdk.CompleteResult{Completion: sdk.CompletionResultDetails{Values: []string{}}}, nil
	}
	o.SubscribeHandler = func(context.Context, *sdk.SubscribeRequest) error { return nil }
	o.UnsubscribeHandler = func(context.Context, *sdk.UnsubscribeRequest) error { return nil }
}

// extended registers all fixtures.
func extended(s *sdk.Server) {
	plainTools(s)
	askingTools(s)
	roundTools(s)
	changingTools(s)
	resources(s)
	prompts(s)
}

type result = *sdk.CallToolResult

func text(format string, args ...any) result {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprintf(format, args...)}}}
}

// add registers a tool without arguments.
func add(s *sdk.Server, name string, f func(context.Context, *sdk.CallToolRequest) (result, error)) {
	addSchema(s, name, `{"type":"object"}`, f)
}

func addSchema(s *sdk.Server, name, schema string, f func(context.Context, *sdk.CallToolRequest) (result, error)) {
	s.AddTool(&sdk.Tool{Name: name, Description: "Fixture " + name, InputSchema: json.RawMessage(schema)}, f)
}

func always(r result) func(context.Context, *sdk.CallToolRequest) (result, error) {
	return func(context.Context, *sdk.CallToolRequest) (result, error) { return r, nil }
}

func decoded(s string) []byte {
	raw, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return raw
}

// dot is a PNG of one pixel, silence a WAV without a sample.
func dot() []byte {
	return decoded("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC")
}

func silence() []byte {
	return append([]byte("RIFF\x24\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x80\x3e\x00\x00\x02\x00\x10\x00"),
		"data\x00\x00\x00\x00"...)
}

func embedded(uri string) *sdk.EmbeddedResource {
	return &sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: uri, MIMEType: "text/plain", Text: "embedded text"}}
}

func plainTools(s *sdk.Server) {
	picture := &sdk.ImageContent{Data: dot(), MIMEType: "image/png"}
	add(s, "test_simple_text", always(text("This is a simple text response for testing.")))
	add(s, "test_image_content", always(&sdk.CallToolResult{Content: []sdk.Content{picture}}))
	add(s, "test_audio_content", always(&sdk.CallToolResult{Content: []sdk.Content{&sdk.AudioContent{
		Data:     silence(),
		MIMEType: "audio/wav",
	}}}))
	add(s, "test_embedded_resource", always(&sdk.CallToolResult{Content: []sdk.Content{embedded("test://embedded-resource")}}))
	add(s, "test_multiple_content_types", always(&sdk.CallToolResult{Content: []sdk.Content{
		&sdk.TextContent{Text: "Multiple content types test:"}, picture, embedded("test://mixed-content-resource"),
	}}))
	add(s, "test_error_handling", func(context.Context, *sdk.CallToolRequest) (result, error) {
		r := text("This tool intentionally returns an error for testing")
		r.IsError = true
		return r, nil
	})
	logs := func(lines ...string) func(context.Context, *sdk.CallToolRequest) (result, error) {
		return func(ctx context.Context, req *sdk.CallToolRequest) (result, error) {
			for _, line := range lines {
				if err := req.Session.Log(ctx, &sdk.LoggingMessageParams{Level: "info", Data: line}); err != nil {
					return nil, err
				}
			}
			return text("logged"), nil
		}
	}
	add(s, "test_tool_with_logging", logs("Tool execution started", "Tool processing data", "Tool execution completed"))
	add(s, "test_logging_tool", logs("once"))
	add(s, "test_streaming_elicitation", always(text("nothing is asked")))
	add(s, "test_tool_with_progress", func(ctx context.Context, req *sdk.CallToolRequest) (result, error) {
		for _, n := range []float64{0, 50, 100} {
			p := &sdk.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Progress: n, Total: 100}
			if err := req.Session.NotifyProgress(ctx, p); err != nil {
				return nil, err
			}
		}
		return text("%v", req.Params.GetProgressToken()), nil
	})
	addSchema(s, "json_schema_2020_12_tool", `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",
		"$defs":{"address":{"$anchor":"addressDef","type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},
		"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},"contactMethod":{"type":"string","enum":["phone","email"]},"phone":{"type":"string"},"email":{"type":"string"}},
		"allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]}]}],
		"if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},"then":{"required":["phone"]},"else":{"required":["email"]},
		"additionalProperties":false}`, always(text("ok")))
	addSchema(s, "test_x_mcp_header",
		`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"level":{"type":"integer"}}}`, always(text("ok")))
	add(s, "test_missing_capability", func(_ context.Context, req *sdk.CallToolRequest) (result, error) {
		if c := req.ClientCapabilities(); c != nil && c.Sampling != nil {
			return text("it has sampling"), nil
		}
		data, err := json.Marshal(sdk.MissingRequiredClientCapabilityData{RequiredCapabilities: &sdk.ClientCapabilities{Sampling: &sdk.SamplingCapabilities{}}})
		if err != nil {
			return nil, err
		}
		return nil, &jsonrpc.Error{Code: sdk.CodeMissingRequiredClientCapabilities, Message: "sampling is needed", Data: data}
	})
	add(s, "test_reconnection", func(_ context.Context, req *sdk.CallToolRequest) (result, error) {
		if req.Extra != nil && req.Extra.CloseSSEStream != nil {
			req.Extra.CloseSSEStream(sdk.CloseSSEStreamArgs{RetryAfter: 10 * time.Millisecond})
		}
		return text("the stream was closed before this"), nil
	})
}

// sampling is a request to the client's model.
func sampling(prompt string) *sdk.CreateMessageParams {
	return &sdk.CreateMessageParams{MaxTokens: 100, Messages: []*sdk.SamplingMessage{{Role: "user", Content: &sdk.TextContent{Text: prompt}}}}
}

// askingTools put requests to the client.
func askingTools(s *sdk.Server) {
	argument := func(req *sdk.CallToolRequest, name string) string {
		var in map[string]string
		_ = json.Unmarshal(req.Params.Arguments, &in)
		return in[name]
	}
	addSchema(s, "test_sampling", `{"type":"object","properties":{"prompt":{"type":"string"}},"required":["prompt"]}`,
		func(ctx context.Context, req *sdk.CallToolRequest) (result, error) {
			res, err := req.Session.CreateMessage(ctx, sampling(argument(req, "prompt")))
			if err != nil {
				return nil, err
			}
			said, ok := res.Content.(*sdk.TextContent)
			if !ok {
				return nil, errors.New("no text")
			}
			return text("LLM response: %s", said.Text), nil
		})
	elicits := func(name, schema string) {
		addSchema(s, name, `{"type":"object","properties":{"message":{"type":"string"}}}`,
			func(ctx context.Context, req *sdk.CallToolRequest) (result, error) {
				res, err := req.Session.Elicit(ctx, &sdk.ElicitParams{Message: "Please fill in: " +
					argument(req, "message"), RequestedSchema: json.RawMessage(schema)})
				if err != nil {
					return nil, err
				}
				content, err := json.Marshal(res.Content)
				return text("Elicitation completed: action=%s, content=%s", res.Action, content), err
			})
	}
	elicits("test_elicitation",
		`{"type":"object","properties":{"username":{"type":"string"},"email":{"type":"string"}},"required":["username","email"]}`)
	elicits("test_elicitation_sep1034_defaults", `{"type":"object","properties":{"name":{"type":"string","default":"John Doe"},"age":{"type":"integer","default":30},
		"score":{"type":"number","default":95.5},"status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},"verified":{"type":"boolean","default":true}}}`)
	elicits("test_elicitation_sep1330_enums", `{"type":"object","properties":{
		"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},
		"titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First Option"},{"const":"value2","title":"Second Option"},{"const":"value3","title":"Third Option"}]},
		"legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],"enumNames":["Option One","Option Two","Option Three"]},
		"untitledMulti":{"type":"array","items":{"type":"string","enum":["option1","option2","option3"]}},
		"titledMulti":{"type":"array","items":{"anyOf":[{"const":"value1","title":"First Choice"},{"const":"value2","title":"Second Choice"},{"const":"value3","title":"Third Choice"}]}}}}`)
}

// Input that tools of the newer revision ask for.

func formOf(field, kind string) *sdk.ElicitParams {
	return &sdk.ElicitParams{
		Message:         "Please say your " + field,
		RequestedSchema: json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{%q:{"type":%q}},"required":[%[1]q]}`, field, kind)),
	}
}

// filled is a field of a form that was filled in; nil means it was not.
func filled(in sdk.InputResponseMap, name, field string) any {
	if r, ok := in[name].(*sdk.ElicitResult); ok && r.Action == "accept" {
		return r.Content[field]
	}
	return nil
}

func sampled(in sdk.InputResponseMap, name string) (string, bool) {
	r, ok := in[name].(*sdk.CreateMessageWithToolsResult)
	if !ok || len(r.Content) == 0 {
		return "", false
	}
	said, ok := r.Content[0].(*sdk.TextContent)
	return said.Text, ok
}

func needs(state string, in sdk.InputRequestMap) result {
	return &sdk.CallToolResult{InputRequests: in, RequestState: state}
}

func badState() error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "this requestState is not ours"}
}

// roundTools ask through their results.
func roundTools(s *sdk.Server) {
	add(s, "test_input_required_result_elicitation", func(_ context.Context, req *sdk.CallToolRequest) (result, error) {
		if name, _ := filled(req.Params.InputResponses, "user_name", "name").(string); name != "" {
			return text("Hello, %s!", name), nil
		}
		return needs("", sdk.InputRequestMap{"user_name": formOf("name", "string")}), nil
	})
	add(s, "test_input_required_result_sampling", func(_ context.Context, req *sdk.CallToolRequest) (result, error) {
		if said, ok := sampled(req.Params.InputResponses, "capital_question"); ok {
			return text("The model said: %s", said), nil
		}
		return needs("", sdk.InputRequestMap{"capital_question": sampling("What is the capital of France?")}), nil
	})
	add(s, "test_input_required_result_list_roots", func(_ context.Context, req *sdk.CallToolRequest) (result, error) {
		if roots, ok := req.Params.InputResponses["client_roots"].(*sdk.ListRootsResult); ok {
			return text("%d roots", len(roots.Roots)), nil
		}
		return needs("", sdk.InputRequestMap{"client_roots": &sdk.ListRootsParams{}}), nil
	})
	for _, name := range []string{"test_input_required_result_request_state", "test_input_required_result_tampered_state"} {
		add(s, name, func(_ context.Context, req *sdk.CallToolRequest) (result, error) {
			switch state := req.Params.RequestState; {
			case state != "" && state != name:
				return nil, badState()
			case state != "" && filled(req.Params.InputResponses, "confirm", "ok") != nil:
				return text("state-ok"), nil
			}
			return needs(name, sdk.InputRequestMap{"confirm": formOf("ok", "boolean")}), nil
		})
	}
	add(s, "test_input_required_result_multiple_inputs", func(_ context.Context, req *sdk.CallToolRequest) (result, error) {
		in := req.Params.InputResponses
		name := filled(in, "user_name", "name")
		greeting, greeted := sampled(in, "greeting")
		roots, rooted := in["client_roots"].(*sdk.ListRootsResult)
		if name != nil && greeted && rooted {
			return text("%s %v, %d roots", greeting, name, len(roots.Roots)), nil
		}
		return needs("several", sdk.InputRequestMap{
			"user_name": formOf("name", "string"), "greeting": sampling("Say hello"), "client_roots": &sdk.ListRootsParams{},
		}), nil
	})
	add(s, "test_input_required_result_multi_round", func(_ context.Context, req *sdk.CallToolRequest) (result, error) {
		name, second := strings.CutPrefix(req.Params.RequestState, "second ")
		switch {
		case second:
			return text("%s likes %v", name, filled(req.Params.InputResponses, "step2", "color")), nil
		case req.Params.RequestState == "first":
			return needs(fmt.Sprintf("second %v", filled(req.Params.InputResponses, "step1", "name")),
				sdk.InputRequestMap{"step2": formOf("color", "string")}), nil
		}
		return needs("first", sdk.InputRequestMap{"step1": formOf("name", "string")}), nil
	})
	add(s, "test_input_required_result_capabilities", func(_ context.Context, req *sdk.CallToolRequest) (result, error) {
		in := sdk.InputRequestMap{}
		if c := req.ClientCapabilities(); c != nil && c.Elicitation != nil {
			in["user_name"] = formOf("name", "string")
		}
		if c := req.ClientCapabilities(); c != nil && c.Sampling != nil {
			in["greeting"] = sampling("Say hello")
		}
		if len(in) == 0 || len(req.Params.InputResponses) > 0 {
			return text("nothing more is needed"), nil
		}
		return needs("", in), nil
	})
}

// changingTools change the offered tools while a client listens.
func changingTools(s *sdk.Server) {
	add(s, "test_trigger_tool_change", func(context.Context, *sdk.CallToolRequest) (result, error) {
		add(s, "passing_tool", always(text("ok")))
		return text("changed"), nil
	})
	add(s, "test_trigger_prompt_change", func(context.Context, *sdk.CallToolRequest) (result, error) {
		prompt(s, "passing_prompt", nil, func(map[string]string) []sdk.Content { return []sdk.Content{&sdk.TextContent{Text: "ok"}} })
		return text("changed"), nil
	})
}

func resources(s *sdk.Server) {
	content := func(mime, body string, blob []byte) sdk.ResourceHandler {
		return func(_ context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: req.Params.URI, MIMEType: mime, Text: body, Blob: blob}}}, nil
		}
	}
	s.AddResource(&sdk.Resource{Name: "static-text", URI: "test://static-text", MIMEType: "text/plain"},
		content("text/plain", "This is the content of the static text resource.", nil))
	s.AddResource(&sdk.Resource{Name: "static-binary", URI: "test://static-binary", MIMEType: "image/png"}, content("image/png", "", dot()))
	s.AddResource(&sdk.Resource{Name: "watched-resource", URI: watched, MIMEType: "text/plain"}, content("text/plain", "watched", nil))
	s.AddResourceTemplate(&sdk.ResourceTemplate{Name: "template", URITemplate: "test://template/{id}/data", MIMEType: "application/json"},
		func(_ context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			id := strings.TrimSuffix(strings.TrimPrefix(req.Params.URI, "test://template/"), "/data")
			body := fmt.Sprintf(`{"id":%q,"templateTest":true,"data":"Data for ID: %s"}`, id, id)
			return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: req.Params.URI, MIMEType: "application/json", Text: body}}}, nil
		})
}

func prompt(s *sdk.Server, name string, args []string, f func(map[string]string) []sdk.Content) {
	p := &sdk.Prompt{Name: name, Description: "Fixture " + name}
	for _, arg := range args {
		p.Arguments = append(p.Arguments, &sdk.PromptArgument{Name: arg, Description: arg, Required: true})
	}
	s.AddPrompt(p, func(_ context.Context, req *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		res := &sdk.GetPromptResult{}
		for _, c := range f(req.Params.Arguments) {
			res.Messages = append(res.Messages, &sdk.PromptMessage{Role: "user", Content: c})
		}
		return res, nil
	})
}

func prompts(s *sdk.Server) {
	say := func(format string, args ...any) sdk.Content {
		return &sdk.TextContent{Text: fmt.Sprintf(format, args...)}
	}
	prompt(s, "test_simple_prompt", nil, func(map[string]string) []sdk.Content {
		return []sdk.Content{say("This is a simple prompt for testing.")}
	})
	prompt(s, "test_prompt_with_arguments", []string{"arg1", "arg2"}, func(a map[string]string) []sdk.Content {
		return []sdk.Content{say("Prompt with arguments: arg1='%s', arg2='%s'", a["arg1"], a["arg2"])}
	})
	prompt(s, "test_prompt_with_embedded_resource", []string{"resourceUri"}, func(a map[string]string) []sdk.Content {
		return []sdk.Content{embedded(a["resourceUri"]), say("Please process the embedded resource above.")}
	})
	prompt(s, "test_prompt_with_image", nil, func(map[string]string) []sdk.Content {
		return []sdk.Content{&sdk.ImageContent{Data: dot(), MIMEType: "image/png"}, say("Please analyze the image above.")}
	})
	s.AddPrompt(&sdk.Prompt{Name: "test_input_required_result_prompt", Description: "Fixture"},
		func(_ context.Context, req *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			if about := filled(req.Params.InputResponses, "user_context", "context"); about != nil {
				return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{{Role: "user", Content: say("Context: %v", about)}}}, nil
			}
			return &sdk.GetPromptResult{InputRequests: sdk.InputRequestMap{"user_context": formOf("context", "string")}}, nil
		})
}

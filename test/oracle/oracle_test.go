package oracle

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/llm"
)

// turns are the replies both sides must read alike.
func turns() map[string]llm.Parts {
	return map[string]llm.Parts{
		"empty": nil,
		"text":  llm.Say("Grüße, 世界! <b>&</b> \"quoted\"\n😀"),
		"calls": {
			llm.Text{Text: "Reading."},
			llm.Call{ID: "toolu_1", Name: "read", Args: json.RawMessage(`{"path":"a <b>.go","deep":{"n":[1,2.5,null]}}`)},
			llm.Call{ID: "toolu_2", Name: "now", Args: json.RawMessage(`{}`)},
		},
		"thinking": {
			llm.Reasoning{Text: "Let me <think>\nabout 思考."},
			llm.Text{Text: "Done."},
			llm.Call{ID: "toolu_3", Name: "now", Args: json.RawMessage(`{}`)},
		},
	}
}

func usage() llm.Usage {
	return llm.Usage{Input: 100, CacheRead: 50, CacheWrite: 25, Output: 40, Reasoning: 10}
}

func request() llm.Request {
	return llm.Request{
		System: []string{"Be terse."},
		Tools: []llm.ToolSpec{
			{Name: "read", Schema: json.RawMessage(`{"type":"object","properties":{}}`)},
			{Name: "now", Schema: json.RawMessage(`{"type":"object","properties":{}}`)},
		},
		Messages:  []llm.Message{{Role: llm.User, Parts: llm.Say("Hello")}},
		MaxOutput: 4000,
	}
}

// seen is the form to which both sides reduce a reply.
type seen struct {
	Text, Thinking, Signature string
	Calls                     []seenCall
	Stop                      string
	Usage                     llm.Usage
}

type seenCall struct {
	ID, Name string
	Args     any
}

func (s *seen) call(t *testing.T, id, name string, args []byte) {
	t.Helper()
	c := seenCall{ID: id, Name: name}
	if err := json.Unmarshal(args, &c.Args); err != nil {
		t.Fatalf("arguments %q: %v", args, err)
	}
	s.Calls = append(s.Calls, c)
}

// ours reduces the adapter's reply.
func ours(t *testing.T, m llm.Model, req llm.Request) (seen, llm.Parts) {
	t.Helper()
	for c, err := range m.Stream(t.Context(), req) {
		if err != nil {
			t.Fatal(err)
		}
		if c.Reply == nil {
			continue
		}
		s := seen{Text: c.Reply.Parts.Text(), Stop: string(c.Reply.Stop), Usage: c.Reply.Usage}
		for _, p := range c.Reply.Parts {
			switch v := p.(type) {
			case llm.Reasoning:
				s.Thinking, s.Signature = v.Text, signature(t, v.Opaque)
			case llm.Call:
				s.call(t, v.ID, v.Name, v.Args)
			}
		}
		return s, c.Reply.Parts
	}
	t.Fatal("no reply")
	return seen{}, nil
}

// signature finds the proof of the reasoning: a field of the block, or of the first of a list of blocks.
func signature(t *testing.T, opaque json.RawMessage) string {
	t.Helper()
	type block struct {
		Signature string
		Encrypted string `json:"encrypted_content"`
	}
	blocks := make([]block, 1)
	if json.Unmarshal(opaque, &blocks[0]) != nil {
		if err := json.Unmarshal(opaque, &blocks); err != nil {
			t.Fatal(err)
		}
	}
	return blocks[0].Signature + blocks[0].Encrypted
}

func same(t *testing.T, sdk, adapter seen) {
	t.Helper()
	if diff := cmp.Diff(sdk, adapter); diff != "" {
		t.Errorf("the SDK (-) and the adapter (+) differ:\n%s", diff)
	}
}

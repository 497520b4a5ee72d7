package openai

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/testkit/openaitest"
	"github.com/inspan/inspan/llm"
)

// TestManyImages checks that requests with more or larger images than a vendor takes are accepted, with the newest image
// in them and the rest left out with a note.
func TestManyImages(t *testing.T) {
	chat := func(m Model) func(llm.Request) ([]byte, error) {
		return func(req llm.Request) ([]byte, error) {
			sent := encoded(&m, req)
			return sent, openaitest.ValidateAs(m.Dialect, sent)
		}
	}
	responses := func(req llm.Request) ([]byte, error) {
		sent := encodedResponses(&Responses{ID: "gpt-6-sol"}, req)
		return sent, openaitest.ValidateResponses(sent)
	}
	for name, c := range map[string]struct {
		send         func(llm.Request) ([]byte, error)
		images, size int
	}{
		"mistral": {chat(Model{ID: "mistral-large-latest", Dialect: "mistral"}), 9, 10},
		"openai":  {chat(Model{ID: "gpt-6-sol", Dialect: "openai"}), 501, 10},
		"heavy":   {chat(Model{ID: "gpt-6-sol", Dialect: "openai"}), 15, 3 << 20},
		"azure":   {chat(Model{ID: "gpt-6-sol", Dialect: "azure"}), 501, 10},
		"many":    {responses, 501, 10},
	} {
		req := llm.Request{Messages: []llm.Message{{Role: llm.User, Parts: llm.Say("Look.")}}}
		for i := range c.images {
			req.Messages[0].Parts = append(req.Messages[0].Parts, llm.Image{MediaType: "image/png", Data: bytes.Repeat(fmt.Append(nil, i%10), c.size)})
		}
		newest := bytes.Repeat([]byte("x"), c.size)
		req.Messages[0].Parts = append(req.Messages[0].Parts, llm.Image{MediaType: "image/png", Data: newest})
		sent, err := c.send(req)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !bytes.Contains(sent, []byte(base64.StdEncoding.EncodeToString(newest))) || !strings.Contains(string(sent), "An image was here") {
			t.Errorf("%s: the newest image or the note is missing", name)
		}
	}
}

package anthropic_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/inspan/inspan/harnesstest"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/anthropic"
	"github.com/inspan/inspan/llm/anthropic/anthropictest"
)

func wired() harnesstest.WireParams {
	complete := strings.Index(anthropic.Sample, `"output_tokens":7}}`) + len(`"output_tokens":7}}`)
	return harnesstest.WireParams{Decode: anthropic.DecodeAll, Sample: anthropic.Sample, Parts: 3, Complete: complete}
}

func TestCutAnywhere(t *testing.T) { harnesstest.TestCuts(t, wired()) }

func FuzzDecode(f *testing.F) {
	harnesstest.FuzzWire(f, wired(), `data: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`+"\n\n")
}

func TestKeyStaysSecret(t *testing.T) {
	const key, bearer = "sk-ant-very-secret", "other-secret"
	var bases []string
	for _, answer := range []anthropictest.Answer{
		{Status: 401, Type: "authentication_error", Message: "bad key " + key + " and " + bearer},
		{Status: 500, Body: "oops: x-api-key: " + key + " Bearer " + bearer},
		{Parts: llm.Say("x"), ErrorAt: 2, Type: "api_error", Message: "key " + key},
	} {
		bases = append(bases, anthropictest.Start(t, &anthropictest.Server{Answer: func(*http.Request, []byte) anthropictest.Answer { return answer }}))
	}
	harnesstest.TestSecrets(t, []string{key, bearer}, func(base string) llm.Model {
		return &anthropic.Model{ID: "m", BaseURL: base, Header: http.Header{"Authorization": {"Bearer " + bearer}}, Key: func(context.Context) (string, error) { return key, nil }}
	}, bases...)
	harnesstest.TestNoKey(t, func(key func(context.Context) (string, error)) llm.Model { return &anthropic.Model{ID: "m", Key: key} })
}

// A real model if there is a key, the offline one otherwise. Any server that speaks Chat Completions works with
// openai.Model and its BaseURL.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/anthropic"
	"github.com/inspan/inspan/llm/openai"
	"github.com/inspan/inspan/llm/script"
)

func main() {
	agent := inspan.Agent{Model: pick()}
	answer, err := agent.Answer(context.Background(), "In one sentence: what is an agent harness?")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s says: %s\n", agent.Model.Info().Route(), answer)
}

func pick() llm.Model {
	env := func(name string) func(context.Context) (string, error) {
		return func(context.Context) (string, error) { return os.Getenv(name), nil }
	}
	switch {
	case os.Getenv("ANTHROPIC_API_KEY") != "":
		return &anthropic.Model{ID: "claude-sonnet-5-5", Key: env("ANTHROPIC_API_KEY")}
	case os.Getenv("OPENAI_API_KEY") != "":
		return &openai.Model{ID: "gpt-6-sol", Key: env("OPENAI_API_KEY")}
	case os.Getenv("OLLAMA_MODEL") != "":
		return &openai.Model{Provider: "ollama", ID: os.Getenv("OLLAMA_MODEL"), BaseURL: "http://localhost:11434/v1"}
	}
	return &script.Model{Steps: []script.Step{{Parts: llm.Say("Everything around a model that makes it an agent.")}}}
}

// Subagents of a coding agent. A file in the folder of the settings describes a kind of agent. Two of that kind
// work in parallel, each in a session of its own, with no more rights than their parent.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/inspan/inspan/coding"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm/script"
)

const counter = `---
name: counter
description: Counts things in files.
tools: bash
permissionMode: plan
---
Answer with one number.
`

// task makes two calls in one reply, so that they run at once. The task in a call is for the subagent's model,
// which is this offline model too.
const task = `call: spawn_agent {"agent":"counter","task":"bash: wc -l < clocks.txt\nsay: 3 lines"}
+ call: spawn_agent {"agent":"counter","task":"bash: wc -w < clocks.txt\nsay: 5 words"}
say: Both have counted.`

func main() {
	sandbox := coding.Init()
	dir, err := os.MkdirTemp("", "inspan-subagents-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	root := filepath.Join(dir, "work")
	for path, text := range map[string]string{
		"settings/config.toml":       "[agents]\nopen = 2 # at once\n",
		"settings/agents/counter.md": counter,
		"work/clocks.txt":            "hall clock\nkitchen clock\nsundial\n",
	} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			log.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			log.Fatal(err)
		}
	}
	host, err := coding.Agent(coding.Options{
		Sandbox: sandbox, Root: root, State: filepath.Join(dir, "state"), Model: &script.Model{},
		Settings: filepath.Join(dir, "settings", "config.toml"),
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	session, err := host.New(ctx, root)
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	for e, err := range session.Run(ctx, event.Say(task)) {
		if err != nil {
			log.Fatal(err)
		}
		if b, ok := e.Body.(event.Ended); ok {
			fmt.Println("a result:", b.Parts.Text())
		}
	}
	for _, child := range session.Status().Children {
		fmt.Printf("a session of its own: %s, in mode %s, %s\n", child.Agent, child.Mode, child.Returned.Reason)
	}
}

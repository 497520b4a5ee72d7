// The coding agent in a world of one's own: a tree of files in memory, with its modes, rules, limits and sessions.
package main

import (
	"context"
	"fmt"
	"log"
	"testing/fstest"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/coding"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/files"
	"github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/tool"
)

func main() {
	tree := files.New(fstest.MapFS{"plan.md": {Data: []byte("Ship on Monday.\n")}})
	world := tree.Env()
	host, err := coding.Agent(coding.Options{Sandbox: coding.NoSandbox(), Env: &world, Model: &script.Model{}, Mode: tool.ModeEdit})
	if err != nil {
		log.Fatal(err)
	}
	s, err := host.New(context.Background(), files.Root)
	if err != nil {
		log.Fatal(err)
	}
	c := inspan.Conductor{Session: s}
	err = c.Run(context.Background(), event.Say(`call: edit_file {"path":"plan.md","old":"Monday","new":"Tuesday"}`))
	fmt.Println(err, s.Close())
	fmt.Printf("%s", tree.Changes()[0].Data)
}

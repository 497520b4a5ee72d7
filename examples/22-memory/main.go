// An agent wholly in memory: it reads and changes a tree of files that is nowhere on the disk.
package main

import (
	"context"
	"fmt"
	"log"
	"testing/fstest"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/files"
	"github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/tool"
)

func main() {
	tree := files.New(fstest.MapFS{"plan.md": {Data: []byte("Ship on Monday.\n")}}) // or os.DirFS("docs"), which stays as it is
	agent := inspan.Agent{Model: &script.Model{}, Env: tree.Env(), Tools: files.Tools(), Mode: tool.ModeEdit}
	if _, err := agent.Answer(context.Background(), `call: edit_file {"path":"plan.md","old":"Monday","new":"Tuesday"}`); err != nil {
		log.Fatal(err)
	}
	for _, c := range tree.Changes() {
		fmt.Printf("%s: %s", c.Path, c.Data)
	}
}

// Skills of a program: folders with a SKILL.md. The model knows their names and descriptions from the start, and
// loads the text when it needs it. The tools that a loaded skill declares are allowed from then on, until the
// person's next message.
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

const winding = `---
name: winding
description: How the clocks of the museum are wound up. Load it before you wind one.
allowed-tools: Bash(touch wound/*)
---
Wind each clock eight turns, then make the file wound/NAME.
`

// task is for the offline model. The same command asks as long as the skill is not loaded.
const task = `bash: touch wound/before
call: skill {"name":"winding"}
bash: touch wound/after
say: The clock is wound up.`

func main() {
	sandbox := coding.Init()
	dir, err := os.MkdirTemp("", "inspan-skills-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	root, skills := filepath.Join(dir, "work"), filepath.Join(dir, "skills")
	for _, d := range []string{filepath.Join(root, "wound"), filepath.Join(skills, "winding")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			log.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(skills, "winding", "SKILL.md"), []byte(winding), 0o600); err != nil {
		log.Fatal(err)
	}
	host, err := coding.Agent(coding.Options{
		Sandbox: sandbox, Root: root, State: filepath.Join(dir, "state"), Model: &script.Model{},
		Skills: []string{skills}, Unattended: true, // calls that would ask are denied
	})
	if err != nil {
		log.Fatal(err)
	}
	session, err := host.New(context.Background(), root)
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	for e, err := range session.Run(context.Background(), event.Say(task)) {
		if err != nil {
			log.Fatal(err)
		}
		if b, ok := e.Body.(event.Judged); ok {
			fmt.Println(b.Action, "by", b.By)
		}
	}
	wound, err := os.ReadDir(filepath.Join(root, "wound"))
	fmt.Println("wound:", wound, err)
}

// Hooks: your own code at fixed points of a session. This one denies pushes, tells the model about a freeze when
// the session begins, and does not let a run end before the tests were run.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/inspan/inspan/coding"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/tool"
)

// release guards a branch before a release. Parallel calls use it concurrently.
type release struct{ tested atomic.Bool }

// At implements tool.Hook.
func (r *release) At(_ context.Context, p tool.Point) (tool.Outcome, error) {
	switch p.Moment {
	case tool.SessionStart:
		return tool.Outcome{Text: "The release branch is frozen."}, nil
	case tool.BeforeCall:
		if strings.Contains(string(p.Call.Args), "git push") {
			return tool.Outcome{Action: tool.Deny, By: "release", Reason: "nobody pushes during the freeze"}, nil
		}
	case tool.AfterCall:
		if strings.Contains(string(p.Call.Args), "test.sh") && p.Failed == "" {
			r.tested.Store(true)
		}
	case tool.RunStop:
		if !r.tested.Load() && p.Rounds == 0 {
			return tool.Outcome{Text: "Run test.sh before you finish."}, nil
		}
	}
	return tool.Outcome{}, nil
}

const steps = `-- reply --
bash: git push
-- reply --
I can't push. I am done.
-- reply --
bash: sh test.sh
-- reply --
Now I am done.
`

func main() {
	sandbox := coding.Init()
	dir, err := os.MkdirTemp("", "inspan-hooks-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	root := filepath.Join(dir, "work")
	if err := os.Mkdir(root, 0o700); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "test.sh"), []byte("exit 0\n"), 0o600); err != nil {
		log.Fatal(err)
	}
	model, err := script.Parse([]byte(steps))
	if err != nil {
		log.Fatal(err)
	}
	host, err := coding.Agent(coding.Options{
		Sandbox: sandbox, Root: root, State: filepath.Join(dir, "state"), Model: model, Mode: tool.ModeAuto, Hooks: []tool.Hook{&release{}},
	})
	if err != nil {
		log.Fatal(err)
	}
	session, err := host.New(context.Background(), root)
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	for e, err := range session.Run(context.Background(), event.Say("Publish it.")) {
		if err != nil {
			log.Fatal(err)
		}
		switch b := e.Body.(type) {
		case event.Replied:
			if text := b.Parts.Text(); text != "" {
				fmt.Println("model:", text)
			}
		case event.Hooked:
			fmt.Printf("hook at %s: %q\n", b.Moment, b.Text)
		case event.Judged:
			fmt.Println("call:", b.Action, b.Reason)
		}
	}
}

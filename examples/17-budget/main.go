// A budget. Once the session has spent it, or if the next prompt alone would exceed it, the model is not asked
// again, and the run stops. A higher limit lets it continue. Turns and time have limits of the same kind.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/coding"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/script"
)

// priced is a model with a price: a limit in dollars needs one.
type priced struct{ llm.Model }

// Info implements llm.Model.
func (p priced) Info() llm.Info {
	info := p.Model.Info()
	info.Prices = llm.Prices{{Input: 3, Output: 15}} // dollars per million tokens
	return info
}

const steps = `-- reply --
bash: ls
usage: 2000 100
-- reply --
bash: ls -a
usage: 4000 100
-- reply --
The folder is empty.
usage: 6000 100
`

func main() {
	sandbox := coding.Init()
	dir, err := os.MkdirTemp("", "inspan-budget-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	root := filepath.Join(dir, "work")
	if err := os.Mkdir(root, 0o700); err != nil {
		log.Fatal(err)
	}
	model, err := script.Parse([]byte(steps))
	if err != nil {
		log.Fatal(err)
	}
	host, err := coding.Agent(coding.Options{
		Sandbox: sandbox, Root: root, State: filepath.Join(dir, "state"), Model: priced{model},
		Limits: inspan.Limits{Cost: 0.02, Turns: 20},
	})
	if err != nil {
		log.Fatal(err)
	}
	session, err := host.New(context.Background(), root)
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	c := inspan.Conductor{Session: session, AfterRun: raise}
	if err := c.Run(context.Background(), event.Say("What is in the folder?")); err != nil {
		log.Fatal(err)
	}
}

// raise is called when a run has stopped. A higher limit without a message makes it continue.
func raise(_ context.Context, st inspan.Status) ([]event.Body, error) {
	fmt.Printf("stopped: %s, after %d turns and $%.4f of $%.2f\n", st.Stopped.Reason, st.Turns, st.Cost, st.Limits.Cost)
	if st.Stopped.Reason != event.ReasonBudget {
		return nil, nil
	}
	limits := st.Limits
	limits.Cost *= 10
	return []event.Body{event.Switched{Limits: &limits}, event.Said{}}, nil
}

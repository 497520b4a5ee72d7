package command

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/spf13/cobra"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/front/console"
)

//go:embed demo.txtar
var demoArchive []byte

// demoTask is the prompt of the demo.
const demoTask = "A test fails in this project. Find the bug, fix it, and show that the tests pass."

func (c *command) demo() *cobra.Command {
	var model string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch an agent fix a small project, offline and without a key",
		Long: "inspan writes a small Go project with a failing test and lets an agent fix it. The tools, the files and the tests are real.\n" +
			"The model is scripted unless you name one. The demo needs Go to run the project's tests.",
		Args: exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := layDemo()
			if err != nil {
				return err
			}
			f := runFlags{output: console.Text}
			f.Mode, f.Model = "auto", model
			if model == "" {
				f.Model = "script/" + d.script
			}
			host, err := c.host(&f)
			if err != nil {
				return err
			}
			s, err := host.New(cmd.Context(), d.project)
			if err != nil {
				return err
			}
			defer s.Close()
			say := c.console.Say
			say(fmt.Sprintf("project: %s (a real Go project with a failing test)\ntask:    %s", d.project, demoTask))
			if model == "" {
				say("model:   scripted: its words and calls were written beforehand; tools, files and tests are real")
			}
			say("")
			c.code = c.console.Run(cmd.Context(), s, event.Say(demoTask))
			say(fmt.Sprintf("\nsession log: %s/%s/log.jsonl", host.Dir, s.ID()))
			if model == "" {
				say("The model was scripted, so the tokens above are made up and it cost nothing.\n" +
					"The same with a real one: inspan demo --model PROVIDER/MODEL (see 'inspan models')")
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&model, "model", "", "use a real model, as `provider/model`")
	return cmd
}

// demoFiles are the files of the demo on disk.
type demoFiles struct {
	project string // folder with the project
	script  string // file with the replies of the scripted model
}

// layDemo writes a small real project with a failing test, and the script of a model that fixes it, into a new
// temporary folder.
func layDemo() (demoFiles, error) {
	top, err := os.MkdirTemp("", "inspan-demo-")
	if err != nil {
		return demoFiles{}, fmt.Errorf("lay out demo: %w", err)
	}
	// The script is itself an archive, so it can't be a file in the other.
	project, script, _ := strings.Cut(string(demoArchive), "-- script.txtar --\n")
	d := demoFiles{project: filepath.Join(top, "shop"), script: filepath.Join(top, "script.txtar")}
	for _, f := range txtar.Parse([]byte(project)).Files {
		path := filepath.Join(top, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return demoFiles{}, fmt.Errorf("lay out demo: %w", err)
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			return demoFiles{}, fmt.Errorf("lay out demo: %w", err)
		}
	}
	if err := os.WriteFile(d.script, []byte(script), 0o644); err != nil {
		return demoFiles{}, fmt.Errorf("lay out demo: %w", err)
	}
	return d, nil
}

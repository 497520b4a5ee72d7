package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/console"
	"github.com/inspan/inspan/internal/demo"
	"github.com/inspan/inspan/internal/policy"
	"github.com/inspan/inspan/llm"
)

func (c *command) demo() *cobra.Command {
	var model string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch an agent mend a small project, offline and without a key",
		Long: "Lay out a small Go project with a failing test and let an agent mend it. The tools, the files and the tests are real;\n" +
			"the model is scripted unless one is named. It needs Go to run the project's tests.",
		Args: exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := demo.Lay("")
			if err != nil {
				return err
			}
			f := runFlags{output: console.Text}
			f.Mode, f.Model = policy.ModeAuto, model
			if model == "" {
				f.Model = "script/" + d.Script
			}
			host, err := c.host(&f)
			if err != nil {
				return err
			}
			s, err := host.New(cmd.Context(), d.Project)
			if err != nil {
				return err
			}
			defer s.Close()
			say := c.console.Say
			say(fmt.Sprintf("project: %s (a real Go project with a failing test)\ntask:    %s", d.Project, demo.Task))
			if model == "" {
				say("model:   scripted: its words and calls were written beforehand; tools, files and tests are real")
			}
			say("")
			c.code = c.console.Run(cmd.Context(), s, event.Said{Parts: llm.Say(demo.Task)})
			say(fmt.Sprintf("\nsession log: %s/%s/log.jsonl", host.Dir, s.ID()))
			if model == "" {
				say("The model was scripted, so the tokens above are made up and it cost nothing.\n" +
					"The same with a real one: inspan demo --model PROVIDER/MODEL (see 'inspan models')")
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&model, "model", "", "real model to use, as `provider/model`")
	return cmd
}

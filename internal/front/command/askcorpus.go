package command

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/front/console"
)

func (c *command) askCorpus() *cobra.Command {
	f, q := runFlags{output: console.Text}, console.Corpus{}
	cmd := &cobra.Command{
		Use:   `ask-corpus DIR|URL "question"`,
		Short: "Answer a question from far more text than a model can read",
		Long: "The agent works in the folder DIR and only reads. It searches the text, and a small model reads the pieces that matter.\n" +
			"It opens only the sources that you name and what lies below them.\n" +
			"inspan fetches the pages that you name once, before the agent begins. The agent itself has no network.\n" +
			"inspan prints the answer and the passages that it rests on, and compares each passage with its source first.\n" +
			"If the agent gives no such answer, the command fails with exit code 14. docs/CORPUS.md describes it.",
		Example: "  inspan ask-corpus docs \"which limits apply to uploads, and where do they stand?\"\n" +
			"  inspan ask-corpus . --source session:20261127-142532-j4f1 \"why was the cache deleted?\"\n" +
			"  inspan ask-corpus logs --budget 0.50 --json \"which requests failed on Friday?\" | jq .evidence\n" +
			"  inspan ask-corpus https://example.com/terms \"how long does a refund take?\"",
		Args: exactly(2, 2, "a DIR or URL and a question"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if q.Question = args[1]; strings.TrimSpace(q.Question) == "" {
				return misused("the question is empty")
			}
			f.cwd = q.Of(args[0], cmd.Flags().Changed("source"))
			if err := f.check(cmd); err != nil {
				return err
			}
			f.Sources = q.Sources
			host, err := c.host(&f)
			if err != nil {
				return err
			}
			root, err := workspace(f.cwd)
			if err == nil {
				err = q.Check(cmd.Context(), host.Store, root)
			}
			if err != nil {
				return err
			}
			s, err := host.New(cmd.Context(), f.cwd)
			if err != nil {
				return err
			}
			defer s.Close()
			c.code = q.Run(cmd.Context(), c.console, s, event.Say(q.Task()))
			return nil
		},
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&q.Sources, "source", []string{"."},
		"`source` to read: a file, a folder, a URL, session:ID or sessions (all past ones); repeatable")
	fl.StringVar(&f.Model, "model", "", "model as `provider/model`, or a known name such as sonnet; see 'inspan models'")
	fl.StringVar(&f.Small, "small", "", "`model` that reads the pieces (default: small of [agents] in the settings, or the same model)")
	fl.Var((*dollars)(&f.MaxCost), "budget", "maximum cost in US `dollars`; 0 means no limit (default: the limits of the settings)")
	fl.BoolVar(&q.JSON, "json", false, "print one JSON object")
	return cmd
}

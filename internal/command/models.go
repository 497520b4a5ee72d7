package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/app"
	"github.com/inspan/inspan/internal/console"
)

func (c *command) models() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "models [PROVIDER]",
		Short: "List providers, their state and their models",
		Long: "inspan lists the providers, which of them are ready, the models of local servers, and the default model.\n" +
			"With a PROVIDER, it lists the models that the provider reports. What a server has refused in a model's requests is\n" +
			"listed with its day: inspan leaves it out for a month.\n\n" +
			"Models are named provider/model, such as anthropic/claude-sonnet-5-5 or ollama/qwen3-coder. You can add any server\n" +
			"that speaks the OpenAI Chat Completions API in the settings, with kind = \"openai\" and a base_url.",
		Args: exactly(0, 1, "at most one PROVIDER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := app.Load(c.self)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if len(args) == 1 {
				found, err := a.Providers.DiscoverAt(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				return console.Models(out, found)
			}
			if err := console.Providers(out, a.Providers.List()); err != nil {
				return err
			}
			if found := a.Providers.Discover(cmd.Context()); len(found) > 0 {
				fmt.Fprintln(out)
				if err := console.Models(out, found...); err != nil {
					return err
				}
			}
			console.Refused(out, a.Providers.Refused())
			choice, err := a.Providers.Model(cmd.Context(), "", "")
			if err != nil {
				fmt.Fprintf(out, "\n%v\n", err)
				return nil
			}
			fmt.Fprintf(out, "\nWithout --model: %s\nsettings: %s\n", choice.Model.Info().Route(), a.ConfigPath)
			return nil
		},
	}
	cmd.AddCommand(c.modelsLogin(), c.modelsLogout())
	return cmd
}

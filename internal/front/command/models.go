package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/front/console"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/providers"
	"github.com/inspan/inspan/llm/catalog"
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
	cmd.AddCommand(c.modelsLogin(), c.modelsLogout(), c.modelsPrices())
	return cmd
}

func (c *command) modelsPrices() *cobra.Command {
	from := ""
	cmd := &cobra.Command{
		Use:   "prices",
		Short: "List what models cost, or take another price book",
		Long: "inspan lists the models of its price book with their windows and prices in US dollars per million tokens, and the day on\n" +
			"which each vendor's were checked. With --from, a FILE of the same form takes the place of the built-in book, until you\n" +
			"remove prices.toml from the folder of your settings. The form is that of llm/catalog/prices.toml in the source.\n" +
			"A price of your own for one model stands in the settings: providers.NAME.models.ID.price.",
		Args: exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := cmd.OutOrStdout()
			if from != "" {
				set, err := app.Open(c.self)
				if err != nil {
					return err
				}
				book, err := providers.TakePrices(set, from)
				if err != nil {
					return misused("--from: %v", err)
				}
				return console.Prices(out, book, providers.PricesPath(set))
			}
			a, err := app.Load(c.self)
			if err != nil {
				return err
			}
			if a.Providers.Prices != nil {
				return console.Prices(out, a.Providers.Prices, providers.PricesPath(a.Installation))
			}
			return console.Prices(out, catalog.BuiltIn(), "built in")
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "`file` of prices that takes the place of the built-in ones")
	return cmd
}

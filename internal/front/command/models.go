package command

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/providers"
	"github.com/inspan/inspan/internal/models/catalog"
	"github.com/inspan/inspan/internal/models/heal"
	"github.com/inspan/inspan/internal/view/words"
)

func (c *command) models() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "models [PROVIDER]",
		Short: "List providers, their state and their models",
		Long: "inspan lists the providers, which of them are ready, the models of local servers, and the default model.\n" +
			"With a PROVIDER, it lists the models that the provider reports. If a server has refused a part of a model's requests,\n" +
			"inspan lists that with the day, and leaves the part out for a month.\n\n" +
			"Models are named provider/model, such as anthropic/claude-sonnet-5-5 or ollama/qwen3-coder. You can add any server\n" +
			"that speaks the OpenAI Chat Completions API in the settings, with kind = \"openai\" and a base_url.",
		Args: exactly(0, 1, "at most one PROVIDER"),
		RunE: c.withApp(func(cmd *cobra.Command, a *app.App, args []string) error {
			out := cmd.OutOrStdout()
			if len(args) == 1 {
				found, err := a.Providers.DiscoverAt(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				return printModels(out, found)
			}
			if err := printProviders(out, a.Providers.List()); err != nil {
				return err
			}
			if found := a.Providers.Discover(cmd.Context()); len(found) > 0 {
				fmt.Fprintln(out)
				if err := printModels(out, found...); err != nil {
					return err
				}
			}
			printRefused(out, a.Providers.Refused())
			choice, err := a.Providers.Model(cmd.Context(), "", "")
			if err != nil {
				fmt.Fprintf(out, "\n%v\n", err)
				return nil
			}
			fmt.Fprintf(out, "\nWithout --model: %s\nsettings: %s\n", choice.Model.Info().Route(), a.ConfigPath)
			return nil
		}),
	}
	cmd.AddCommand(c.modelsLogin(), c.modelsLogout(), c.modelsPrices())
	return cmd
}

func (c *command) modelsPrices() *cobra.Command {
	from := ""
	cmd := &cobra.Command{
		Use:   "prices",
		Short: "List the prices of models, or use another price book",
		Long: "inspan lists the models of its price book with their windows and prices in US dollars per million tokens, and the day on\n" +
			"which each vendor's were checked. With --from, a FILE of the same form replaces the built-in book, until you\n" +
			"remove prices.toml from the folder of your settings. The form is that of internal/models/catalog/prices.toml in the source.\n" +
			"To set your own price for one model, use the setting providers.NAME.models.ID.price.",
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
				return printPrices(out, book, providers.PricesPath(set))
			}
			a, err := c.installation()
			if err != nil {
				return err
			}
			if a.Providers.Prices != nil {
				return printPrices(out, a.Providers.Prices, providers.PricesPath(a.Installation))
			}
			return printPrices(out, catalog.BuiltIn(), "built in")
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "`file` of prices that replaces the built-in ones")
	return cmd
}

// printPrices prints a price book and its origin.
func printPrices(out io.Writer, b *catalog.Book, from string) error {
	w := text.NewTable(out, "MODEL", "WINDOW", "INPUT", "CACHED", "WRITTEN", "OUTPUT", "FROM")
	var also [][2]string // models, and what changes their prices
	var checked []string
	figure := func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
	for _, v := range b.Vendors {
		checked = append(checked, text.Line(v.Name)+" "+v.Checked)
		for _, m := range v.Models {
			var tiers []string
			if m.Long.Above > 0 {
				tiers = append(tiers, fmt.Sprintf("above %s x%s, reply x%s", text.Thousands(m.Long.Above), figure(m.Long.Prompt), figure(m.Long.Reply)))
			}
			for _, name := range slices.Sorted(maps.Keys(m.Tiers)) {
				if m.Tiers[name] != 1 {
					tiers = append(tiers, text.Line(name)+" x"+figure(m.Tiers[name]))
				}
			}
			for _, p := range m.Prices {
				w.Row(text.Line(v.Name)+"/"+text.Line(m.ID), text.Thousands(m.Window), figure(p.Input),
					figure(p.CacheRead), figure(p.CacheWrite), figure(p.Output), p.From)
			}
			if len(tiers) > 0 {
				also = append(also, [2]string{text.Line(m.ID), strings.Join(tiers, ", ")})
			}
		}
	}
	if len(also) > 0 {
		w.Row()
		w.Row("MODEL", "LONG PROMPTS AND TIERS")
	}
	for _, a := range also {
		for line := range strings.SplitSeq(words.Wrap(a[1], narrow/2), "\n") {
			w.Row(a[0], line)
			a[0] = ""
		}
	}
	w.Row()
	w.Row("US dollars per million tokens; the book is " + text.Line(from))
	w.Row(words.Wrap("checked: "+strings.Join(checked, ", "), narrow))
	return w.Flush()
}

// narrow is how many cells a line of a long list has, so that it fits the usual terminal.
const narrow = 79

// printProviders prints the providers of models.
func printProviders(out io.Writer, providers []providers.Provider) error {
	w := text.NewTable(out, "PROVIDER", "WIRE", "STATE", "DEFAULT MODEL", "ADDRESS")
	for _, p := range providers {
		state := "ready"
		switch {
		case !p.Ready:
			state = p.Need
		case p.KeyEnv == "" && p.KeyCommand == "":
			state = "no key needed"
		}
		w.Row(p.Name, p.Kind, state, orDash(p.Default), orDash(text.Address(p.BaseURL)))
	}
	w.Row("script", "-", "offline", "commands", "-")
	return w.Flush()
}

// printModels prints the models that providers have.
func printModels(out io.Writer, found ...providers.Found) error {
	w := text.NewTable(out, "MODEL", "WINDOW", "IMAGES", "TOOLS")
	for _, f := range found {
		for _, m := range f.Models {
			window := strconv.Itoa(providers.AssumedWindow) + ", assumed"
			if known := cmp.Or(f.Provider.Models[m.Model].Window, m.Window); known > 0 {
				window = strconv.Itoa(known)
			}
			w.Row(fmt.Sprintf("%s/%s", f.Provider.Name, text.Line(m.Model)), window, yesOrDash(m.Images), yesOrDash(!m.NoTools))
		}
		if len(f.Models) == 0 {
			w.Row(fmt.Sprintf("%s has no models yet", f.Provider.Name), "", "")
		}
	}
	return w.Flush()
}

func yesOrDash(b bool) string {
	if b {
		return "yes"
	}
	return "-"
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// printRefused lists the fields of requests that servers have refused, and the consequences.
func printRefused(out io.Writer, all []*heal.Facts) {
	head := "\nRefused by servers, and so changed in requests:\n"
	for _, f := range all {
		for _, fact := range f.List() {
			fmt.Fprintf(out, "%s%s, since %s: %s (%s)\n", head, text.Line(f.Route), fact.At.Format(time.DateOnly), text.Line(fact.Words()), text.Short(fact.Said, 200))
			head = ""
		}
	}
}

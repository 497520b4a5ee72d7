package main

import (
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/app"
	"github.com/inspan/inspan/internal/providers"
)

func (c *command) models() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "models [PROVIDER]",
		Short: "List providers, which are ready, and the models that are found",
		Long: "List providers, which are ready, the models of servers that run here, and the model that would be taken. With a PROVIDER, list\n" +
			"the models it says it has.\n\n" +
			"Models are named provider/model, such as anthropic/claude-sonnet-5-5 or ollama/qwen3-coder. Any server that speaks the OpenAI\n" +
			"Chat Completions API can be added in the settings with kind = \"openai\" and a base_url.",
		Args: exactly(0, 1, "[PROVIDER]"),
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
				return printFound(out, []providers.Found{found})
			}
			if err := printProviders(out, a.Providers.List()); err != nil {
				return err
			}
			if found := a.Providers.Discover(cmd.Context()); len(found) > 0 {
				fmt.Fprintln(out)
				if err := printFound(out, found); err != nil {
					return err
				}
			}
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

func printProviders(out io.Writer, providers []providers.Provider) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PROVIDER\tWIRE\tSTATE\tDEFAULT MODEL\tADDRESS")
	for _, p := range providers {
		state := "ready"
		switch {
		case !p.Ready:
			state = p.Need
		case p.KeyEnv == "" && p.KeyCommand == "":
			state = "no key needed"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", p.Name, p.Kind, state, orDash(p.Default), orDash(p.BaseURL))
	}
	fmt.Fprintln(w, "script\t-\toffline\tcommands\t-")
	return w.Flush()
}

func printFound(out io.Writer, found []providers.Found) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "MODEL\tWINDOW\tIMAGES\tTOOLS")
	for _, f := range found {
		for _, m := range f.Models {
			window := "unknown"
			if m.Window > 0 {
				window = strconv.Itoa(m.Window)
			}
			fmt.Fprintf(w, "%s/%s\t%s\t%s\t%s\n", f.Provider.Name, m.Model, window, yes(m.Images), yes(!m.NoTools))
		}
		if len(f.Models) == 0 {
			fmt.Fprintf(w, "%s has no models yet\t\t\t\n", f.Provider.Name)
		}
	}
	return w.Flush()
}

func yes(b bool) string {
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

package console

import (
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/install/providers"
	"github.com/inspan/inspan/llm/heal"
)

// Providers prints who provides models.
func Providers(out io.Writer, providers []providers.Provider) error {
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
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", p.Name, p.Kind, state, orDash(p.Default), orDash(text.Address(p.BaseURL)))
	}
	fmt.Fprintln(w, "script\t-\toffline\tcommands\t-")
	return w.Flush()
}

// Models prints the models that providers have.
func Models(out io.Writer, found ...providers.Found) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "MODEL\tWINDOW\tIMAGES\tTOOLS")
	for _, f := range found {
		for _, m := range f.Models {
			window := "unknown"
			if m.Window > 0 {
				window = strconv.Itoa(m.Window)
			}
			fmt.Fprintf(w, "%s/%s\t%s\t%s\t%s\n", f.Provider.Name, text.Line(m.Model), window, yes(m.Images), yes(!m.NoTools))
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

// Refused lists what servers have refused in the requests of models, and what became of it.
func Refused(out io.Writer, all []*heal.Facts) {
	head := "\nRefused by servers, and so changed in requests:\n"
	for _, f := range all {
		for _, fact := range f.List() {
			fmt.Fprintf(out, "%s%s, since %s: %s (%s)\n", head, text.Line(f.Route), fact.At.Format(time.DateOnly), text.Line(fact.Words()), text.Short(fact.Said, 200))
			head = ""
		}
	}
}

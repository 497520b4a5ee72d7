package command

import (
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/internal/front/console"
)

func (c *command) trace() *cobra.Command {
	return group("trace", "Show what sessions did when, from their logs alone", c.traceShow(), c.traceExport())
}

func (c *command) traceShow() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show [ID]",
		Short: "Draw requests, calls and waits of a session on a time line",
		Long: "Every run has a time line of its own. Agents of a session are drawn where they worked for it.\n" +
			"Of a request to a model the light part is the time to the first of its reply. Dots are waits: for a person, or before\n" +
			"a request is sent again.",
		Example: "  inspan trace show\n  inspan trace show --json last | jq '.spans[] | select(.kind == \"call\")'",
		Args:    exactly(0, 1, "at most one ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, id, err := c.seen(cmd.Context(), named(args))
			if err != nil {
				return err
			}
			t, err := console.Trace(cmd.Context(), a.Store(), id, false)
			switch {
			case err != nil:
				return err
			case asJSON:
				return console.Indented(cmd.OutOrStdout(), t)
			}
			return console.Waterfall(cmd.OutOrStdout(), t, width(cmd.OutOrStdout()), time.Now())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (c *command) traceExport() *cobra.Command {
	var to, semconv string
	var content bool
	cmd := &cobra.Command{
		Use:   "export [ID]",
		Short: "Export the trace of a session to a receiver of OpenTelemetry",
		Long: "The spans of the session and of its agents have the names of the semantic conventions for generative AI, and\n" +
			"hold nothing that was said or done unless you say --content.\n" +
			"Without --to inspan prints them, a request (OTLP in JSON) on each line. A session that is exported again has the same\n" +
			"ids. Requests have the headers of OTEL_EXPORTER_OTLP_HEADERS, and the attributes of OTEL_RESOURCE_ATTRIBUTES.",
		Example: "  inspan trace export last --to http://127.0.0.1:4318\n" +
			"  inspan trace export --to $OTEL_EXPORTER_OTLP_ENDPOINT --otel-semconv 1.36.0",
		Args: exactly(0, 1, "at most one ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, id, err := c.seen(cmd.Context(), named(args))
			if err != nil {
				return err
			}
			t, err := console.Trace(cmd.Context(), a.Store(), id, content)
			if err != nil {
				return err
			}
			return console.ExportTrace(cmd.Context(), cmd.OutOrStdout(), t, console.Receiver{
				URL: to, Headers: os.Getenv("OTEL_EXPORTER_OTLP_HEADERS"), Semconv: semconv, Release: inspan.Version,
				Attributes: console.Resource(os.Getenv), Content: content,
			})
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "`URL` of the receiver; inspan adds /v1/traces to one without a path")
	cmd.Flags().BoolVar(&content, "content", false, "include messages, and arguments and results of calls, without secrets as the log is")
	cmd.Flags().StringVar(&semconv, "otel-semconv", "",
		"`version` of the conventions: "+strings.Join(console.Semconvs(), ", ")+" (default: the last)")
	return cmd
}

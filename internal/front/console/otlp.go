package console

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/internal/view/words"
)

// Receiver is who takes traces.
type Receiver struct {
	URL     string // without a path: the usual one is added; empty: traces are printed
	Headers string // as in OTEL_EXPORTER_OTLP_HEADERS
	Semconv string // one of [Semconvs]; empty: the last
	Release string // of this program
	Content bool   // the trace has content
	// Attributes are those of OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME.
	Attributes map[string]string
}

// Semconvs are the versions of the semantic conventions that there are.
func Semconvs() []string { return transcript.Semconvs() }

// ExportTrace sends a trace to a receiver, or prints it, a request on each line. What the receiver can't
// be is a [words.Misuse].
func ExportTrace(ctx context.Context, out io.Writer, t transcript.Trace, to Receiver) error {
	requests, err := transcript.OTLP{Semconv: to.Semconv, Release: to.Release, Attributes: to.Attributes, Content: to.Content}.Traces(t)
	if err != nil {
		return words.Misuse{Err: fmt.Errorf("--otel-semconv: %w", err)}
	}
	if to.URL == "" {
		for _, raw := range requests {
			if _, err := fmt.Fprintf(out, "%s\n", raw); err != nil {
				return err
			}
		}
		return nil
	}
	at, err := url.Parse(to.URL)
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" {
		return words.Misuse{Err: fmt.Errorf("--to: %q is no address of a receiver; use http://HOST:4318", to.URL)}
	}
	if strings.Trim(at.Path, "/") == "" {
		at.Path = "/v1/traces"
	}
	receiver := running.Receiver{Headers: to.Headers}
	for _, raw := range requests {
		if err := receiver.Send(ctx, at.String(), raw); err != nil {
			return fmt.Errorf("export the trace: %w", err)
		}
	}
	return nil
}

// Resource are the attributes of what is observed that variables of OpenTelemetry name.
func Resource(variable func(name string) string) map[string]string {
	return running.ResourceOf(variable)
}

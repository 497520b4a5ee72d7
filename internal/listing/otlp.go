package listing

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/netguard"
	"github.com/inspan/inspan/internal/transcript"
	"github.com/inspan/inspan/internal/words"
)

// Receiver is who takes traces.
type Receiver struct {
	URL     string // without a path: the usual one is added; empty: traces are printed
	Headers string // as in OTEL_EXPORTER_OTLP_HEADERS
	Semconv string // one of [Semconvs]; empty: the last
	Release string // of this program
}

// Semconvs are the versions of the semantic conventions that there are.
func Semconvs() []string { return transcript.Semconvs() }

// ExportTrace sends a trace to a receiver, or prints it, a request on each line. What the receiver can't
// be is a [words.Misuse].
func ExportTrace(ctx context.Context, out io.Writer, t transcript.Trace, to Receiver) error {
	requests, err := transcript.OTLP(t, to.Semconv, to.Release)
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
	for _, raw := range requests {
		if err := sendTrace(ctx, at.String(), to.Headers, raw); err != nil {
			return fmt.Errorf("export the trace: %w", err)
		}
	}
	return nil
}

const (
	mostAnswer  = 64 << 10
	mostSending = 10 * time.Second // of one request, as exporters have it
)

func sendTrace(ctx context.Context, to, headers string, raw []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(raw))
	if err != nil {
		return err
	}
	for pair := range strings.SplitSeq(headers, ",") {
		name, value, is := strings.Cut(pair, "=")
		if value, err = url.PathUnescape(strings.TrimSpace(value)); is && err == nil {
			req.Header.Set(strings.TrimSpace(name), value)
		}
	}
	req.Header.Set("Content-Type", "application/json")
	// The person has named the host, and the headers are for no other.
	resp, err := (&netguard.Guard{Local: netguard.Anywhere(), MaxBytes: mostAnswer, Timeout: mostSending}).Unredirected().Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode/100 != 2 {
		err = fmt.Errorf("the receiver answers %s: %s", resp.Status, words.OneLine(string(said), 200))
	}
	var partly struct {
		Success struct {
			Rejected json.RawMessage `json:"rejectedSpans"` // a number, or one in quotes
			Why      string          `json:"errorMessage"`
		} `json:"partialSuccess"`
	}
	if err == nil && json.Unmarshal(said, &partly) == nil {
		if n := strings.Trim(string(partly.Success.Rejected), `"`); n != "" && n != "0" && n != "null" {
			err = fmt.Errorf("the receiver has rejected %s spans: %s", n, words.OneLine(partly.Success.Why, 200))
		}
	}
	return err
}

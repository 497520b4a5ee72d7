package running

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/internal/view/words"
)

// Receiver accepts traces and metrics; the standard variables of OpenTelemetry name it.
type Receiver struct {
	Traces, Metrics string            // whole addresses; empty if it accepts none
	Headers         string            // as in OTEL_EXPORTER_OTLP_HEADERS
	Timeout         time.Duration     // of one request; 0 means 10 seconds
	Attributes      map[string]string // of the resource
	Content         bool              // it gets the content of spans
	Protobuf        []string          // those of the addresses that accept requests in protobuf; the others accept JSON
}

// ReceiverOf returns the receiver that variables name; nil if there is none. The error is for a person, and gives
// the reason why a named receiver gets nothing.
func ReceiverOf(variable func(name string) string) (*Receiver, error) {
	if strings.EqualFold(variable("OTEL_SDK_DISABLED"), "true") {
		return nil, nil
	}
	const otlp = "OTEL_EXPORTER_OTLP_"
	r := &Receiver{Headers: variable(otlp + "HEADERS"), Attributes: ResourceOf(variable)}
	switch strings.ToLower(variable("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT")) {
	case "true", "span_only", "span_and_event":
		r.Content = true
	}
	for _, signal := range []struct {
		name, path string
		address    *string
	}{{"TRACES", "v1/traces", &r.Traces}, {"METRICS", "v1/metrics", &r.Metrics}} {
		whole, base := variable(otlp+signal.name+"_ENDPOINT"), variable(otlp+"ENDPOINT")
		if whole == "" && base != "" {
			whole = strings.TrimSuffix(base, "/") + "/" + signal.path
		}
		if whole == "" || variable("OTEL_"+signal.name+"_EXPORTER") == "none" {
			continue
		}
		protocol := cmp.Or(variable(otlp+signal.name+"_PROTOCOL"), variable(otlp+"PROTOCOL"))
		switch protocol {
		case "", "http/json":
		case "http/protobuf":
			r.Protobuf = append(r.Protobuf, whole)
		default:
			return nil, fmt.Errorf("traces and metrics are not exported: %sPROTOCOL is %q, and inspan speaks only http/json and http/protobuf", otlp, protocol)
		}
		if at, err := url.Parse(whole); err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" {
			return nil, fmt.Errorf("traces and metrics are not exported: %sENDPOINT is not an address such as http://127.0.0.1:4318", otlp)
		}
		*signal.address = whole
	}
	if millis, err := strconv.Atoi(variable(otlp + "TIMEOUT")); err == nil && millis > 0 {
		r.Timeout = time.Duration(millis) * time.Millisecond
	}
	if r.Traces == "" && r.Metrics == "" {
		return nil, nil
	}
	return r, nil
}

// ResourceOf returns the attributes in OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME.
func ResourceOf(variable func(name string) string) map[string]string {
	out := map[string]string{}
	pairs(variable("OTEL_RESOURCE_ATTRIBUTES"), func(name, value string) { out[name] = value })
	if name := variable("OTEL_SERVICE_NAME"); name != "" {
		out["service.name"] = name
	}
	return out
}

// pairs parses a list in the form of W3C Baggage: name=value,name=value, with escaped values.
func pairs(list string, each func(name, value string)) {
	for pair := range strings.SplitSeq(list, ",") {
		name, value, is := strings.Cut(pair, "=")
		if value, err := url.PathUnescape(strings.TrimSpace(value)); is && err == nil {
			each(strings.TrimSpace(name), value)
		}
	}
}

const (
	mostAnswer  = 64 << 10
	mostSending = 10 * time.Second // of one request, as with other exporters
)

// laterError means that a receiver may accept a request later.
type laterError struct{ error }

// Send sends a request, given in JSON, to one of the receiver's addresses. The error does not contain the
// headers.
func (r *Receiver) Send(ctx context.Context, to string, raw []byte) error {
	kind, binary := "application/json", slices.Contains(r.Protobuf, to)
	if binary {
		var err error
		if raw, err = protobuf(raw); err != nil {
			return err
		}
		kind = "application/x-protobuf"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(raw))
	if err != nil {
		return err
	}
	pairs(r.Headers, req.Header.Set)
	req.Header.Set("Content-Type", kind)
	// The person has named the host, and the headers are for no other.
	guard := netguard.Guard{Local: netguard.Anywhere(), MaxBytes: mostAnswer, Timeout: cmp.Or(r.Timeout, mostSending)}
	resp, err := guard.Unredirected().Do(req)
	if err != nil {
		if failed := (*url.Error)(nil); errors.As(err, &failed) {
			err = failed.Err // the address may contain a key
		}
		return &laterError{err}
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return &laterError{err}
	case resp.StatusCode/100 == 2 && binary:
		if n, why := protoRejected(said); n > 0 {
			return fmt.Errorf("the receiver rejected %d spans or points: %s", n, words.OneLine(why, 200))
		}
		return nil
	case resp.StatusCode/100 == 2:
		return rejected(said)
	}
	err = fmt.Errorf("the receiver answers %s: %s", resp.Status, words.OneLine(string(said), 200))
	if resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode > http.StatusInternalServerError {
		return &laterError{err}
	}
	return err
}

// rejected returns the part of a request that an answer rejects; nil if there is none.
func rejected(said []byte) error {
	var partly struct {
		Success struct {
			Spans  json.RawMessage `json:"rejectedSpans"` // a number, or one in quotes
			Points json.RawMessage `json:"rejectedDataPoints"`
			Why    string          `json:"errorMessage"`
		} `json:"partialSuccess"`
	}
	if json.Unmarshal(said, &partly) != nil {
		return nil //nolint:nilerr // text that is not JSON rejects nothing
	}
	for what, raw := range map[string]json.RawMessage{"spans": partly.Success.Spans, "points": partly.Success.Points} {
		if n := strings.Trim(string(raw), `"`); n != "" && n != "0" && n != "null" {
			return fmt.Errorf("the receiver rejected %s %s: %s", n, what, words.OneLine(partly.Success.Why, 200))
		}
	}
	return nil
}

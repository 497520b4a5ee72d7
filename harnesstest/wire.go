package harnesstest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/inspan/inspan/llm"
)

// WireParams say how an adapter reads its vendor's stream.
type WireParams struct {
	// Decode reads a stream. Shown is all that was streamed of the reply. A stream that is
	// neither done nor failed is an error, too.
	Decode func(in io.Reader) (reply llm.Reply, shown string, err error)
	Sample string // a stream without a flaw
	Parts  int    // of the reply in it
	// Complete is how much of the sample has the whole reply, in bytes: what follows may
	// be lost. Trailer says that usage and ids are among that.
	Complete int
	Trailer  bool
	// OwnIDs says that each call has an id of its own, whatever the vendor sends.
	OwnIDs bool
	// Check looks at a reply further. Nil: there is nothing more to look at.
	Check func(t testing.TB, reply llm.Reply, shown string)
}

// TestCuts proves that a stream which breaks off is never taken for a whole reply, wherever
// that happens.
func TestCuts(t *testing.T, p WireParams) {
	whole, _, err := p.Decode(strings.NewReader(p.Sample))
	if err != nil || len(whole.Parts) != p.Parts || p.Complete < 1 {
		t.Fatalf("the sample has a flaw: %d parts of %+v, %v", len(whole.Parts), whole, err)
	}
	for n := range len(p.Sample) {
		got, _, err := p.Decode(strings.NewReader(p.Sample[:n]))
		if n >= p.Complete {
			if p.Trailer {
				got.Usage, got.RequestID = whole.Usage, whole.RequestID
			}
			if err != nil || !reflect.DeepEqual(whole, got) {
				t.Fatalf("cut at %d: %+v, %v", n, got, err)
			}
		} else if e := llm.AsError(err); e == nil || e.Kind != llm.KindStreamCut {
			t.Fatalf("cut at %d: %+v, %v", n, got, err)
		}
	}
}

// FuzzWire proves that whatever a vendor sends is a reply that can be used or an [*llm.Error],
// and that it does not matter in which pieces it comes. It begins with the sample, damaged in
// several ways, and with the other streams.
func FuzzWire(f *testing.F, p WireParams, others ...string) {
	for _, s := range append(damaged(p.Sample), others...) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		whole, shown, err := p.Decode(strings.NewReader(in))
		bits, bitShown, bitErr := p.Decode(iotest.OneByteReader(strings.NewReader(in)))
		if (err == nil) != (bitErr == nil) || shown != bitShown || err == nil && !reflect.DeepEqual(whole, bits) {
			t.Fatalf("at once: %+v %v\nby bytes: %+v %v", whole, err, bits, bitErr)
		}
		if err != nil {
			if e := (*llm.Error)(nil); !errors.As(err, &e) {
				t.Fatalf("error is a %T", err)
			}
			return
		}
		p.usable(t, whole)
		if p.Check != nil {
			p.Check(t, whole, shown)
		}
	})
}

// usable holds that the calls of a reply can be run and answered.
func (p WireParams) usable(t testing.TB, reply llm.Reply) {
	ids := map[string]bool{}
	for _, c := range reply.Calls() {
		var object map[string]any
		if json.Unmarshal(c.Args, &object) != nil || object == nil {
			t.Fatalf("arguments are no object: %+v", c)
		}
		if p.OwnIDs && (c.ID == "" || ids[c.ID]) {
			t.Fatalf("the id is not its own: %+v", c)
		}
		ids[c.ID] = true
	}
}

// damaged is a stream with other line ends, cut, and with its events in other orders.
func damaged(sample string) []string {
	out := []string{sample, strings.ReplaceAll(sample, "\n", "\r\n"), strings.ReplaceAll(sample, "\n", "\r")}
	for n := 0; n < len(sample); n += 40 {
		out = append(out, sample[:n])
	}
	events := strings.SplitAfter(sample, "\n\n")
	for i := 1; i < len(events); i++ {
		events[i-1], events[i] = events[i], events[i-1]
		out = append(out, strings.Join(events, ""))
	}
	return out
}

// TestSecrets proves that the error of a model which is refused, or not reached, holds none of
// its secrets, although the vendor repeats them. At makes the model that has its vendor at an
// address; addresses are those that refuse it, and those that nobody answers at are tried as
// well.
func TestSecrets(t *testing.T, secrets []string, at func(base string) llm.Model, addresses ...string) {
	for _, base := range append(addresses, "http://127.0.0.1:1", "http://bad host\x00") {
		e := refusal(t.Context(), at(base))
		if e == nil {
			t.Fatalf("%q: no error", base)
		}
		all := fmt.Sprint(e, e.Message, e.Code, e.RequestID, e.Err)
		for _, s := range secrets {
			if strings.Contains(all, s) {
				t.Errorf("%q: the error holds a secret: %s", base, all)
			}
		}
	}
}

// TestNoKey proves that a key which can't be had is a failure to log in, and that nothing is sent.
func TestNoKey(t *testing.T, with func(key func(context.Context) (string, error)) llm.Model) {
	m := with(func(context.Context) (string, error) { return "", errors.New("keychain locked") })
	if e := refusal(t.Context(), m); e == nil || e.Kind != llm.KindAuth {
		t.Errorf("no key: %v", e)
	}
}

// refusal is the error that a question ends with, nil if it is none of a model.
func refusal(ctx context.Context, m llm.Model) *llm.Error {
	var last error
	for _, err := range m.Stream(ctx, llm.Request{Messages: []llm.Message{said("hi")}}) {
		last = err
	}
	var e *llm.Error
	if !errors.As(last, &e) {
		return nil
	}
	return e
}

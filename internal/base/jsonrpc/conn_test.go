package jsonrpc_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/base/jsonrpc"
)

// wire keeps the sent messages.
type wire struct {
	mu   sync.Mutex
	sent []string
	err  error
}

func (w *wire) send(body []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent = append(w.sent, string(body))
	return w.err
}

func (w *wire) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer func() { w.sent = nil }()
	return slices.Clone(w.sent)
}

func lenient(w *wire, handle func(string, json.RawMessage, bool) jsonrpc.Work) *jsonrpc.Conn {
	return jsonrpc.New(context.Background(), jsonrpc.Options{
		Send: w.send, Handle: handle, Inline: true, Lenient: true,
		Withdraw: "$/cancelRequest", WithdrawnID: "id",
	})
}

func nothing(string, json.RawMessage, bool) jsonrpc.Work { return nil }

// TestAnswersThatNobodyTakes must not keep the goroutine that reads, which holds up the peer.
func TestAnswersThatNobodyTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w wire
		c := lenient(&w, nothing)
		got := make(chan string, 1)
		go func() {
			var text string
			if err := c.Call(context.Background(), "a", nil, &text); err != nil {
				text = err.Error()
			}
			got <- text
		}()
		synctest.Wait()
		if diff := cmp.Diff([]string{`{"jsonrpc":"2.0","id":1,"method":"a"}`}, w.take()); diff != "" {
			t.Error(diff)
		}
		for _, body := range []string{`{"id":2}`, `{"id":"1"}`, `{}`, `7`, `{"id":1,"result":"one"}`, `{"id":1,"result":"two"}`} {
			c.Receive([]byte(body))
		}
		if text := <-got; text != "one" {
			t.Errorf("the answer is %s", text)
		}
	})
}

// TestInline checks that answers have the order of requests, and that odd messages are skipped if the peer's mistakes
// are to be tolerated.
func TestInline(t *testing.T) {
	var w wire
	var got []string
	c := lenient(&w, func(method string, _ json.RawMessage, request bool) jsonrpc.Work {
		return func(context.Context) (any, error) {
			got = append(got, fmt.Sprintf("%s %v", method, request))
			if method == "d" {
				return nil, errors.New("no")
			}
			return nil, nil
		}
	})
	for _, body := range []string{
		`{"id":null,"method":"a"}`, `{"method":"b"}`,
		`{"id":"c","method":"c"}`, `{"id":0,"method":"d"}`, `[`, `[]`, `{"id":{},"method":"e"}`,
	} {
		c.Receive([]byte(body))
	}
	if diff := cmp.Diff([]string{"a false", "b false", "c true", "d true"}, got); diff != "" {
		t.Error(diff)
	}
	want := []string{`{"jsonrpc":"2.0","id":"c","result":null}`, `{"jsonrpc":"2.0","id":0,"error":{"code":-32603,"message":"no"}}`}
	if diff := cmp.Diff(want, w.take()); diff != "" {
		t.Error(diff)
	}
}

// TestStrict refuses lines that are not messages.
func TestStrict(t *testing.T) {
	var w wire
	c := jsonrpc.New(t.Context(), jsonrpc.Options{Send: w.send, Handle: nothing})
	for body, code := range map[string]int{
		`[`: jsonrpc.ParseError, `[]`: jsonrpc.InvalidRequest, `{"method":"a"}`: jsonrpc.InvalidRequest,
		`{"jsonrpc":"2.0"}`:                        jsonrpc.InvalidRequest,
		`{"jsonrpc":"2.0","id":null,"method":"a"}`: jsonrpc.InvalidRequest, `{"jsonrpc":"2.0","id":[1],"method":"a"}`: jsonrpc.InvalidRequest,
	} {
		c.Receive([]byte(body))
		if sent := w.take(); len(sent) != 1 || !strings.HasPrefix(sent[0], fmt.Sprintf(`{"jsonrpc":"2.0","id":null,"error":{"code":%d,`, code)) {
			t.Errorf("%s: %q", body, sent)
		}
	}
	c.TooLong(7)
	if sent := w.take(); len(sent) != 1 || !strings.Contains(sent[0], "longer than 7 bytes") {
		t.Errorf("%q", sent)
	}
}

// TestWithdrawal ends requests of both sides whose callers have left.
func TestWithdrawal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w wire
		c := jsonrpc.New(t.Context(), jsonrpc.Options{
			Send: w.send, Withdraw: "$/cancel_request", WithdrawnID: "requestId",
			Handle: func(string, json.RawMessage, bool) jsonrpc.Work {
				return func(ctx context.Context) (any, error) {
					<-ctx.Done()
					return nil, context.Cause(ctx)
				}
			},
		})
		c.Receive([]byte(`{"jsonrpc":"2.0","id":1,"method":"wait"}`))
		c.Receive([]byte(`{"jsonrpc":"2.0","id":1.0,"method":"wait"}`)) // the same id
		c.Receive([]byte(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"1"}}`))
		synctest.Wait()
		if diff := cmp.Diff([]string{`{"jsonrpc":"2.0","id":1.0,"error":{"code":-32600,"message":"the id is in use, or too many requests are"}}`},
			w.take()); diff != "" {
			t.Error(diff)
		}
		c.Receive([]byte(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}`))
		synctest.Wait()
		if diff := cmp.Diff([]string{`{"jsonrpc":"2.0","id":1,"error":{"code":-32800,"message":"the request was withdrawn"}}`},
			w.take()); diff != "" {
			t.Error(diff)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := c.Call(ctx, "a", map[string]int{"x": 1}, nil); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		want := []string{
			`{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":1}}`,
			`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}`,
		}
		if diff := cmp.Diff(want, w.take()); diff != "" {
			t.Error(diff)
		}
	})
}

// TestWork checks that a panic is an answer, that something can be done after an answer, and that a peer can't have
// more worked on than is bearable.
func TestWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w wire
		ctx, cancel := context.WithCancel(t.Context())
		c := jsonrpc.New(ctx, jsonrpc.Options{Send: w.send, Handle: func(method string, _ json.RawMessage, _ bool) jsonrpc.Work {
			return func(ctx context.Context) (any, error) {
				switch method {
				case "panic":
					panic("oh")
				case "then":
					return jsonrpc.Then{Result: 1, Do: func() { _ = w.send([]byte("behind")) }}, nil
				case "odd":
					return nil, &jsonrpc.Error{Code: 7, Message: "odd", Data: 8}
				}
				<-ctx.Done()
				return nil, ctx.Err()
			}
		}})
		for _, method := range []string{"panic", "then", "odd"} {
			c.Receive([]byte(`{"jsonrpc":"2.0","id":"x","method":"` + method + `"}`))
			synctest.Wait()
		}
		want := []string{
			`{"jsonrpc":"2.0","id":"x","error":{"code":-32603,"message":"panic: oh"}}`, `{"jsonrpc":"2.0","id":"x","result":1}`, "behind",
			`{"jsonrpc":"2.0","id":"x","error":{"code":7,"message":"odd","data":8}}`,
		}
		if diff := cmp.Diff(want, w.take()); diff != "" {
			t.Error(diff)
		}
		for i := range 257 {
			c.Receive(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"wait"}`, i))
		}
		synctest.Wait()
		if sent := w.take(); len(sent) != 1 || !strings.Contains(sent[0], `"id":256,"error":{"code":-32600`) {
			t.Errorf("%q", sent)
		}
		cancel()
		c.Close(errors.New("over"))
		c.Wait()
		if c.Go(func() {}) {
			t.Error("something began after the end")
		}
	})
}

func TestAConnectionThatIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w wire
		c := lenient(&w, nothing)
		first := errors.New("first")
		got := make(chan error, 1)
		go func() { got <- c.Call(context.Background(), "a", nil, nil) }()
		synctest.Wait()
		c.Close(first)
		c.Close(errors.New("second"))
		if err := <-got; !errors.Is(err, first) {
			t.Errorf("who waited got %v", err)
		}
		if err := c.Call(context.Background(), "a", nil, nil); !errors.Is(err, first) || !errors.Is(c.Err(), first) {
			t.Errorf("error %v", err)
		}
	})
}

// TestAnswersThatCantBeSent end the connection.
func TestAnswersThatCantBeSent(t *testing.T) {
	w := wire{err: errors.New("full")}
	c := lenient(&w, nothing)
	c.Receive([]byte(`{"id":1,"method":"a"}`))
	if err := c.Call(context.Background(), "a", nil, nil); !errors.Is(err, w.err) {
		t.Error(err)
	}
}

func TestErrorsAreBounded(t *testing.T) {
	err := &jsonrpc.Error{Message: strings.Repeat("x", 10_000) + "\xff"}
	if text := err.Error(); len(text) > 2100 || !strings.HasSuffix(text, "x\ufffd") {
		t.Errorf("%d bytes: %.20q", len(text), text)
	}
}

// TestLines checks that a line which is too long is skipped, and nothing else.
func TestLines(t *testing.T) {
	in := strings.NewReader("a\n\n  \n b \r\n" + strings.Repeat("x", jsonrpc.MaxLine+1) + "\nc")
	var got []string
	if err := jsonrpc.Lines(in, func(body []byte) bool {
		got = append(got, fmt.Sprint(string(body), body == nil))
		return true
	}); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"afalse", "bfalse", "true", "cfalse"}, got); diff != "" {
		t.Error(diff)
	}
	if err := jsonrpc.Lines(strings.NewReader("a\nb"), func([]byte) bool { return false }); err != nil {
		t.Error(err)
	}
}

// FuzzReceive throws any message at a connection, which must live and answer each request.
func FuzzReceive(f *testing.F) {
	for _, s := range []string{
		`{"id":1,"result":null}`, `{"jsonrpc":"2.0","id":"a","method":"b"}`, `[]`,
		`{"jsonrpc":"2.0","method":"$/cancel","params":{"id":1}}`, `{"id":1,"error":{"code":"x"}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, lenient := range []bool{false, true} {
			var w wire
			requests := 0
			c := jsonrpc.New(t.Context(), jsonrpc.Options{
				Send: w.send, Inline: true, Lenient: lenient, Withdraw: "$/cancel", WithdrawnID: "id",
				Handle: func(_ string, _ json.RawMessage, request bool) jsonrpc.Work {
					if request {
						requests++
					}
					return nil
				},
			})
			c.Receive(body)
			sent := w.take()
			if c.Err() != nil || requests == 1 && len(sent) != 1 || lenient && requests == 0 && len(sent) != 0 {
				t.Errorf("%q: %v, %d requests, sent %q", body, c.Err(), requests, sent)
			}
		}
	})
}

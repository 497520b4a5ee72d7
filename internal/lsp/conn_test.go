package lsp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"testing"
)

// TestAnswersThatNobodyTakes must not keep the goroutine that reads, which holds
// up the server.
func TestAnswersThatNobodyTakes(t *testing.T) {
	c := newConn(io.Discard)
	id, answer, err := c.expect()
	if err != nil || id != 1 {
		t.Fatal(id, err)
	}
	for _, body := range []string{`{"id":1,"result":"one"}`, `{"id":1,"result":"two"}`, `{"id":2}`, `{"id":"1"}`, `{}`, `7`} {
		c.receive([]byte(body))
	}
	if m := <-answer; string(m.Result) != `"one"` {
		t.Errorf("the answer is %s", m.Result)
	}
}

func TestWhatServersSend(t *testing.T) {
	c := newConn(io.Discard)
	var got []string
	c.asked = func(method string, _ json.RawMessage) (any, error) {
		got = append(got, "asked "+method)
		return nil, nil
	}
	c.heard = func(method string, _ json.RawMessage) { got = append(got, "heard "+method) }
	for _, body := range []string{`{"id":null,"method":"a"}`, `{"method":"b"}`, `{"id":"c","method":"c"}`, `{"id":0,"method":"d"}`} {
		c.receive([]byte(body))
	}
	if len(got) != 4 || got[0] != "heard a" || got[1] != "heard b" || got[2] != "asked c" || got[3] != "asked d" {
		t.Errorf("got %q", got)
	}
}

func TestAConnectionThatIsOver(t *testing.T) {
	c := newConn(io.Discard)
	_, answer, err := c.expect()
	if err != nil {
		t.Fatal(err)
	}
	first := errors.New("first")
	c.fail(first)
	c.fail(errors.New("second"))
	if _, ok := <-answer; ok {
		t.Error("who waited got an answer")
	}
	if err := c.call(context.Background(), "a", nil, nil); !errors.Is(err, first) {
		t.Errorf("error %v", err)
	}
}

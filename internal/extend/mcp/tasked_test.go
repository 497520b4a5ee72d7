package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/inspan/inspan/internal/base/text"
)

func TestTaskedMessage(t *testing.T) {
	for message, want := range map[string]string{
		`{"jsonrpc":"2.0","id":1,"result":{"resultType":"task","taskId":"x"}}`: `{"id":1,"jsonrpc":"2.0",` +
			`"result":{"_meta":{"inspan/task":{"resultType":"task","taskId":"x"}},"content":[],"resultType":"complete"}}`,
		`{"id":"a","result": {"taskId":"<\u2028>", "resultType" : "task" ` +
			`}}`: `{"id":"a","result":{"_meta":{"inspan/task":{"taskId":"\u003c\u2028\u003e","resultType":"task"}},"content":[],` +
			`"resultType":"complete"}}`,
		`{"id":1,"result":{"resultType":"complete","x":"task"}}`: "",
		`{"id":1,"result":{"resultType":["task"]}}`:              "",
		`{"id":1,"result":{"resulttype":"task"}}`:                "",
		`{"id":1,"result":["resultType","task"]}`:                "",
		`{"id":1,"method":"x","result":{"resultType":"task"}}`:   "",
		`{"id":1,"params":{"resultType":"task"}}`:                "",
		`{"result":{"resultType":"task"}}`:                       "",
		`{"id":1,"error":{"resultType":"task"},"result":null}`:   "",
		`[{"id":1,"result":{"resultType":"task"}}]`:              "",
		`{"id":1,"result":{"resultType":"task"}} {}`:             "",
		`{"id":1,"result":{"resultType":"task"}`:                 "",
		``:                                                       "",
	} {
		got, is := taskedMessage([]byte(message))
		if want == "" && (is || string(got) != message) || want != "" && (!is || string(got) != want) {
			t.Errorf("%s becomes %s", message, got)
		}
	}
}

// FuzzTaskedMessage leaves all but answers with tasks as they are, and of those keeps
// the task.
func FuzzTaskedMessage(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":{"resultType":"task","taskId":"x"}}`))
	f.Add([]byte(`{"id":"task","result":{"resultType":"task","_meta":{"inspan/task":1}},"result":7}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, is := taskedMessage(bytes.Clone(data))
		if !is {
			if !bytes.Equal(got, data) {
				t.Errorf("%q becomes %q", data, got)
			}
			return
		}
		var before, after struct {
			ID     any            `json:"id"`
			Result map[string]any `json:"result"`
		}
		if json.Unmarshal(data, &before) != nil || json.Unmarshal(got, &after) != nil || bytes.ContainsAny(got, "\n\r") {
			t.Fatalf("%q becomes %q", data, got)
		}
		kept, _ := after.Result["_meta"].(map[string]any)
		task, _ := kept[taskKey].(map[string]any)
		if task["resultType"] != "task" || after.Result["resultType"] != "complete" || after.ID == nil {
			t.Errorf("%q becomes %q", data, got)
		}
		if again, is := taskedMessage(got); is {
			t.Errorf("%q becomes %q again", got, again)
		}
	})
}

func readEvents(r io.Reader) ([]byte, error) {
	return io.ReadAll(&events{ReadCloser: io.NopCloser(r), from: bufio.NewReader(r), change: taskedEvent})
}

func TestEvents(t *testing.T) {
	const task = `{"id":1,"result":{"resultType":"task"}}`
	const moved = `{"id":1,"result":{"_meta":{"inspan/task":{"resultType":"task"}},"content":[],"resultType":"complete"}}`
	for stream, want := range map[string]string{
		"data: " + task + "\n\n": "data: " + moved + "\n\n",
		"data:" + task:           "data: " + moved + "\n\n",
		"id: 7\r\nevent: message\r\ndata:" + task + "\r\n\r\n: x\n\n": "id: 7\nevent: message\ndata: " + moved +
			"\n\n: x\n\n",
		"data: {\"id\":1,\ndata: \"result\":{\"resultType\":\"task\"}}\nretry: 5\n\ndata: 2": "retry: 5\ndata: " + moved + "\n\ndata: 2",
		"data: \"task\"\n\ndata: 1\n\n":                "data: \"task\"\n\ndata: 1\n\n",
		"\n\n\ndata":                                   "\n\n\ndata",
		"data: " + task + "\n\ndata: " + task + "\n\n": "data: " + moved + "\n\ndata: " + moved + "\n\n",
		"data: " + strings.Repeat("x", 100_000) + "\n\nxtask": "data: " + strings.Repeat("x", 100_000) +
			"\n\nxtask",
	} {
		if got, err := readEvents(strings.NewReader(stream)); err != nil || string(got) != want {
			t.Errorf("%q becomes %q, %v", text.Cut(stream, 500), text.Cut(string(got), 500), err)
		}
	}
	// A task that exceeds one read is still one task; lines that split a number make no other number.
	long := strings.Repeat("x", 100_000)
	for stream, moved := range map[string]bool{
		`data: {"id":1,"result":{"resultType":"task","statusMessage":"` + long + "\"}}\n\n": true,
		"data: {\"id\":1\ndata:2,\"result\":{\"resultType\":\"task\"}}\n\n":                 false,
	} {
		if got, err := readEvents(strings.NewReader(stream)); err != nil ||
			strings.Contains(string(got), taskKey) != moved || !moved && string(got) != stream {
			t.Errorf("%q becomes %q, %v", text.Cut(stream, 500), text.Cut(string(got), 500), err)
		}
	}
	broken := errors.New("broken")
	if got, err := readEvents(io.MultiReader(strings.NewReader("data: 1\n\ndata: "), iotest.ErrReader(broken))); !errors.Is(err, broken) ||
		string(got) != "data: 1\n\ndata: " {
		t.Errorf("%q, %v", got, err)
	}
	big := "data: " + strings.Repeat("x", maxFrame+10) + "\n\n"
	if got, err := readEvents(strings.NewReader(big)); err != nil || string(got) != big {
		t.Errorf("%d bytes become %d, %v", len(big), len(got), err)
	}
}

// TestEventsAreNotHeldBack passes an event on before there is another.
func TestEventsAreNotHeldBack(t *testing.T) {
	in, out := io.Pipe()
	defer func() { _ = out.Close() }()
	go func() { _, _ = io.WriteString(out, "data: 1\n\ndata: 2") }()
	e := &events{ReadCloser: in, from: bufio.NewReader(in), change: taskedEvent}
	got := make([]byte, 9)
	if _, err := io.ReadFull(e, got); err != nil || string(got) != "data: 1\n\n" {
		t.Errorf("%q, %v", got, err)
	}
	_ = in.Close()
}

// FuzzEvents checks that events are the same however they arrive, and unchanged if there is no task.
func FuzzEvents(f *testing.F) {
	f.Add([]byte("event: message\ndata: {\"id\":1,\"result\":{\"resultType\":\"task\"}}\n\n: \"task\"\r\n\r\ndata: 2"))
	f.Fuzz(func(t *testing.T, data []byte) {
		whole, err := readEvents(bytes.NewReader(data))
		bits, again := readEvents(iotest.OneByteReader(bytes.NewReader(data)))
		if err != nil || again != nil || !bytes.Equal(whole, bits) {
			t.Errorf("%q becomes %q or %q, %v, %v", data, whole, bits, err, again)
		}
		if !mayTask(data) && !bytes.Equal(whole, data) {
			t.Errorf("%q becomes %q", data, whole)
		}
	})
}

// TestTasksOverHTTP touches no answers of revisions that have no tasks.
func TestTasksOverHTTP(t *testing.T) {
	const task = `{"jsonrpc":"2.0","id":1,"result":{"resultType":"task"}}`
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`
	for _, c := range []struct {
		revision, kind string
		moved          bool
	}{
		{"2026-07-28", "application/json; charset=utf-8", true},
		{"2026-07-28", "text/event-stream", true},
		{"2026-07-28", "text/html", true}, // whatever it is called, it is the answer
		{"2025-11-25", "application/json", false},
		{"", "text/event-stream", false},
	} {
		text := task
		if c.kind == "text/event-stream" {
			text = "data: " + task + "\n\n"
		}
		resp := &http.Response{
			StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {c.kind}, "Content-Length": {"39"}},
			Body: io.NopCloser(strings.NewReader(text)), ContentLength: 39,
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://x", strings.NewReader(call))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Mcp-Protocol-Version", c.revision)
		hear(req, resp, sift{skipped: func(data []byte) { t.Errorf("%+v: skipped %s", c, data) }})
		got, err := io.ReadAll(resp.Body)
		if err != nil || (string(got) != text) != c.moved || resp.ContentLength != -1 || resp.Header.Get("Content-Length") != "" {
			t.Errorf("%+v: %s, %v", c, got, err)
		}
	}
	broken := errors.New("broken")
	if got, err := io.ReadAll(&answer{ReadCloser: io.NopCloser(io.MultiReader(strings.NewReader("{"),
		iotest.ErrReader(broken)))}); !errors.Is(err, broken) || string(got) != "{" {
		t.Errorf("%q, %v", got, err)
	}
}

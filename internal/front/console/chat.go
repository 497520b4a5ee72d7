package console

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
)

// line is the input of a client: a message of the person, or a request about the session.
type line struct {
	Type    string `json:"type"`
	Message struct {
		Content json.RawMessage `json:"content"`
	} `json:"message"`
	ID      string `json:"request_id"`
	Request struct {
		Subtype string `json:"subtype"`
	} `json:"request"`
}

// Chat runs the session for each message in the input, a JSON object a line, and returns the exit code of the
// last run. Each run ends with a result. Requests are answered at once; one of them interrupts.
func (c *Console) Chat(ctx context.Context, s *inspan.Session, in io.Reader) (code int) {
	run := c.conductor(s)
	printed := c.throughQueue()
	ctx, stop := c.catchInterrupt(ctx, run)
	var last Result
	defer func() {
		stop()
		last.ExitCode = code
		code = printed(last, 0)
	}()
	said := make(chan event.Body, 64)
	broken := make(chan error, 1)
	go func() {
		defer close(said)
		broken <- c.listen(ctx, run, in, said)
	}()
	opened := c.writeOpening(ctx, s, newView(c))
	for body := range said {
		v := c.showNextRun(run)
		err := opened
		if err == nil {
			err = run.Run(ctx, body)
		}
		v.endWait()
		last = v.result(s.Status(), err)
		last.ExitCode = c.Finish(last)
		if ctx.Err() != nil {
			break
		}
	}
	s.Shutdown()
	if ctx.Err() == nil {
		if err := <-broken; err != nil {
			return c.Fail(ExitUsage, err)
		}
	}
	return last.ExitCode
}

// listen reads the client's lines until the end of input.
func (c *Console) listen(ctx context.Context, run *inspan.Conductor, in io.Reader, said chan<- event.Body) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var l line
		err := json.Unmarshal(lines.Bytes(), &l)
		var parts llm.Parts
		if err == nil && l.Type == "user" {
			parts, err = textOf(l.Message.Content)
		}
		switch {
		case err != nil:
			return fmt.Errorf("standard input: %w", err)
		case l.Type == "user":
			select {
			case said <- event.Said{Parts: parts}:
			case <-ctx.Done():
				return nil
			}
		case l.Type == "control_request":
			c.control(run, l)
		}
	}
	return lines.Err()
}

// maxLine bounds the bytes of a client's message.
const maxLine = 32 << 20

// textOf returns the text of a message: a string, or blocks of text.
func textOf(content json.RawMessage) (llm.Parts, error) {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return llm.Say(text), nil
	}
	var blocks []struct{ Type, Text string }
	if err := json.Unmarshal(content, &blocks); err != nil {
		return nil, fmt.Errorf("the content of a message is neither text nor blocks: %w", err)
	}
	var out llm.Parts
	for _, b := range blocks {
		if b.Type != "text" {
			return nil, fmt.Errorf("a message has a block of the type %q; only text is accepted", b.Type)
		}
		out = append(out, llm.Text{Text: b.Text})
	}
	return out, nil
}

// control answers a request about the session.
func (c *Console) control(run *inspan.Conductor, l line) {
	answer := fields{"subtype": "success", "request_id": l.ID, "response": fields{}}
	var err error
	switch l.Request.Subtype {
	case "initialize":
		answer["response"] = fields{"commands": []any{}, "output_style": "default", "available_output_styles": []string{"default"}}
	case "interrupt":
		run.Interrupt(event.Cancelled{By: "client", All: true})
	default:
		err = fmt.Errorf("%q is not supported", l.Request.Subtype)
	}
	if err != nil {
		answer = fields{"subtype": "error", "request_id": l.ID, "error": err.Error()}
	}
	_ = c.PrintJSON(fields{"type": "control_response", "response": answer}) // the run notices if no one reads
}

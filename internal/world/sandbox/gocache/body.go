package gocache

import (
	"bufio"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
)

// body is the output that follows a request: a JSON string in base64, on its own line. An empty one is not
// sent.
type body struct {
	r       *bufio.Reader
	left    int64 // decoded bytes
	decoder io.Reader
}

var errBody = errors.New("the output that follows a request is not as long as it says")

func (b *body) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, io.EOF
	}
	if b.decoder == nil {
		if err := b.expect('"'); err != nil {
			return 0, err
		}
		const whole = 4 // letters for three bytes, with padding
		b.decoder = base64.NewDecoder(base64.StdEncoding, io.LimitReader(b.r, (b.left/3+min(b.left%3, 1))*whole))
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.decoder.Read(p)
	b.left -= int64(n)
	if errors.Is(err, io.EOF) && b.left > 0 {
		err = errBody
	}
	if errors.Is(err, io.EOF) && n > 0 {
		err = nil
	}
	return n, err
}

// finish reads the rest of the body, so that the next request can be read.
func (b *body) finish() error {
	if b.left == 0 && b.decoder == nil {
		return nil
	}
	if _, err := io.Copy(io.Discard, b); err != nil {
		return err
	}
	return b.expect('"')
}

// expect reads one byte, after line breaks.
func (b *body) expect(want byte) error {
	for {
		got, err := b.r.ReadByte()
		switch {
		case err != nil:
			return fmt.Errorf("read the output that follows a request: %w", err)
		case got == '\n' || got == '\r':
		case got != want:
			return errBody
		default:
			return nil
		}
	}
}

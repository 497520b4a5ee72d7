package anthropic

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/internal/wire"
)

// frames reads Bedrock's stream: each message has its length and two checksums in front, and holds one event of the
// vendor, or an exception
// (https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ResponseStream.html).
type frames struct {
	r       *bufio.Reader
	decoder *eventstream.Decoder
	buf     []byte
}

func newFrames(r io.Reader) *frames {
	return &frames{r: bufio.NewReaderSize(r, 32<<10), decoder: eventstream.NewDecoder(), buf: make([]byte, 0, 4<<10)}
}

// next returns the data of the next event, valid until the next call, and io.EOF at the end. Any damage is
// KindStreamCut.
func (f *frames) next() ([]byte, error) {
	for {
		m, err := f.message()
		if err != nil {
			return nil, err
		}
		header := func(name string) string {
			if v := m.Headers.Get(name); v != nil {
				return v.String()
			}
			return ""
		}
		switch header(":message-type") {
		case "exception":
			return nil, classifyAs(header(":exception-type"), 200, m.Payload)
		case "error":
			return nil, classifyAs(header(":error-code"), 200, []byte(header(":error-message")))
		}
		if header(":event-type") == "chunk" {
			return chunkBytes(m.Payload)
		}
	}
}

// message reads one frame. The decoder trusts the lengths at its beginning and would wait forever for a wrong one,
// so they are checked first.
func (f *frames) message() (eventstream.Message, error) {
	const overhead = 16 // lengths and checksums
	prelude, err := f.r.Peek(8)
	if err != nil {
		return eventstream.Message{}, err
	}
	size, headers := binary.BigEndian.Uint32(prelude), binary.BigEndian.Uint32(prelude[4:])
	if size > wire.MaxEvent || size < overhead || headers > size-overhead {
		return eventstream.Message{}, &llm.Error{Kind: llm.KindStreamCut, Message: "broken frame"}
	}
	m, err := f.decoder.Decode(f.r, f.buf)
	if m.Payload != nil {
		f.buf = m.Payload[:0]
	}
	return m, err
}

func chunkBytes(payload []byte) ([]byte, error) {
	var chunk struct {
		Bytes []byte `json:"bytes"`
	}
	if err := json.Unmarshal(payload, &chunk); err != nil {
		return nil, &llm.Error{Kind: llm.KindStreamCut, Message: "broken event", Err: err}
	}
	return chunk.Bytes, nil
}

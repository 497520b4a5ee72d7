package anthropic

import (
	"io"

	"github.com/inspan/inspan/llm"
)

// What the suites of harnesstest need, which can't be imported from here: they have a model of
// this package inside.

// Sample is a stream without a flaw.
const Sample = sample

// DecodeAll reads a stream.
func DecodeAll(r io.Reader) (llm.Reply, string, error) { return decodeAll(r) }

// Body is the request that is sent.
func Body(m *Model, req llm.Request) []byte { return body(m, req) }

// LongTurn is a conversation whose last turn added n results and a text.
func LongTurn(n int, system ...string) llm.Request { return longTurn(n, system...) }

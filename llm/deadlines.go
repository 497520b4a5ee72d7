package llm

import "time"

// Deadlines bound the phases of a model call. A zero field takes the adapter's default, which is 15 s, 120 s,
// 120 s and 30 min unless the adapter says otherwise; a negative one means no limit. When a limit passes, the
// call fails with KindTimeout, and Phase names the limit.
type Deadlines struct {
	Connect   time.Duration // "connect": name look-up, dialling and TLS
	FirstByte time.Duration // "first byte": from the connection to the first byte of the reply's body
	Idle      time.Duration // "idle": between two reads of the body
	Total     time.Duration // "total": the whole exchange
}

// Or returns d with its zero fields taken from e.
func (d Deadlines) Or(e Deadlines) Deadlines {
	or := func(a, b time.Duration) time.Duration {
		if a != 0 {
			return a
		}
		return b
	}
	return Deadlines{
		Connect:   or(d.Connect, e.Connect),
		FirstByte: or(d.FirstByte, e.FirstByte),
		Idle:      or(d.Idle, e.Idle),
		Total:     or(d.Total, e.Total),
	}
}

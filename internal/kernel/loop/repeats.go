package loop

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// When the same call has brought the same result this often in one run, the model is told once; later the run
// is stopped. Only the last calls count.
const (
	steerAt = 3
	stuckAt = 5
	window  = 100
	patient = 6 // factor for calls that sleep, which wait for something
)

// repeats counts calls that bring nothing new: the same tool, the same arguments and the same result. A call
// with another result is a different one, so polling and retrying are free. A new call that may have changed
// something restarts the count: running one failing test after each of five edits is work. While something is
// running that the call could observe, the call doesn't count: looking again is waiting. A call that sleeps may
// wait for something outside, and counts for less.
type repeats struct {
	Recent []string `json:"recent,omitempty"` // fingerprints of the last calls with their results, the newest last
	Since  int      `json:"since,omitempty"`  // how many of them count: those since the last new work
	Worst  string   `json:"worst,omitempty"`  // the most repeated call, for people
	Most   int      `json:"most,omitempty"`
	Warned bool     `json:"warned,omitempty"`
}

func (r *repeats) note(c Call, busy bool) {
	if busy {
		return
	}
	print := fingerprint(c)
	if !tool.ReadOnly(c.Effects) && !slices.Contains(r.Recent, print) {
		r.Since, r.Worst, r.Most, r.Warned = 0, "", 0, false
	}
	r.Recent = append(r.Recent, print)
	r.Since++
	if extra := len(r.Recent) - window; extra > 0 {
		r.Recent = slices.Delete(r.Recent, 0, extra)
		r.Since = min(r.Since, window)
	}
	n := 0
	for _, p := range r.Recent[len(r.Recent)-r.Since:] {
		if p == print {
			n++
		}
	}
	if sleeps(c) {
		n = (n + patient - 1) / patient
	}
	if n > r.Most {
		r.Most, r.Worst = n, fmt.Sprintf("%s %s", c.Name, c.Args)
	}
}

// sleeps reports whether a call begins by waiting, for example for a container or a remote build.
func sleeps(c Call) bool {
	return slices.ContainsFunc(c.Effects, func(e tool.Effect) bool {
		return e.Kind == tool.Execute && strings.HasPrefix(e.Text, "sleep ")
	})
}

// fingerprint is equal for two calls exactly if they are the same call with the same result.
func fingerprint(c Call) string {
	text := field(field(field(nil, c.Name), c.Args), c.Ended.Outcome)
	for _, part := range c.Ended.Parts {
		switch p := part.(type) {
		case llm.Text:
			text = field(text, p.Text)
		case llm.Image:
			text = field(field(text, p.Digest), p.Data)
		}
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// field appends a text so that adjacent fields can't run together.
func field[T ~string | ~[]byte](to []byte, text T) []byte {
	return append(append(strconv.AppendInt(to, int64(len(text)), 10), ':'), text...)
}

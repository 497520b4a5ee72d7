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

const (
	steerAt      = 3   // equal results in a run after which the model is warned, once
	stuckAt      = 5   // equal results in a run that stop it
	repeatWindow = 100 // only the last calls count
	sleepFactor  = 6   // this many calls that sleep count as one
)

// repeats counts repetitions: calls with the same tool, arguments and result.
//
//   - A call with another result is not a repetition, so polling and retrying are free.
//   - A new call that may change something restarts the count: running one failing test after each of five edits is
//     work.
//   - While a job or a process is running, calls don't count, because they may observe it.
//   - A call that sleeps may wait for something outside, so it counts for less.
type repeats struct {
	Recent []string `json:"recent,omitempty"` // fingerprints of the last calls, the newest last
	Since  int      `json:"since,omitempty"`  // how many of them count: the calls since the last restart
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
	if extra := len(r.Recent) - repeatWindow; extra > 0 {
		r.Recent = slices.Delete(r.Recent, 0, extra)
		r.Since = min(r.Since, repeatWindow)
	}
	n := 0
	for _, p := range r.Recent[len(r.Recent)-r.Since:] {
		if p == print {
			n++
		}
	}
	if sleeps(c) {
		n = (n + sleepFactor - 1) / sleepFactor
	}
	if n > r.Most {
		r.Most, r.Worst = n, fmt.Sprintf("%s %s", c.Name, c.Args)
	}
}

// sleeps reports whether a call begins with sleep, for example to wait for a container or a remote build.
func sleeps(c Call) bool {
	return slices.ContainsFunc(c.Effects, func(e tool.Effect) bool {
		return e.Kind == tool.Execute && strings.HasPrefix(e.Text, "sleep ")
	})
}

// fingerprint returns a digest that is equal only for the same tool, arguments and result.
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

// field appends a text with its length, so that adjacent fields can't run together.
func field[T ~string | ~[]byte](to []byte, text T) []byte {
	return append(append(strconv.AppendInt(to, int64(len(text)), 10), ':'), text...)
}

package protocol

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/internal/world/sandbox/paths"
	"github.com/inspan/inspan/internal/world/sandbox/walls"
	"github.com/inspan/inspan/tool"
)

// FuzzOrder checks that an order reaches its keeper byte for byte.
func FuzzOrder(f *testing.F) {
	f.Add("/caf\xe9", "\xff\xfe", "plain")
	f.Add("/caf\u00e9", `\ufffd`, "\ufffd")
	f.Add("", "<&>\u2028", "\xf4\x8f\xbf\xbf\xe9")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		if strings.Contains(a+b+c, "\x00") {
			t.Skip("a word with a NUL byte reaches no program")
		}
		want := Order{
			Path: a, Args: []string{b, c}, Env: []string{},
			Box: tool.Box{Level: tool.BoxRead, Write: []string{c}},
			Map: places.Map{Root: a, State: []string{b}, Moved: map[string]string{c: a}},
			Plan: walls.Plan{
				Read: []walls.Grant{{Path: a, Holes: []string{b}}},
				View: walls.View{Before: []paths.Identity{{Path: b, Dev: 1 << 63, Ino: 2, Link: true}}},
			},
		}
		line, err := Encode(want)
		if err != nil {
			t.Fatal(err)
		}
		var got Order
		sent := false
		lines := Lines{Receive: func(p, _ []byte) (int, int, error) {
			if sent {
				return 0, 0, errClosed
			}
			sent = true
			return copy(p, line), 0, nil
		}}
		if err := lines.Next(&got); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got, cmp.AllowUnexported(paths.Identity{}), cmpopts.IgnoreUnexported(places.Map{})); d != "" {
			t.Error(d)
		}
	})
}

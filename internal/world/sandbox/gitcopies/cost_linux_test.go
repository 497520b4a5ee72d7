package gitcopies_test

import (
	"testing"

	"github.com/inspan/inspan/internal/testkit/boxes"
	"github.com/inspan/inspan/tool"
)

// BenchmarkCommit measures the cost of a commit in a box, and of a plain command.
func BenchmarkCommit(b *testing.B) {
	env, _, _ := boxes.New(b)
	if code, out, _ := boxes.Run(b, env, tool.Box{Level: tool.BoxNone},
		"rm -rf .git sub && git init -q -b main . && git config user.name x && git config user.email x@y && git add plain && git commit -qm one"); code != 0 {
		b.Fatal(out)
	}
	for _, bb := range []struct {
		name, text string
		box        tool.Box
	}{
		{"commit", "git commit -q --allow-empty -m x", tool.Box{Level: tool.BoxWorkspace, Git: true}},
		{"plain", "true", tool.Box{Level: tool.BoxWorkspace}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			for b.Loop() {
				if code, out, refused := boxes.Run(b, env, bb.box, bb.text); code != 0 || len(refused) > 0 {
					b.Fatal(code, out, refused)
				}
			}
		})
	}
}

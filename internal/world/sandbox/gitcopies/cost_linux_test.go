package gitcopies_test

import (
	"testing"

	"github.com/inspan/inspan/internal/testkit/boxes"
	"github.com/inspan/inspan/tool"
)

// BenchmarkCommit measures the cost of a commit and of a plain command. The same commit in the session's /tmp needs no
// copy of the repository, and one outside no box.
func BenchmarkCommit(b *testing.B) {
	env, _, _ := boxes.New(b)
	const begin = "git init -q -b main . && git config user.name x && git config user.email x@y && git add -A . && git commit -qm one"
	for _, in := range []struct {
		text string
		box  tool.Box
	}{
		{"rm -rf .git sub && " + begin, tool.Box{Level: tool.BoxNone}},
		{"mkdir /tmp/r && cd /tmp/r && >plain && " + begin, boxes.Writable},
	} {
		if code, out, _ := boxes.Run(b, env, in.box, in.text); code != 0 {
			b.Fatal(out)
		}
	}
	const commit = "git commit -q --allow-empty -m x"
	for _, bb := range []struct {
		name, text string
		box        tool.Box
	}{
		{"commit/with a copy", commit, tool.Box{Level: tool.BoxWorkspace, Git: true}},
		{"commit/in tmp", "cd /tmp/r && " + commit, boxes.Writable},
		{"commit/outside", commit, tool.Box{Level: tool.BoxNone}},
		{"plain/in a box", "true", boxes.Writable},
		{"plain/outside", "true", tool.Box{Level: tool.BoxNone}},
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

package subagent

import (
	"context"
	"fmt"
	"slices"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// maxMet is how many files a child is told of that others change at the same time.
const maxMet = 20

// meeting is a file that two children of one session change at the same time.
type meeting struct {
	other *child
	path  string
}

// watchWrites has children that change the same file at the same time told of it: the
// later one, that it changes what is not as it was any more, and the earlier one. Of a
// command those files are seen that its text names; what a program writes by itself is not.
func (t *Team) watchWrites(k *child, e event.Event) {
	var would []string
	switch b := e.Body.(type) {
	case event.Judged:
		for _, effect := range b.Effects {
			if effect.Kind == tool.Write && !effect.Throwaway && b.Action != tool.Deny {
				would = append(would, effect.Path)
			}
		}
	case event.Ended:
		for _, f := range b.Files {
			if f.Written {
				would = append(would, f.Path)
				k.mu.Lock()
				k.wrote[f.Path] = true
				k.mu.Unlock()
			}
		}
	}
	for _, path := range would {
		for _, other := range t.others(k) {
			if other.has(path) && k.meets(meeting{other, path}) {
				t.introduce(k, other, path)
			}
		}
	}
}

// others are the children that work beside one.
func (t *Team) others(k *child) []*child {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []*child
	for _, o := range t.children {
		if o != k {
			out = append(out, o)
		}
	}
	return out
}

// has reports whether a child has written a file since it was opened.
func (k *child) has(path string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.wrote[path]
}

// meets takes note of a meeting, and reports whether it is to be told of.
func (k *child) meets(m meeting) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if slices.Contains(k.met, m) || len(k.met) >= maxMet {
		return false
	}
	k.met = append(k.met, m)
	return true
}

// introduce tells two children that they change the same file. Later is the one that
// changes it now.
func (t *Team) introduce(later, earlier *child, path string) {
	later.tells(fmt.Sprintf("agent %s changed %s meanwhile; read it again before you change it.", earlier.label(),
		files(later.session.Status().Root, []string{path})))
	if earlier.meets(meeting{later, path}) {
		earlier.tells(fmt.Sprintf("agent %s changes %s now, which you have changed; read it again before you change it.", later.label(),
			files(earlier.session.Status().Root, []string{path})))
	}
}

// tells puts something before the child. One that is not there any more is told
// nothing.
func (k *child) tells(text string) {
	_ = k.session.Send(context.WithoutCancel(k.ctx), event.Steered{
		By:     "the session it works for",
		Origin: event.OriginHarness, Parts: llm.Say("[" + text + "]"),
	})
}

// meetings tells who else changed the same files; empty if nobody did. K.mu is held.
func (k *child) meetings(root string) string {
	text := ""
	for _, m := range k.met {
		text += fmt.Sprintf("\n[agent %s changed %s too, at the same time: check it]", m.other.label(), files(root, []string{m.path}))
	}
	return text
}

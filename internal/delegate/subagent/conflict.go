package subagent

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/world/changed"
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

// command is one of a child that runs.
type command struct {
	began  time.Time
	before changed.Files // the workspace then; nil: the child has its own
}

// mark is how a child has written a file.
type mark struct {
	at   time.Time
	seen bool // the file changed while a command of the child ran; no tool has named it
}

// watchWrites has children that change the same file at the same time told of it: the later one, that it
// changes what is not as it was any more, and the earlier one. Tools name the files that they change; what
// commands change is found by comparing the workspace before and after, if the child has no copy of its own.
func (t *Team) watchWrites(k *child, e event.Event) {
	var would []string
	switch b := e.Body.(type) {
	case event.Judged:
		for _, effect := range b.Effects {
			switch {
			case effect.Throwaway || b.Action == tool.Deny:
			case effect.Kind == tool.Write:
				would = append(would, effect.Path)
			case effect.Kind == tool.Execute && effect.Class == tool.Unproven && k.files != nil:
				k.commands[b.Call] = command{}
			}
		}
	case event.Started:
		if _, is := k.commands[b.Call]; is && k.order.Copy == nil { // another may begin to work here meanwhile
			k.commands[b.Call] = command{e.Time, changed.Look(k.ctx, k.files, k.session.Status().Root)}
		}
	case event.Ended:
		for _, f := range b.Files {
			if f.Written {
				would = append(would, f.Path)
				k.marks(f.Path, mark{at: e.Time})
			}
		}
		ran := k.commands[b.Call]
		delete(k.commands, b.Call)
		for _, f := range ran.before.Since(k.ctx, k.files, k.session.Status().Root) {
			if !slices.ContainsFunc(t.beside(k), func(o *child) bool { return o.named(f.Path, ran.began) }) {
				would = append(would, f.Path)
				k.marks(f.Path, mark{at: e.Time, seen: true})
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

// beside are the children that work in the same folder as one.
func (t *Team) beside(k *child) []*child {
	root := k.session.Status().Root
	return slices.DeleteFunc(t.others(k), func(o *child) bool { return o.session.Status().Root != root })
}

// marks takes note of a file that the child has written.
func (k *child) marks(path string, m mark) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if was, known := k.wrote[path]; !known || was.seen || !m.seen {
		k.wrote[path] = m
	}
}

// named reports whether a tool of the child has named the file as written since a time.
func (k *child) named(path string, since time.Time) bool {
	m := k.mark(path)
	return !m.seen && !m.at.Before(since)
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
	_, yes := k.wrote[path]
	return yes
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
	if !earlier.meets(meeting{later, path}) {
		return
	}
	does := "changes %s now"
	if later.mark(path).seen {
		does = "ran a command while %s changed" // who changed it is not known for sure
	}
	earlier.tells(fmt.Sprintf("agent %s "+does+", which you have changed; read it again before you change it.", later.label(),
		files(earlier.session.Status().Root, []string{path})))
}

// mark is how the child has written a file.
func (k *child) mark(path string) mark {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.wrote[path]
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

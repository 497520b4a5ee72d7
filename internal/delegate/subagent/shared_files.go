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

// maxShared is how many files that others change too are reported to a child.
const maxShared = 20

// sharedFile is a file that two children of one session change at the same time.
type sharedFile struct {
	other *child
	path  string
}

// command is a running command of a child.
type command struct {
	began  time.Time
	before changed.Files // the workspace before it; nil means the child has its own
}

// writeMark is how a child has written a file.
type writeMark struct {
	at   time.Time
	seen bool // the file changed while a command of the child ran; no tool has named it
}

// watchWrites warns children that change the same file at the same time: the later one, that the file differs
// from what it knows, and the earlier one. Tools name the files that they change. Changes by commands are found
// by comparing the workspace before and after, if the child has no copy of its own.
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
				k.recordWrite(f.Path, writeMark{at: e.Time})
			}
		}
		ran := k.commands[b.Call]
		delete(k.commands, b.Call)
		for _, f := range ran.before.Since(k.ctx, k.files, k.session.Status().Root) {
			if !slices.ContainsFunc(t.sharingFolder(k), func(o *child) bool { return o.hasNamed(f.Path, ran.began) }) {
				would = append(would, f.Path)
				k.recordWrite(f.Path, writeMark{at: e.Time, seen: true})
			}
		}
	}
	for _, path := range would {
		for _, other := range t.othersInFolder(k) {
			if other.hasWritten(path) && k.recordShared(sharedFile{other, path}) {
				t.warnBoth(k, other, path)
			}
		}
	}
}

// sharingFolder returns the children that work in the same folder as one.
func (t *Team) sharingFolder(k *child) []*child {
	root := k.session.Status().Root
	return slices.DeleteFunc(t.othersInFolder(k), func(o *child) bool { return o.session.Status().Root != root })
}

// recordWrite records a file that the child has written.
func (k *child) recordWrite(path string, m writeMark) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if was, known := k.wrote[path]; !known || was.seen || !m.seen {
		k.wrote[path] = m
	}
}

// hasNamed reports whether a tool of the child has named the file as written since a time.
func (k *child) hasNamed(path string, since time.Time) bool {
	m := k.writeMarkOf(path)
	return !m.seen && !m.at.Before(since)
}

// othersInFolder returns the other children in the folder of one.
func (t *Team) othersInFolder(k *child) []*child {
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

// hasWritten reports whether a child has written a file since it was opened.
func (k *child) hasWritten(path string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, yes := k.wrote[path]
	return yes
}

// recordShared records a file that another child changes too, and reports whether the child must hear of it.
func (k *child) recordShared(m sharedFile) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if slices.Contains(k.shared, m) || len(k.shared) >= maxShared {
		return false
	}
	k.shared = append(k.shared, m)
	return true
}

// warnBoth warns two children that change the same file. Later is the one that changes it now.
func (t *Team) warnBoth(later, earlier *child, path string) {
	later.sendText(fmt.Sprintf("agent %s changed %s meanwhile; read it again before you change it.", earlier.label(),
		files(later.session.Status().Root, []string{path})))
	if !earlier.recordShared(sharedFile{later, path}) {
		return
	}
	does := "changes %s now"
	if later.writeMarkOf(path).seen {
		does = "ran a command while %s changed" // the writer is uncertain
	}
	earlier.sendText(fmt.Sprintf("agent %s "+does+", which you have changed; read it again before you change it.", later.label(),
		files(earlier.session.Status().Root, []string{path})))
}

// writeMarkOf returns how the child has written a file.
func (k *child) writeMarkOf(path string) writeMark {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.wrote[path]
}

// sendText sends the child a message. A finished child gets none.
func (k *child) sendText(text string) {
	_ = k.session.Send(context.WithoutCancel(k.ctx), event.Steered{
		By:     "the session it works for",
		Origin: event.OriginHarness, Parts: llm.Say("[" + text + "]"),
	})
}

// describeShared says which other children changed the same files; empty if none did. The caller holds k.mu.
func (k *child) describeShared(root string) string {
	text := ""
	for _, m := range k.shared {
		text += fmt.Sprintf("\n[agent %s changed %s too, at the same time: check it]", m.other.label(), files(root, []string{m.path}))
	}
	return text
}

package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/internal/world/sandbox/paths"
	"github.com/inspan/inspan/internal/world/sandbox/processes"
	"github.com/inspan/inspan/internal/world/sandbox/protocol"
	"github.com/inspan/inspan/internal/world/sandbox/sensitive"
	"github.com/inspan/inspan/internal/world/sandbox/walls"
	"github.com/inspan/inspan/tool"
)

// mostMounts bounds the closed places in a workspace.
const mostMounts = 2000

// planWorkspace plans a workspace box.
func (b *boxes) planWorkspace(k *supervised, found []sensitive.Place) error {
	if b.flat.Load() || k.command.Box.Mixed && !b.overlays() {
		k.command.Box.Git, k.command.Box.Mixed = false, false // git directories are copied, or closed
	}
	o, box := &k.order, k.command.Box
	cache, vars, err := b.caches(box, o.Env)
	if err != nil {
		return err
	}
	o.Env, o.Cache, o.GoCache = processes.SetVars(o.Env, vars...), cache, b.goLayer(cache, o.Env)
	k.cold = o.GoCache == "" && cache != "" && empty(filepath.Join(cache, walls.GoBuilds))
	if o.Write = b.Folders(); box.Throwaway {
		o.Write = o.Write[:1]
	}
	for _, path := range b.outsideWorkspace(sensitive.Mountable(o.Level, box.Write)) {
		at := b.o.Map.Of(path)
		if at.Guard != places.Secret && at.Guard != places.Frozen || at.Named && slices.Contains(k.command.Pass.Write, path) {
			o.Write = append(o.Write, path)
		}
	}
	o.Write = append(o.Write, b.GitWritable(box)...)
	o.Copies = b.gitCopies(box, found)
	closed := b.Closed(box, found)
	if len(o.Copies) > 0 {
		// Git removes the link from a worktree in the workspace to its repository.
		links := b.NewWorktrees(box)
		found = slices.DeleteFunc(found, func(s sensitive.Place) bool { return links[s.Path] })
		closed = b.closedInCopies(o, b.Closed(box, found))
	}
	for _, s := range closed {
		if st, ok := paths.StampOf(s.Path); ok {
			o.View.Frozen = append(o.View.Frozen, s.Path)
			o.View.Before = append(o.View.Before, st.Identity(s.Path))
		}
	}
	for _, path := range k.command.Pass.Read {
		if text.Inside(b.Root, path) && !slices.Contains(k.command.Pass.Write, path) && b.o.Map.Of(path).Named {
			o.View.Frozen = append(o.View.Frozen, path) // it was judged as readable
		}
	}
	o.View.Pinned = b.PinnedFolders(box, found)
	for _, c := range o.Copies {
		o.View.Pinned = b.FoldersAbove(o.View.Pinned, c.Path)
	}
	if len(o.View.Frozen)+len(o.View.Pinned) > mostMounts {
		return fmt.Errorf("%w: the workspace holds too many sensitive places", tool.ErrNoBox)
	}
	o.Proxy, o.Map, o.Box = len(box.Hosts) > 0, b.o.Map, box
	if os.Geteuid() == 0 && b.engine == nil {
		o.View.Passwd, o.View.Group = accounts("/etc/passwd", "inspan:x:%d:%d::"+home()+":/bin/sh\n"), accounts("/etc/group", "inspan:x:%[2]d:\n")
	}
	return nil
}

// boxUser is root's user id in a workspace box. With id 0, programs would assume privileges that they don't
// have.
const boxUser = 1000

func home() string {
	if h := os.Getenv("HOME"); h != "" {
		return h
	}
	return "/"
}

// accounts returns the list of users or groups with that of the box added.
func accounts(path, format string) string {
	data, err := keep.Read(path)
	if err != nil {
		return ""
	}
	var out strings.Builder
	for line := range strings.Lines(string(data)) {
		fields := strings.Split(line, ":")
		if len(fields) > 2 && fields[2] == fmt.Sprint(boxUser) {
			continue
		}
		out.WriteString(line)
	}
	fmt.Fprintf(&out, format, boxUser, boxUser)
	return out.String()
}

// closedInCopies lists the closed places that a box can't change if it has copies of git directories.
func (b *boxes) closedInCopies(o *protocol.Order, closed []sensitive.Place) []sensitive.Place {
	out := slices.DeleteFunc(closed, func(s sensitive.Place) bool { return o.Copied(s.Path) })
	for _, c := range o.Copies {
		out = append(out, sensitive.GitHooks(c.Path)...)
		if st, ok := paths.StampOf(c.Path); ok {
			o.View.Before = append(o.View.Before, st.Identity(c.Path))
		}
	}
	return out
}

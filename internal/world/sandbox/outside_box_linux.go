package sandbox

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/internal/world/sandbox/paths"
	"github.com/inspan/inspan/internal/world/sandbox/protocol"
	"github.com/inspan/inspan/internal/world/sandbox/sensitive"
	"github.com/inspan/inspan/tool"
)

// outside is the part of a workspace box that runs outside of it: its proxy, and the removal of new sensitive
// places from the workspace.
type outside struct {
	boxes   *boxes
	box     tool.Box
	before  []paths.Identity
	held    []paths.Folder
	closed  *closedPlaces
	secrets secretsBefore
	kill    func() // ends the command and its descendants, asynchronously

	stop  context.CancelFunc
	tasks sync.WaitGroup
	conns *handed
	watch *watch // nil means none

	mu      sync.Mutex
	list    []string       // refusals, in words
	fetched map[string]int // requests to registries, by host

	taken map[string]int // number of removals, by place; guarded by boxes.newRepositories.mu
}

// outside prepares the outside part before the box is created. Release it with release. From now on all boxes
// of the session know that this one may create repositories: its command can run before its keeper reports the
// start.
func (b *boxes) outside(k *supervised) *outside {
	box := k.command.Box
	places := slices.Clone(k.order.View.Before)
	tops := b.Folders()
	for _, g := range k.order.Read {
		if !slices.Contains(tops, g.Path) && !slices.Contains(box.Read, g.Path) && !slices.Contains(box.Write, g.Path) {
			continue
		}
		for _, hole := range g.Holes {
			if st, ok := paths.StampOf(hole); ok {
				places = append(places, st.Identity(hole))
			}
		}
	}
	if box.Init {
		b.CountMakers(1)
	}
	o := &outside{
		boxes: b, box: box, before: k.order.View.Before, held: b.OpenFolders(box), closed: newClosedPlaces(places), secrets: b.secrets(),
		kill: func() { _ = k.ask(protocol.Request{Op: protocol.OpKill}) },
	}
	if o.watch = b.watches.take(); o.watch.add(b.Root, unix.IN_CREATE|unix.IN_MOVED_TO|unix.IN_ONLYDIR) != nil {
		b.watches.give(o.watch)
		o.watch = nil // the final check remains
	} else {
		o.closed.watch(o.watch)
	}
	b.newRepositories.watchFor(o)
	return o
}

// start starts the tasks. They end with shut.
func (o *outside) start() {
	ctx, stop := context.WithCancel(context.Background())
	o.stop = stop
	if len(o.box.Hosts) > 0 {
		o.conns = &handed{ch: make(chan net.Conn, 64), done: make(chan struct{})}
		o.tasks.Go(func() { _ = o.proxy().Serve(ctx, o.conns) })
	}
	if o.watch != nil {
		o.tasks.Go(o.watchTop)
	}
}

// finish ends the tasks and checks the workspace for the last time.
func (o *outside) finish() {
	o.stop()
	if o.conns != nil {
		_ = o.conns.Close()
	}
	o.watch.stop()
	o.tasks.Wait()
	o.boxes.newRepositories.stopFor(o)
	o.sweep()
	o.boxes.adoptSecrets(o.secrets)
	o.release()
}

// release closes all open files. Nil has none.
func (o *outside) release() {
	if o == nil {
		return
	}
	o.boxes.newRepositories.stopFor(o)
	if o.box.Init {
		o.boxes.CountMakers(-1)
	}
	o.boxes.watches.give(o.watch)
	paths.CloseFolders(o.held)
	o.closed.release()
}

// changedOutside reports whether the content of a place was put there from outside.
func (o *outside) changedOutside(path string) bool {
	if _, _, ok := o.closed.covered(path); ok {
		return o.closed.changed(path)
	}
	return o.boxes.ChangedOutside(path, o.before)
}

// sweep removes new sensitive places.
func (o *outside) sweep() {
	o.mu.Lock()
	defer o.mu.Unlock()
	found := o.boxes.Appeared(o.box, o.before, o.held, o.changedOutside)
	o.list = append(o.list, o.boxes.TakeAwayAll(found, o.held)...)
}

func (o *outside) refuse(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !slices.Contains(o.list, text) && len(o.list) < 1000 {
		o.list = append(o.list, text)
	}
}

// countFetch counts a request to a registry.
func (o *outside) countFetch(host string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.fetched == nil {
		o.fetched = map[string]int{}
	}
	if o.fetched[host] > 0 || len(o.fetched) < mostFetched {
		o.fetched[host]++
	}
}

const mostFetched = 100 // counted hosts

func (o *outside) refused() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.list)
}

// proxy returns a proxy that reaches only the hosts of the box.
func (o *outside) proxy() *netguard.Proxy {
	var guard netguard.Guard
	if o.boxes.o.Guard != nil {
		guard = *o.boxes.o.Guard
	}
	guard.Near = o.boxes.o.Near
	more := guard.Allow
	guard.Allow = func(host string, port int) error {
		if !netguard.Hosts(o.box.Hosts).Match(host, port) {
			return errors.New(host + closedHost)
		}
		if more != nil {
			return more(host, port)
		}
		return nil
	}
	return &netguard.Proxy{Guard: &guard, Swap: o.boxes.o.Swap, Fetches: o.boxes.o.Fetches, Fetched: o.countFetch, Refused: func(host, reason string) {
		if reason == host+closedHost {
			o.refuse(strings.TrimPrefix(netguard.Blocked(host), "the sandbox "))
			return
		}
		o.refuse("refused to connect to " + host + ": " + reason)
	}}
}

// closedHost follows the name of a host that could be opened.
const closedHost = " is not among the hosts that this command may reach"

// accept passes a connection from inside the box to the proxy.
func (o *outside) accept(fd int) {
	if fd < 0 {
		return
	}
	file := os.NewFile(uintptr(fd), "connection")
	defer file.Close()
	conn, err := net.FileConn(file)
	if err != nil {
		return
	}
	if o.conns == nil || !o.conns.put(conn) {
		_ = conn.Close()
	}
}

// handed is a listener for connections that were accepted elsewhere.
type handed struct {
	ch   chan net.Conn
	done chan struct{}
	once sync.Once
}

// put offers a connection. It returns false if the listener is closed.
func (h *handed) put(c net.Conn) bool {
	select {
	case <-h.done:
		return false
	default:
	}
	select {
	case h.ch <- c:
		return true
	default:
		return false
	}
}

// Accept implements [net.Listener].
func (h *handed) Accept() (net.Conn, error) {
	select {
	case c := <-h.ch:
		return c, nil
	case <-h.done:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (h *handed) Close() error {
	h.once.Do(func() { close(h.done) })
	return nil
}

// Addr implements [net.Listener].
func (h *handed) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

// watchTop removes sensitive places as they appear at the top of the workspace. Events only trigger a check;
// their content is not used.
func (o *outside) watchTop() {
	ended := false
	for {
		if path, ok := o.closed.first(); ok && !ended {
			ended = true
			o.refuse("was ended, because " + path + " was changed from outside while it ran; run it again")
			o.kill()
		}
		if !o.watch.wait() {
			return
		}
		entries, err := paths.ReadFolder(o.boxes.Root)
		if err != nil {
			continue
		}
		for _, e := range entries {
			o.judge(filepath.Join(o.boxes.Root, e.Name()))
		}
	}
}

func (o *outside) judge(path string) {
	s, closed := o.boxes.Judge(path)
	is, ok := paths.Identify(o.held, path)
	if !closed || !ok || o.box.Git && path == filepath.Join(o.boxes.Root, ".git") {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if slices.Contains(o.before, is) || o.changedOutside(path) {
		return
	}
	if made, open := o.boxes.MadeHere(path, false); made && (o.box.Git || !o.box.Init) {
		o.keepInert(path, open)
		return
	}
	if len(o.boxes.Closed(o.box, []sensitive.Place{s})) > 0 {
		o.list = append(o.list, o.boxes.TakeAway(sensitive.Intruder{Place: s, Is: is}, o.held))
	}
}

// keepInert watches a repository that another box of the session created. This box is older, so it could write
// there. While the other box is open, that box's own final check handles it.
func (o *outside) keepInert(git string, open bool) {
	for _, dir := range []string{git, filepath.Join(git, "hooks"), filepath.Join(git, "info"), filepath.Join(git, "objects/info")} {
		_ = o.watch.add(dir, unix.IN_CREATE|unix.IN_MOVED_TO|unix.IN_CLOSE_WRITE|unix.IN_ONLYDIR|unix.IN_DONT_FOLLOW)
	}
	if open {
		return
	}
	for _, s := range sensitive.Unsafe(git) {
		if is, ok := paths.Identify(o.held, s.Path); ok {
			o.list = append(o.list, o.boxes.TakeAway(sensitive.Intruder{Place: s, Is: is}, o.held))
			go o.boxes.newRepositories.count(s.Path)
		}
	}
}

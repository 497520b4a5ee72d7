package temporal_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/inspan/inspan/engine/postgres/testkit"
	"github.com/inspan/inspan/event"
)

// fault is an outside fault that strikes sessions.
type fault struct {
	name   string
	not    []string                                 // supervisors that it can't meet
	before func(t *testing.T, r *round, c *conf)    // builds what it needs
	starts func(r *round, c conf) (worker *process) // a worker; nil means the usual way
	strike func(r *round)                           //
	after  func(r *round)                           // all sessions have stopped; nil means nothing is to be done
	all    bool                                     // it strikes all sessions
	stays  []string                                 // supervisors under which a session stays where it is
	within time.Duration                            // how long it may take until a session goes on; 0 means two seconds
	drop   func(line string) bool                   // what is in the log because of it; nil means nothing
	bulk   int                                      // bytes that results have
}

// world is the environment that faults affect.
type world struct {
	own    *testkit.Cluster
	disk   *testkit.Disk
	clock  string // file that sets the clock of the database
	cuts   map[int]func(parted bool) error
	greedy *process
}

func faults() []fault {
	return []fault{
		{name: "kill -9", strike: kills},
		{name: "SIGSTOP for longer than the lease", strike: stops, after: wakes, stays: []string{byFolder}},
		{name: "partition: a proxy drops", not: []string{byFolder}, starts: proxied, strike: parts, after: heals},
		{
			name: "partition: a namespace whose packets are dropped", not: []string{byFolder}, before: needsNamespaces,
			starts: inNamespace, strike: parts, after: heals,
		},
		{
			name: "the database crashes and restarts", not: []string{byFolder}, before: ownDatabase, strike: restarts,
			all: true, within: 10 * time.Second,
		},
		{name: "the Temporal server crashes and restarts", not: []string{byFolder, byDatabase}, strike: restartsEngine, all: true},
		{name: "the disk is full for a second", before: smallDisk, strike: fills, all: true, within: 10 * time.Second, bulk: 20000},
		{name: "the clock of the log jumps an hour", not: []string{byFolder}, before: ownClock, strike: jumps, all: true},
		{name: "every input and wake comes five times", strike: repeats, all: true, drop: repeated},
		{name: "another worker tries to drive all sessions", strike: crowds, after: leaves, all: true},
		{
			name: "a new version is deployed", strike: deploys, drop: newVersion,
			stays: []string{byFolder, byDatabase, byTemporal},
		}, // what ends while its worker is asked to leave
	}
}

// starts starts a worker the way that the fault needs.
func (r *round) starts(c conf) *process {
	if r.cell.fault.starts != nil {
		return r.cell.fault.starts(r, c)
	}
	return r.workerOf(c, os.Args[0])
}

func kills(r *round) {
	r.hits(func() { r.victim.sends(r.t, syscall.SIGKILL) })
}

// stops stops a worker. The others continue, except in a local folder, where the stopped one keeps the lock.
func stops(r *round) {
	r.hits(func() { r.victim.sends(r.t, syscall.SIGSTOP) })
	if r.cell.kind == byFolder {
		r.passes(2 * r.Conf.Lease)
		r.victim.sends(r.t, syscall.SIGCONT)
	}
}

// wakes continues a worker that has lost everything to others.
func wakes(r *round) {
	r.victim.sends(r.t, syscall.SIGCONT)
	r.ends(r.victim)
}

// proxied starts a worker behind proxies of its own.
func proxied(r *round, c conf) *process {
	database, err := testkit.NewProxyTo("127.0.0.1", "unix", cluster.Socket())
	if err != nil {
		r.t.Fatal(err)
	}
	server, err := testkit.NewProxyTo("127.0.0.1", "tcp", engineAddress())
	if err != nil {
		r.t.Fatal(err)
	}
	return r.behind(c, database, server, func(parted bool) error {
		database.Drop(parted)
		server.Drop(parted)
		return nil
	}, os.Args[0])
}

// engineAddress is the address of Temporal; empty for workers without an engine.
func engineAddress() string {
	if engine == nil {
		return "127.0.0.1:1"
	}
	return engine.address
}

// behind starts a worker that reaches both servers by proxies.
func (r *round) behind(c conf, database, server *testkit.Proxy, cut func(bool) error, command ...string) *process {
	r.t.Cleanup(func() {
		if err := errors.Join(database.Close(), server.Close()); err != nil {
			r.t.Error(err)
		}
	})
	c.URL, c.Temporal = database.URL("postgres"), server.Address()
	w := r.workerOf(c, command...)
	if r.cuts == nil {
		r.cuts = map[int]func(bool) error{}
	}
	r.cuts[w.Process.Pid] = cut
	return w
}

func parts(r *round) {
	r.hits(func() { r.cut(true) })
}

func (r *round) cut(parted bool) {
	if err := r.cuts[r.victim.Process.Pid](parted); err != nil {
		r.t.Error(err)
	}
}

// heals joins a worker again that others have taken everything from.
func heals(r *round) {
	r.cut(false)
	r.ends(r.victim)
}

// ownDatabase gives the sessions a database that can be taken away.
func ownDatabase(t *testing.T, r *round, c *conf) {
	databaseOn(t, r, c, nil, "/tmp")
}

func databaseOn(t *testing.T, r *round, c *conf, env []string, dir string, settings ...string) {
	own, err := testkit.StartWith(env, dir, settings...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := own.Remove(); err != nil {
			t.Error(err)
		}
	})
	r.own, c.URL = own, own.URL("postgres")
}

func restarts(r *round) {
	r.hits(func() {
		if err := errors.Join(r.own.Down("immediate"), r.own.Up()); err != nil {
			r.t.Fatal(err)
		}
	})
}

func restartsEngine(r *round) {
	r.hits(func() {
		engine.kill()
		if err := engine.start(); err != nil {
			r.t.Fatal(err)
		}
	})
}

// smallDisk gives the log a disk that can be filled.
func smallDisk(t *testing.T, r *round, c *conf) {
	disk, err := testkit.NewDisk("256m")
	if err != nil {
		t.Skipf("SKIPPED: only root can mount a small disk: %v", err)
	}
	t.Cleanup(func() {
		if err := disk.Remove(); err != nil {
			t.Error(err)
		}
	})
	r.disk = disk
	if c.Kind == byFolder {
		c.State = filepath.Join(disk.Dir, "state")
		return
	}
	databaseOn(t, r, c, nil, disk.Dir)
}

func fills(r *round) {
	r.hits(func() {
		if err := r.disk.Fill(0); err != nil {
			r.t.Fatal(err)
		}
	})
	r.passes(time.Second)
	if err := r.disk.Empty(); err != nil {
		r.t.Fatal(err)
	}
	if r.own != nil && r.own.Exec(r.t.Context(), "postgres", "SELECT 1") != nil { // it has crashed
		_ = r.own.Down("immediate")
		if err := r.own.Up(); err != nil {
			r.t.Fatal(err)
		}
	}
}

// ownClock gives the sessions a database whose clock can be set. Those of workers can't: Go takes the
// time from the kernel without a function that could be replaced.
func ownClock(t *testing.T, r *round, c *conf) {
	found, _ := filepath.Glob("/usr/lib/*/faketime/libfaketime.so.1")
	if len(found) == 0 {
		t.Skip("SKIPPED: faketime is not installed: apt-get install faketime")
	}
	dir, err := os.MkdirTemp("/tmp", "inspan-clock-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	r.clock = filepath.Join(dir, "clock")
	r.sets(t, 0)
	databaseOn(t, r, c, []string{
		"LD_PRELOAD=" + found[0], "FAKETIME_TIMESTAMP_FILE=" + r.clock, "FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1",
	}, "/tmp")
}

// sets sets the clock of the database.
func (r *round) sets(t testing.TB, ahead time.Duration) {
	if err := os.WriteFile(r.clock+".new", fmt.Appendf(nil, "%+d\n", int(ahead.Seconds())), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(r.clock+".new", r.clock); err != nil {
		t.Fatal(err)
	}
}

// jumps sets it an hour ahead or back.
func jumps(r *round) {
	r.skew = time.Hour
	if r.IntN(2) == 0 {
		r.skew = -time.Hour
	}
	r.hits(func() { r.sets(r.t, r.skew) })
}

const again = "And mind the gap."

// repeats sends one input five times at once, and as many wakes.
func repeats(r *round) {
	r.early, r.runs = false, 2
	r.hits(func() {
		var group sync.WaitGroup
		for range 5 {
			for _, id := range r.ids {
				group.Go(func() {
					if err := r.says(id); err != nil {
						r.t.Error(err)
					}
				})
			}
		}
		group.Wait()
		r.at = time.Now()
	})
}

func (r *round) says(id string) error {
	said := event.Say(again)
	said.Message = "again"
	if r.client != nil {
		return errors.Join(r.client.Send(r.t.Context(), id, said), r.client.Wake(r.t.Context(), id, ""))
	}
	w, err := r.Conf.host(r.store).Watch(r.t.Context(), id)
	if err != nil {
		return err
	}
	if err := errors.Join(w.Send(r.t.Context(), said), w.Close()); err != nil || r.Conf.Kind != byDatabase {
		return err
	}
	return r.Conf.engine(r.store).Wake(r.t.Context(), id, said)
}

func repeated(line string) bool { return strings.Contains(line, again) }

// crowds adds a worker that tries to drive all sessions without asking anybody.
func crowds(r *round) {
	r.early = false
	r.hits(func() {
		c := r.Conf
		c.Greedy = true
		if c.Kind == byTemporal {
			c.Kind = byDatabase
		}
		r.greedy = r.starts(c)
		r.passes(500 * time.Millisecond)
		r.at = time.Now()
	})
}

func leaves(r *round) { r.ends(r.greedy) }

// deploys replaces all workers by those of a new version, as a deployment does.
func deploys(r *round) {
	next := 0
	r.hits(func() {
		next = r.hires(1)
		r.victim.sends(r.t, syscall.SIGTERM)
	})
	for pid, w := range maps.Clone(r.workers) {
		if pid != r.victim.Process.Pid && pid != next {
			r.hires(1)
			r.ends(w)
		}
	}
}

// newVersion lists the traces of changed tools: the event, and the digest of everything that the session has, with
// which the run ends.
func newVersion(line string) bool {
	return strings.HasPrefix(line, "switched ") || strings.HasPrefix(line, "stopped ")
}

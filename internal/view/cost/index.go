package cost

import (
	"bytes"
	"context"
	"iter"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/rawjson"
	"github.com/inspan/inspan/internal/kernel/session"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/store"
)

const (
	indexFormat = "inspan cost 3"
	mostIndex   = 1 << 30 // bytes

	// The index is written again when more than one in so many sessions had to be read.
	indexShare = 128
)

// summed holds the tallies of a session, and its entry in the list at that time. Logs only grow, so the tallies
// are valid while the entry is the same.
type summed struct {
	events   uint64
	size     int64
	modified time.Time
	tools    bool // the tallies have their tools
	tallies  []Tally
}

// fits reports whether the tallies are those of the session as it is listed now, with their tools if these are needed.
func (s summed) fits(info store.Info, tools bool) bool {
	return (s.tools || !tools) && info.Damage == nil && s.events == info.Events && s.size == info.Size && s.modified.Equal(info.Modified)
}

// indexed is Spent with an index. Missing or outdated entries only cost time.
func indexed(ctx context.Context, sessions store.Store, s Spending, warn func(string)) ([]Tally, error) {
	list, err := sessions.List(ctx)
	if err != nil {
		return nil, err
	}
	known := readIndex(s.Index)
	var changed []store.Info
	list = slices.DeleteFunc(list, func(info store.Info) bool {
		fits := known[info.ID].fits(info, !s.Totals)
		if !fits && !s.untouched(info) {
			changed = append(changed, info)
		}
		return !fits && s.untouched(info)
	})
	fresh := sumUp(ctx, sessions, changed, !s.Totals, warn)
	next := make(map[string]summed, len(list))
	var all []Tally
	for _, info := range list {
		of, read := fresh[info.ID]
		if !read {
			of = known[info.ID]
		}
		next[info.ID] = of
		for _, t := range of.tallies {
			if t.Day >= s.since() {
				all = append(all, t)
			}
		}
	}
	if ctx.Err() == nil && len(changed)*indexShare > len(list) {
		writeIndex(s.Index, next)
	}
	return all, ctx.Err()
}

// sumUp sums up sessions, as many at once as there are processors.
func sumUp(ctx context.Context, sessions store.Store, list []store.Info, tools bool, warn func(string)) map[string]summed {
	var mu sync.Mutex // of out and warn
	out, shared := make(map[string]summed, len(list)), &guesses{sizes: map[string]int{}}
	var workers sync.WaitGroup
	next := make(chan store.Info)
	for range min(runtime.GOMAXPROCS(0), len(list)) {
		workers.Go(func() {
			for info := range next {
				of := summed{events: info.Events, size: info.Size, modified: info.Modified, tools: tools}
				var err error
				if tools {
					of.tallies, err = tallies(info.ID, store.Events(ctx, sessions, info.ID), shared)
				} else {
					of.tallies, err = sums(info.ID, bills(ctx, sessions, info.ID))
				}
				if err != nil {
					of.modified = time.Time{} // so that it is read again next time
				}
				mu.Lock()
				if out[info.ID] = of; err != nil {
					warn(err.Error())
				}
				mu.Unlock()
			}
		})
	}
	for _, info := range list {
		if ctx.Err() != nil {
			break
		}
		next <- info
	}
	close(next)
	workers.Wait()
	return out
}

// sums returns the tallies of a session without their parts and tools, from its [bills].
func sums(session string, events iter.Seq2[event.Event, error]) ([]Tally, error) {
	r := NewRecorder(session)
	r.sums = true
	err := r.read(events)
	return r.Tallies(), err
}

// bills returns the events of a session that name its parent or something paid, and perhaps others. Those of a
// [session.Store] have no parts, which take most of the time to decode.
func bills(ctx context.Context, sessions store.Store, id string) iter.Seq2[event.Event, error] {
	local, is := sessions.(*session.Store)
	if !is {
		return store.Events(ctx, sessions, id)
	}
	opened := event.Opened{}.Kind()
	paid := map[string]bool{}
	for _, b := range []event.Body{
		event.Replied{}, event.Routed{}, event.Failed{}, event.Ended{}, event.Judged{}, event.Compacted{}, event.Kept{},
	} {
		paid[b.Kind()] = true
	}
	return local.Some(ctx, id, func(kind string, line []byte) []byte {
		switch {
		case kind == opened:
			return line
		case paid[kind] && (bytes.Contains(line, []byte(`"cost":`)) || bytes.Contains(line, []byte(`"usage":`))):
			return withoutParts(line)
		}
		return nil
	})
}

// withoutParts returns the line of an event without the parts in its body. A line that is not spelled the way
// [event.Encode] spells it stays as it is.
func withoutParts(line []byte) []byte {
	const name = `"body":`
	at := bytes.Index(line[:min(len(line), 512)], []byte(name))
	if at < 0 {
		return line
	}
	head, tail := line[:at+len(name)], line[at+len(name):]
	if body, closed := bytes.CutSuffix(tail, []byte("}")); closed {
		if _, rest, ok := rawjson.CutList(body, "parts"); ok {
			return slices.Concat(head, rest, []byte("}"))
		}
	}
	return line
}

// readIndex returns the content of the file by session; nothing if it is missing, damaged or of another
// version.
func readIndex(path string) map[string]summed {
	info, err := os.Stat(path)
	if err != nil || info.Size() > mostIndex || !info.Mode().IsRegular() {
		return nil
	}
	data, err := keep.Read(path)
	if err != nil {
		return nil
	}
	in, ok := keep.OpenSidecar(data, indexFormat)
	if !ok {
		return nil
	}
	out := make(map[string]summed, max(0, min(int(in.Int()), len(data))))
	for in.More() {
		id, parent := in.Text(), in.Text()
		s := summed{events: uint64(in.Int()), size: in.Int(), modified: in.Time(), tools: in.Int() != 0}
		for range in.Int() {
			if !in.Good() {
				return nil
			}
			s.tallies = append(s.tallies, readTally(in, id, parent))
		}
		out[id] = s
	}
	if !in.Good() {
		return nil
	}
	return out
}

func readTally(in *keep.Sidecar, id, parent string) Tally {
	t := Tally{Session: id, Parent: parent, Day: in.Text(), Route: in.Text(), All: readRow(in)}
	for range in.Int() {
		if !in.Good() {
			break
		}
		t.Tools = append(t.Tools, readRow(in))
	}
	return t
}

func readRow(in *keep.Sidecar) Row {
	number := func() int { return int(in.Int()) }
	return Row{
		Key: in.Text(), Replies: number(), Dollars: Money(in.Int()), Unpriced: number(), Estimated: number(),
		Usage: llm.Usage{
			Input: number(), CacheRead: number(), CacheWrite: number(), Output: number(), Reasoning: number(), Estimated: in.Int() != 0,
		},
	}
}

// writeIndex writes the file again, if it can be written.
func writeIndex(path string, all map[string]summed) {
	out := keep.NewSidecar(indexFormat)
	out.PutInt(int64(len(all)))
	for id, s := range all {
		parent := ""
		if len(s.tallies) > 0 {
			parent = s.tallies[0].Parent
		}
		out.PutText(id)
		out.PutText(parent)
		out.PutInt(int64(s.events))
		out.PutInt(s.size)
		out.PutTime(s.modified)
		out.PutInt(flag(s.tools))
		out.PutInt(int64(len(s.tallies)))
		for _, t := range s.tallies {
			out.PutText(t.Day)
			out.PutText(t.Route)
			putRow(out, t.All)
			out.PutInt(int64(len(t.Tools)))
			for _, r := range t.Tools {
				putRow(out, r)
			}
		}
	}
	_ = keep.Write(path, out.Bytes())
}

func putRow(out *keep.Sidecar, r Row) {
	out.PutText(r.Key)
	u := r.Usage
	for _, n := range []int{r.Replies, int(r.Dollars), r.Unpriced, r.Estimated, u.Input, u.CacheRead, u.CacheWrite, u.Output, u.Reasoning} {
		out.PutInt(int64(n))
	}
	out.PutInt(flag(u.Estimated))
}

// flag returns a truth value as a number of an index.
func flag(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

package cost

import (
	"context"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/store"
)

const (
	indexFormat = "inspan cost 2"
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
	tallies  []Tally
}

func (s summed) fits(info store.Info) bool {
	return info.Damage == nil && s.events == info.Events && s.size == info.Size && s.modified.Equal(info.Modified)
}

// indexed is Spent with an index. Missing or outdated entries only cost time.
func indexed(ctx context.Context, sessions store.Store, s Spending, warn func(string)) ([]Tally, error) {
	list, err := sessions.List(ctx)
	if err != nil {
		return nil, err
	}
	known := readIndex(s.Index)
	list = slices.DeleteFunc(list, func(info store.Info) bool { return s.untouched(info) && !known[info.ID].fits(info) })
	var changed []store.Info
	for _, info := range list {
		if !known[info.ID].fits(info) {
			changed = append(changed, info)
		}
	}
	fresh := sumUp(ctx, sessions, changed, warn)
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
func sumUp(ctx context.Context, sessions store.Store, list []store.Info, warn func(string)) map[string]summed {
	var mu sync.Mutex // of out and warn
	out, shared := make(map[string]summed, len(list)), &guesses{sizes: map[string]int{}}
	var workers sync.WaitGroup
	next := make(chan store.Info)
	for range min(runtime.GOMAXPROCS(0), len(list)) {
		workers.Go(func() {
			for info := range next {
				of := summed{events: info.Events, size: info.Size, modified: info.Modified}
				tallies, err := tallies(info.ID, store.Events(ctx, sessions, info.ID), shared)
				if of.tallies = tallies; err != nil {
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
		s := summed{events: uint64(in.Int()), size: in.Int(), modified: in.Time()}
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
	estimated := 0
	if r.Usage.Estimated {
		estimated = 1
	}
	u := r.Usage
	all := []int{r.Replies, int(r.Dollars), r.Unpriced, r.Estimated, u.Input, u.CacheRead, u.CacheWrite, u.Output, u.Reasoning, estimated}
	for _, n := range all {
		out.PutInt(int64(n))
	}
}

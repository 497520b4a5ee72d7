package session

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/store"
)

const (
	listName   = "list.index" // next to the sessions: the result of List when it was last written
	listFormat = "inspan list 2"
	mostList   = 1 << 30 // bytes

	mostListLabels = 1000 // of a session; with more it is damaged

	// The list is written again when more than one in this many sessions had to be read.
	listShare = 128
)

// listed is a session in a list, and the stamp of its log then.
type listed struct {
	stamp
	store.Info
}

// list returns all sessions by id. Sessions whose logs have the stamp of the index are not read. Missing
// entries cost only time.
func (s *Store) list(ctx context.Context) ([]store.Info, error) {
	all, err := s.stamps(ctx)
	if err != nil {
		return nil, err
	}
	known := s.readList()
	now := make([]listed, len(all))
	var unknown []int
	gone := len(known)
	for i, next := 0, 0; i < len(all); i++ {
		for next < len(known) && known[next].ID < all[i].id {
			next++
		}
		there := next < len(known) && known[next].ID == all[i].id
		if there {
			gone--
		}
		if there && all[i].err == nil && known[next].same(all[i].stamp) {
			now[i] = known[next]
		} else {
			unknown = append(unknown, i)
		}
	}
	err = each(ctx, len(unknown), func(n int) {
		i := unknown[n]
		now[i] = listed{all[i].stamp, s.info(all[i].id)}
	})
	if err == nil && (gone > 0 || len(unknown)*listShare > len(all)) {
		s.writeList(now)
	}
	infos := make([]store.Info, len(now))
	for i := range now {
		infos[i] = now[i].Info
	}
	return infos, err
}

// readList returns the entries of the index, by id; nothing if it is missing, damaged or of another version.
func (s *Store) readList() []listed {
	data, err := s.readFile(filepath.Join(s.Dir, listName), mostList)
	in, ok := keep.OpenSidecar(data, listFormat)
	if err != nil || !ok {
		return nil
	}
	out := make([]listed, 0, max(0, min(int(in.Int()), len(data))))
	for in.More() {
		out = append(out, readListed(in))
	}
	if !in.Good() || !slices.IsSortedFunc(out, func(a, b listed) int { return strings.Compare(a.ID, b.ID) }) {
		return nil
	}
	return out
}

func readListed(in *keep.Sidecar) (l listed) {
	l.stamp = stamp{Size: in.Int(), At: in.Time()}
	l.ID, l.Title, l.Root, l.Parent, l.Preview = in.Text(), in.Text(), in.Text(), in.Text(), in.Text()
	l.Created, l.Modified = in.Time(), in.Time()
	l.Events, l.Info.Size, l.Stop = uint64(max(0, in.Int())), in.Int(), event.Reason(in.Text())
	l.Pinned, l.Empty = in.Int() != 0, in.Int() != 0
	for range min(max(0, in.Int()), mostListLabels) {
		if l.Labels == nil {
			l.Labels = map[string]string{}
		}
		name := in.Text()
		l.Labels[name] = in.Text()
	}
	return l
}

func (l listed) put(out *keep.Sidecar) {
	out.PutInt(l.stamp.Size)
	out.PutTime(l.At)
	for _, text := range []string{l.ID, l.Title, l.Root, l.Parent, l.Preview} {
		out.PutText(text)
	}
	out.PutTime(l.Created)
	out.PutTime(l.Modified)
	out.PutInt(int64(l.Events))
	out.PutInt(l.Info.Size)
	out.PutText(string(l.Stop))
	for _, yes := range []bool{l.Pinned, l.Empty} {
		out.PutInt(map[bool]int64{true: 1}[yes])
	}
	out.PutInt(int64(len(l.Labels)))
	for _, name := range slices.Sorted(maps.Keys(l.Labels)) {
		out.PutText(name)
		out.PutText(l.Labels[name])
	}
}

// writeList writes the index again, if possible. It omits entries that can change without another stamp:
// damaged logs, and those that have changed just now.
func (s *Store) writeList(all []listed) {
	out := keep.NewSidecar(listFormat)
	all = slices.DeleteFunc(slices.Clone(all), func(l listed) bool { return l.Damage != nil || time.Since(l.At) <= justNow })
	out.PutInt(int64(len(all)))
	for _, l := range all {
		l.put(out)
	}
	_ = s.replaceFile(filepath.Join(s.Dir, listName), out.Bytes(), false)
}

// unlist removes deleted sessions from the index, which has texts from them.
func (s *Store) unlist(ids []string) {
	known := s.readList()
	left := slices.DeleteFunc(slices.Clone(known), func(l listed) bool { return slices.Contains(ids, l.ID) })
	if len(left) < len(known) {
		s.writeList(left)
	}
}

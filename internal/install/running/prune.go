package running

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/kin"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/store"
)

// Stale is a session that is no longer kept, with those that work for it.
type Stale struct {
	store.Info
	Family int    // number of sessions, including its children
	Size   int64  // total bytes
	Why    string // why it is not kept, for people
}

// Stale lists the sessions that were not used for longer than age, and the oldest of the others until the rest
// takes at most size bytes; 0 means no limit for either. The oldest come first. Left is how many bytes stay.
// Some families always stay: if a session of theirs is being driven, waits for an answer, is pinned, can't be
// read to its end, or has agents with unmerged changes.
func (t *Table) Stale(ctx context.Context, age time.Duration, size int64) (stale []Stale, left int64, err error) {
	all, err := t.families(ctx)
	if err != nil {
		return nil, 0, err
	}
	for _, f := range all {
		left += f.Size
	}
	now := time.Now()
	for _, f := range all { // the oldest first
		switch rest := now.Sub(f.Modified); {
		case age > 0 && rest > age:
			f.Why = fmt.Sprintf("not used for %s", text.Count(int(rest.Hours()/24), "day"))
		case size > 0 && left > size:
			f.Why = "all sessions together are too large"
		default:
			continue
		}
		if !t.keeps(ctx, f) {
			left -= f.Size
			stale = append(stale, f.Stale)
		}
	}
	return stale, left, nil
}

// Pin keeps the session with this full id regardless of the retention, or no longer.
func (t *Table) Pin(ctx context.Context, id string, on bool) error {
	log, err := t.Sessions.Open(ctx, id)
	if err != nil {
		return err
	}
	_, err = log.Append(ctx, event.Pinned{On: on})
	return errors.Join(err, log.Close())
}

// family is a session started by a person, with those that work for it.
type family struct {
	Stale
	members []store.Info
}

// families returns all sessions by family, the most recently changed last.
func (t *Table) families(ctx context.Context) ([]family, error) {
	list, err := t.Sessions.List(ctx)
	if err != nil {
		return nil, err
	}
	byLead := map[string]*family{}
	for _, info := range list {
		lead := kin.Lead(info.ID)
		f := byLead[lead]
		if f == nil {
			f = &family{Stale: Stale{Info: store.NewInfo(lead)}}
			byLead[lead] = f
		}
		changed := f.Modified
		if info.Modified.After(changed) {
			changed = info.Modified
		}
		if info.ID == lead {
			f.Info = info
		}
		f.Modified = changed
		size, err := t.Sessions.Usage(ctx, info.ID)
		if err != nil {
			return nil, err
		}
		f.members, f.Family, f.Size = append(f.members, info), f.Family+1, f.Size+size
	}
	var out []family
	for _, f := range byLead {
		out = append(out, *f)
	}
	slices.SortStableFunc(out, func(a, b family) int {
		return cmp.Or(a.Modified.Compare(b.Modified), cmp.Compare(a.ID, b.ID))
	})
	return out, nil
}

// keeps reports whether a family stays regardless of age and size. It stays if that is unclear.
func (t *Table) keeps(ctx context.Context, f family) bool {
	if t.Trees != nil && (f.Family > 1 || f.Labels[CopyLabel] != "") {
		copies, err := t.copies(ctx, f.members, "")
		if err != nil || slices.ContainsFunc(copies, Copy.Unmerged) {
			return true
		}
	}
	return slices.ContainsFunc(f.members, func(info store.Info) bool {
		if h, err := t.Sessions.Holder(ctx, info.ID); h != nil || err != nil || info.Pinned || info.Damage != nil {
			return true
		}
		if info.Events == 0 {
			return false
		}
		st, err := t.Status(ctx, info.ID)
		return err != nil || len(st.Waiting)+len(st.Raised) > 0
	})
}

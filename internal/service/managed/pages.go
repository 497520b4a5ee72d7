package managed

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
)

const usualPage = 20

// page is a part of a list.
type page[T any] struct {
	Data []T     `json:"data"`
	Next *string `json:"next_page"`
}

// paged returns the page of a list that the request wants. At returns an entry's position, which grows along
// the list and never changes: a page is found by it, even if its first entry has been removed meanwhile.
func paged[T any, P cmp.Ordered](d *door, all []T, most int, at func(T) P) (page[T], error) {
	return pagedUpTo(d, all, most, most, at)
}

// shownPage returns a page of a list of objects, newest first, as clients see it.
func shownPage[T, V any](d *door, all []entry[T], most int, shown func(entry[T]) (V, error)) (page[V], error) {
	return pageOf(d, all, most, func(e entry[T]) int64 { return -e.Turn }, shown)
}

// pageOf is paged with the entries as clients see them.
func pageOf[T, V any, P cmp.Ordered](d *door, all []T, most int, at func(T) P, shown func(T) (V, error)) (page[V], error) {
	list, err := paged(d, all, most, at)
	if err != nil {
		return page[V]{}, err
	}
	return viewed(list, shown)
}

// viewed returns a page as clients see it.
func viewed[T, V any](list page[T], shown func(T) (V, error)) (page[V], error) {
	out := page[V]{Data: []V{}, Next: list.Next}
	for _, e := range list.Data {
		v, err := shown(e)
		if err != nil {
			return page[V]{}, err
		}
		out.Data = append(out.Data, v)
	}
	return out, nil
}

// pagedUpTo is paged with pages of at most the length longest, whatever the request wants.
func pagedUpTo[T any, P cmp.Ordered](d *door, all []T, most, longest int, at func(T) P) (page[T], error) {
	limit, err := d.number("limit", min(usualPage, most), 1, most)
	if err != nil {
		return page[T]{}, err
	}
	from := 0
	if token := d.query.Get("page"); token != "" {
		var first P
		raw, err := base64.RawURLEncoding.DecodeString(token)
		if err != nil || json.Unmarshal(raw, &first) != nil {
			return page[T]{}, invalid("page", "no such page", "next_page of the page before")
		}
		for from < len(all) && at(all[from]) < first {
			from++
		}
	}
	to := from + min(limit, longest)
	if to >= len(all) {
		return page[T]{Data: append([]T{}, all[from:]...)}, nil
	}
	raw, err := json.Marshal(at(all[to]))
	if err != nil {
		return page[T]{}, err
	}
	return page[T]{Data: append([]T{}, all[from:to]...), Next: new(base64.RawURLEncoding.EncodeToString(raw))}, nil
}

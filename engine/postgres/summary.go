package postgres

import (
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/kin"
	"github.com/inspan/inspan/store"
)

// changes returns the changes that bodies make to a session's entry in a list, and their kinds. A nil value
// changes nothing.
func changes(id string, bodies []event.Body) pgx.NamedArgs {
	info := store.NewInfo(id)
	kinds, musts := make([]string, len(bodies)), make([]bool, len(bodies))
	args := pgx.NamedArgs{
		"kinds": kinds, "musts": musts, "start": nil, "opened": false, "parent": nil, "root": nil, "labels": nil,
		"title": nil, "preview": nil, "pinned": nil, "stop": nil,
	}
	for i, b := range bodies {
		info.Add(event.Event{Seq: uint64(i) + 1, Session: id, Body: b})
		kinds[i] = clean(b.Kind())
		switch b := b.(type) {
		case event.Unknown:
			musts[i] = b.Must
		case event.Compacted, event.Rewound:
			args["start"] = i
		case event.Opened:
			args["opened"], args["root"], args["labels"] = true, clean(info.Root), cleaned(info.Labels)
			if info.Parent != kin.Parent(id) {
				args["parent"] = clean(info.Parent)
			}
		case event.Said:
			args["preview"] = clean(info.Preview) // of the first
		case event.Titled:
			args["title"] = clean(b.Title)
		case event.Pinned:
			args["pinned"] = b.On
		case event.Moved:
			args["root"] = clean(b.Root)
		case event.Stopped, event.Asked:
			args["stop"] = clean(string(info.Stop))
		}
	}
	return args
}

// whole returns all changes as values, for a session made from events.
func whole(info store.Info) pgx.NamedArgs {
	return pgx.NamedArgs{
		"created": info.Created, "modified": info.Modified, "parent": clean(info.Parent), "root": clean(info.Root),
		"labels": cleaned(info.Labels), "title": clean(info.Title), "preview": clean(info.Preview),
		"stop": clean(string(info.Stop)), "pinned": info.Pinned, "empty": info.Empty,
	}
}

// clean makes a text fit for a text column: no NUL, and valid UTF-8. The lines of events stay unchanged.
func clean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

func cleaned(labels map[string]string) map[string]string {
	if labels == nil {
		return nil
	}
	out := make(map[string]string, len(labels))
	for name, value := range labels {
		out[clean(name)] = clean(value)
	}
	return out
}

// telling returns the kinds of the events that affect a list.
func telling() []string {
	var kinds []string
	for _, b := range []event.Body{event.Opened{}, event.Said{}, event.Titled{}, event.Pinned{}, event.Moved{}, event.Stopped{}, event.Asked{}} {
		kinds = append(kinds, b.Kind())
	}
	return slices.Clip(kinds)
}

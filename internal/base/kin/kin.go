// Package kin tells from the ids of sessions which session works for which: the id of a child is that of its
// parent, a dot, and some characters.
package kin

import "strings"

// Parent returns the session that the given one works for; empty if none.
func Parent(id string) string {
	if i := strings.LastIndexByte(id, '.'); i > 0 {
		return id[:i]
	}
	return ""
}

// Lead returns the session started by a person that the given one works for, directly or not; the given one if
// it works for none.
func Lead(id string) string {
	lead, _, _ := strings.Cut(id, ".")
	return lead
}

// In reports whether the session id is of, or works for it directly or not.
func In(of, id string) bool { return id == of || strings.HasPrefix(id, of+".") }

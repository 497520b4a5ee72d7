// Package secret finds secrets in text and puts placeholders in their place.
//
// Secrets are keys, tokens and passwords, not names, addresses or numbers of
// people. The package finds them in two ways.
//
// By value: a [Vault] finds every value it was given, as it is and written as
// base64, hex, JSON or part of a URL, also with characters inside that nobody sees
// or that a shell takes away.
//
// By shape: [Find] knows the tokens of many vendors, private keys, passwords in
// addresses, authorization headers, cookies of sessions, and settings such as
// DB_PASSWORD=... whose value looks like a secret. A shape may miss a secret,
// and may take something else for one; a value that was given is never missed
// in the forms above.
//
// The package computes and does nothing else: no files, no clock, no chance.
// Time is linear in the text, and what a [Writer] holds back is bounded.
//
// # Rules of a text
//
// Placeholders are walls: no secret reaches over one, and nothing behind one is
// judged by what stands before it. A text that was redacted therefore stays as
// it is when it is redacted again.
package secret

import (
	"strings"
	"sync"
)

// Found is one secret in a text.
type Found struct {
	Start, End int    // bytes
	What       string // for people, such as "a private key", "an AWS key"; never the secret
}

// Finder finds secrets by their shape. Making it ready takes a while, so keep
// one for many texts. The zero value is ready. It is safe for concurrent use.
type Finder struct {
	once sync.Once
	f    *finder
}

// Find lists what looks like a secret by its shape, in order and without
// overlaps. It knows no values; see [Vault] for those.
func Find(text string) []Found { return new(Finder).Find(text) }

// Find is as the function of that name.
func (f *Finder) Find(text string) []Found {
	var out []Found
	for s, i := f.scanner(text), 0; i < len(text); {
		found, next := s.next(i)
		if found.End > 0 {
			out = append(out, found)
		}
		i = next
	}
	return out
}

// Hidden is a text with other words in the place of each secret that Find finds.
func (f *Finder) Hidden(text, instead string) string {
	var b strings.Builder
	at := 0
	for _, found := range f.Find(text) {
		b.WriteString(text[at:found.Start] + instead)
		at = found.End
	}
	return b.String() + text[at:]
}

// First is the first secret that Find finds. It reads no further. ok is false
// if there is none.
func (f *Finder) First(text string) (found Found, ok bool) {
	for s, i := f.scanner(text), 0; i < len(text); {
		if found, i = s.next(i); found.End > 0 {
			return found, true
		}
	}
	return Found{}, false
}

func (f *Finder) scanner(text string) *scanner {
	f.once.Do(func() { f.f = newFinder() })
	return &scanner{finder: f.f, text: text, final: true}
}

// Package secret finds secrets in text and replaces them with placeholders.
//
// Secrets are keys, tokens and passwords, not names, addresses or numbers of people. The package finds them in
// two ways.
//
// By value: a [Vault] finds every value that it was given, unchanged and written as base64, hex, JSON or part of a
// URL, even with invisible characters inside, or characters that a shell removes.
//
// By shape: [Find] knows the tokens of many vendors, private keys, hashes of passwords, passwords in addresses,
// authorization headers, session cookies, data of Secrets of Kubernetes, and settings such as DB_PASSWORD=... in
// the notation of many languages, with a value that looks like a secret. A shape may miss a secret, and may match
// something else. A given value is never missed in the forms above.
//
// The package is pure: no files, no clock, no randomness. Time is linear in the text, and the data that a
// [Writer] holds back is bounded.
//
// # Rules of a text
//
// Placeholders are boundaries: no secret extends across one, and text after one is judged independently of the text
// before it, so redacting a redacted text changes nothing.
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

// Finder finds secrets by their shape. Its initialization is slow, so use one for many texts. The zero value is
// ready. It is safe for concurrent use.
type Finder struct {
	once sync.Once
	f    *finder
}

// Find lists apparent secrets by their shape, in order and without overlaps. It knows no values; see [Vault]
// for those.
func Find(text string) []Found { return new(Finder).Find(text) }

// Find is like the function of that name.
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

// Hidden returns a text with each secret that Find finds replaced.
func (f *Finder) Hidden(text, instead string) string {
	var b strings.Builder
	at := 0
	for _, found := range f.Find(text) {
		b.WriteString(text[at:found.Start] + instead)
		at = found.End
	}
	return b.String() + text[at:]
}

// First returns the first secret that Find finds, and reads no further. ok is false if there is none.
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

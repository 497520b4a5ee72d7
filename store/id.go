package store

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/base/text"
)

const (
	childChars = 6                     // characters of an id that each parent adds
	mostID     = 20 + 8*(1+childChars) // bytes
)

// idChars is Crockford's base 32, which has no letters that look like others.
const idChars = "0123456789abcdefghjkmnpqrstvwxyz"

// IsID reports whether a name has the form of a session id: the time of creation in UTC, four characters, and six
// more after a dot for each parent, so ids sort by time, and can be file names.
func IsID(name string) bool {
	own, rest, _ := strings.Cut(name, ".")
	form := "dddddddd-dddddd-cccc"
	if len(own) != len(form) || len(name) > mostID {
		return false
	}
	for i := range form {
		switch c := own[i]; form[i] {
		case 'd':
			if c < '0' || c > '9' {
				return false
			}
		case 'c':
			if strings.IndexByte(idChars, c) < 0 {
				return false
			}
		default:
			if c != form[i] {
				return false
			}
		}
	}
	for len(own) < len(name) {
		part, more, _ := strings.Cut(rest, ".")
		if len(part) != childChars || strings.Trim(part, idChars) != "" {
			return false
		}
		own, rest = own+"."+part, more
	}
	return true
}

// NewID returns an id made of the time of creation and four characters from random, such as
// [crypto/rand.Reader]. If it is taken, the store makes another.
func NewID(at time.Time, random io.Reader) (string, error) {
	var b [4]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", err
	}
	for i := range b {
		b[i] = idChars[b[i]%32]
	}
	return at.UTC().Format(idTime) + "-" + string(b[:]), nil
}

const idTime = "20060102-150405"

// created returns when the session with this id was created, to the second.
func created(id string) time.Time {
	at, _ := time.Parse(idTime, id[:min(len(id), len(idTime))])
	return at
}

// ChildID returns the id of the session that works for parent under a name: the parent's id, and some
// characters of the digest of the name. It fails if parent is not a session id or has too many parents itself.
func ChildID(parent, name string) (string, error) {
	sum := sha256.Sum256([]byte(name))
	var b [childChars]byte
	for i := range b {
		b[i] = idChars[sum[i]%32]
	}
	id := parent + "." + string(b[:])
	if !IsID(parent) || !IsID(id) {
		return "", fmt.Errorf("session %q can have no children", parent)
	}
	return id, nil
}

const bookMark = "book-" // no session id begins with it

// BookID returns the id of the log of a book. A book's name has up to 32 lower-case letters.
func BookID(name string) (string, error) {
	if name == "" || len(name) > 32 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz") != "" {
		return "", fmt.Errorf("a book can't be called %q: its name has up to 32 small letters", name)
	}
	return bookMark + name, nil
}

// IsBook reports whether an id is that of a book.
func IsBook(id string) bool {
	name, is := strings.CutPrefix(id, bookMark)
	_, err := BookID(name)
	return is && err == nil
}

// UUIDLabel is the label of a session with the UUID that a person or program has given it.
const UUIDLabel = "session-id"

// byUUID returns the id of the session with a UUID: the first one, since forks have the labels of theirs.
func byUUID(ctx context.Context, s Store, text string) (id string, err error) {
	for info, err := range Recent(ctx, s) {
		if err != nil {
			return "", err
		}
		if info.Labels[UUIDLabel] == text && (id == "" || info.ID < id) {
			id = info.ID
		}
	}
	if id == "" {
		return "", missing(fmt.Sprintf("no session matches %q; see 'inspan sessions list'", text))
	}
	return id, nil
}

// Resolve returns the id of the session that a person means by name: a whole id, the beginning or end of exactly
// one, the UUID in its label [UUIDLabel], or "last" for the most recently changed session that has messages and
// was not spawned by another. The error wraps [fs.ErrNotExist] if there is none, and names the candidates if
// there are several.
func Resolve(ctx context.Context, s Store, name string) (string, error) {
	if name == "" {
		return "", missing(`no session is named; "last" is the one used last`)
	}
	if name == "last" {
		return last(ctx, s)
	}
	if lower := strings.ToLower(name); text.IsUUID(lower) {
		return byUUID(ctx, s, lower)
	}
	if IsID(name) { // there may be very many others
		if _, err := s.Usage(ctx, name); err == nil {
			return name, nil
		}
	}
	ids, err := s.IDs(ctx)
	if err != nil {
		return "", fmt.Errorf("find session: %w", err)
	}
	if slices.Contains(ids, name) {
		return name, nil
	}
	ids = slices.DeleteFunc(ids, func(id string) bool { return !strings.HasPrefix(id, name) && !strings.HasSuffix(id, name) })
	switch n := len(ids); {
	case n == 0:
		return "", missing(fmt.Sprintf("no session matches %q; see 'inspan sessions list'", name))
	case n == 1:
		return ids[0], nil
	case n > 5:
		return "", fmt.Errorf("find session: %q matches %d sessions, the last ones are %s", name, n, strings.Join(ids[n-5:], ", "))
	}
	return "", fmt.Errorf("find session: %q matches several: %s", name, strings.Join(ids, ", "))
}

func last(ctx context.Context, s Store) (string, error) {
	for info, err := range Recent(ctx, s) {
		if err != nil {
			return "", err
		}
		if info.Parent == "" && !info.Empty {
			return info.ID, nil
		}
	}
	return "", missing("there is no session yet")
}

// missing is an [fs.ErrNotExist] with its own text.
type missing string

func (m missing) Error() string        { return string(m) }
func (m missing) Is(target error) bool { return target == fs.ErrNotExist }

package session

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/harnesstest"
	"github.com/inspan/inspan/store"
)

const (
	sampleID   = "20261121-131502-k3f9"
	samplePath = "/store/" + sampleID + "/" + logName
)

// sample returns a real log: the content of a disk after some turns.
func sample(t *testing.T, events int) []byte {
	t.Helper()
	m := withLog(nil)
	s := &Store{Dir: "/store", disk: m}
	l, err := s.opened(t.Context(), sampleID)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Lease(t.Context()); err != nil {
		t.Fatal(err)
	}
	for batch := range slices.Chunk(talk(events), 3) {
		if _, err := l.AppendAs(t.Context(), event.Driver{After: l.tail.Seq}, batch...); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return m.nodes[samplePath].data
}

// withLog returns a disk with one session, whose log is data.
func withLog(data []byte) *memDisk {
	m := newMemDisk()
	for _, dir := range []string{"/store", "/store/" + sampleID} {
		m.nodes[dir] = &memFile{dir: true}
	}
	m.nodes[samplePath] = &memFile{data: bytes.Clone(data)}
	return m.crash(false, 0, false) // all of it is durable
}

// found is the outcome for a log that was opened, appended to twice, closed and opened again.
type found struct {
	events    []event.Event // at the end
	recovered int
	damage    *DamageError
}

// resume does what a user does after a crash. Damage ends it.
func resume(t *testing.T, m *memDisk) (f found) {
	t.Helper()
	s := &Store{Dir: "/store", disk: m}
	for round := range 2 {
		l, err := s.opened(t.Context(), sampleID)
		if err != nil {
			t.Fatal(err)
		}
		f.events = f.events[:0]
		for e, err := range l.Read(t.Context(), 0) {
			if err != nil && !errors.As(err, &f.damage) {
				t.Fatal(err)
			}
			if err == nil {
				f.events = append(f.events, e)
			}
		}
		for _, text := range []string{"n1", "n2"} {
			if round == 1 {
				break
			}
			_, err := l.Append(t.Context(), said(text))
			if (err != nil) != (f.damage != nil) {
				t.Fatalf("damage is %v, append says %v", f.damage, err)
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range f.events {
		if n, ok := e.Body.(event.Note); ok && n.Topic == "recovered" {
			f.recovered++
		}
	}
	return f
}

// check compares the outcome with the good lines: these, a note if the log was repaired, and the two appended ones.
func (f found) check(t *testing.T, what string, at int, good [][]byte, torn bool) {
	t.Helper()
	want, notes := len(good)+2, 0
	if torn {
		want, notes = want+1, 1
	}
	if f.damage != nil {
		want -= 2
	}
	if len(f.events) != want || f.recovered != notes {
		t.Fatalf("%s at %d: %d events with %d notes, want %d with %d (%v)", what, at, len(f.events), f.recovered, want, notes, f.damage)
	}
	f.checkPrefix(t, what, at, good)
	if f.damage == nil && (marker(f.events[want-2].Body) != "n1" || marker(f.events[want-1].Body) != "n2") {
		t.Fatalf("%s at %d: the log ends with %v", what, at, f.events[want-2:])
	}
}

// checkPrefix checks that no event differs from the written one.
func (f found) checkPrefix(t *testing.T, what string, at int, good [][]byte) {
	t.Helper()
	for i, line := range good {
		got, err := event.Encode(f.events[i])
		if err != nil || !bytes.Equal(got[1:], line[headLen:]) {
			t.Fatalf("%s at %d: event %d is\n%s, want\n%s", what, at, i+1, got, line)
		}
	}
}

// goodLines returns the whole lines in data.
func goodLines(data []byte) [][]byte {
	list := bytes.Split(data, []byte("\n"))
	return list[:len(list)-1]
}

func TestTruncated(t *testing.T) {
	data := sample(t, 21)
	torn := 0
	for n := 0; n <= len(data); n += Stride() {
		part := data[:n]
		isTorn := n > 0 && part[n-1] != '\n'
		if isTorn {
			torn++
		}
		m := withLog(part)
		resume(t, m).check(t, "cut", n, goodLines(part), isTorn)
		if isTorn && !setAside(m, part[bytes.LastIndexByte(part, '\n')+1:]) {
			t.Fatalf("cut at %d: the torn tail is not set aside", n)
		}
	}
	if torn < len(data)/Stride()/2 {
		t.Errorf("only %d of %d cuts tore a line", torn, len(data))
	}
}

// setAside reports whether the disk has a file with the torn tail.
func setAside(m *memDisk, tail []byte) bool {
	for path, f := range m.nodes {
		if path != samplePath && bytes.Equal(f.data, tail) && bytes.Contains([]byte(path), []byte("/torn-")) {
			return true
		}
	}
	return false
}

// TestRepairIsDurable cuts the power right after a torn log was repaired.
func TestRepairIsDurable(t *testing.T) {
	data := sample(t, 6)
	m := withLog(data[:len(data)-3])
	good := data[:bytes.LastIndexByte(data[:len(data)-3], '\n')+1]
	l, err := (&Store{Dir: "/store", disk: m}).opened(t.Context(), sampleID)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.exclusive(t.Context(), true, l.catchUp); err != nil {
		t.Fatal(err)
	}
	after := m.crash(true, 0, false)
	if got := after.nodes[samplePath].data; !bytes.Equal(got, good) {
		t.Errorf("the log is\n%s, want\n%s", got, good)
	}
	if !setAside(after, data[len(good):len(data)-3]) {
		t.Errorf("the torn tail is gone")
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// TestTruncatedBehindIndex does the same where an index knows less than the log has, or
// more: then that was lost by no crash.
func TestTruncatedBehindIndex(t *testing.T) {
	data := sample(t, 500)
	full := withLog(data)
	l, err := (&Store{Dir: "/store", disk: full}).opened(t.Context(), sampleID)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.flush(l.tail.Off); err != nil {
		t.Fatal(err)
	}
	l.saveIndexNow(true)
	index := full.nodes["/store/"+sampleID+"/"+indexName]
	if index == nil {
		t.Fatal("no index was written")
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 220 / Stride() {
		n := random.IntN(len(data) + 1)
		m := withLog(data[:n])
		m.nodes["/store/"+sampleID+"/"+indexName] = &memFile{data: bytes.Clone(index.data)}
		f := resume(t, m)
		if good := int64(lengthOf(goodLines(data[:n]))); (f.damage != nil) != (good < l.last.Off) {
			t.Fatalf("cut at %d: damage is %v, the index says %d", n, f.damage, l.last.Off)
		}
		f.check(t, "cut", n, goodLines(data[:n]), n > 0 && data[n-1] != '\n' && f.damage == nil)
	}
}

// TestSyncedIsNotTorn removes synced data from a log: cut, cut between two lines, or NUL. No crash does that, so it is
// damage; the log stays as it is, and its good part is read.
func TestSyncedIsNotTorn(t *testing.T) {
	m := newMemDisk()
	s := &Store{Dir: "/store", disk: m}
	l := driven(t, s)
	for batch := range slices.Chunk(talk(30), 3) {
		mustAppend(t, l, batch...)
	}
	mustAppend(t, l, said("the end"))
	path := filepath.Join(l.dir, logName)
	data := m.nodes[path].data
	lines := goodLines(data)
	for _, n := range []int{0, 1, lengthOf(lines[:1]), len(data) / 3, lengthOf(lines[:20]), len(data) - 2} {
		for _, rest := range [][]byte{nil, make([]byte, len(data)-n)} {
			holed := slices.Concat(data[:n], rest)
			after := m.crash(false, 0, false)
			after.nodes[path].data = holed
			s := &Store{Dir: "/store", disk: after}
			good := len(goodLines(data[:n]))
			infos, err := s.List(t.Context())
			if err != nil || len(infos) != 1 || infos[0].Damage == nil || infos[0].Events != uint64(good) {
				t.Fatalf("%d of %d bytes, %d NUL: listed as %+v, %v", n, len(data), len(rest), infos, err)
			}
			got, damaged := 0, false
			for _, err := range store.Events(t.Context(), s, l.ID()) {
				if d, ok := errors.AsType[*DamageError](err); ok && d.Line == good+1 {
					damaged = true
				} else if err == nil {
					got++
				}
			}
			if got != good || !damaged {
				t.Errorf("%d of %d bytes, %d NUL: %d events, want %d; damage told: %v", n, len(data), len(rest), got, good, damaged)
			}
			if r, err := s.Fsck(t.Context(), l.ID(), true); err != nil || r.OK() || r.Torn > 0 || len(r.Damage) == 0 {
				t.Errorf("%d of %d bytes, %d NUL: fsck says %+v, %v", n, len(data), len(rest), r, err)
			}
			reopen, err := s.opened(t.Context(), l.ID())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := reopen.Append(t.Context(), said("more")); err == nil {
				t.Errorf("%d of %d bytes, %d NUL: it takes more", n, len(data), len(rest))
			}
			_ = reopen.Close()
			if !bytes.Equal(after.nodes[path].data, holed) {
				t.Errorf("%d of %d bytes, %d NUL: the log was changed", n, len(data), len(rest))
			}
		}
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// TestNoise checks that bytes that were never a log, and one that lacks its beginning, are damage: nothing is cut
// off them, and nothing is written after them.
func TestNoise(t *testing.T) {
	noise := make([]byte, 42109)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(noise)
	lines := goodLines(sample(t, 12))
	for name, data := range map[string][]byte{
		"noise":          noise,
		"text":           []byte("hello\n"),
		"last line only": append(bytes.Clone(lines[11]), '\n'),
		"no first line":  append(bytes.Join(lines[1:], []byte("\n")), '\n'),
	} {
		m := withLog(data)
		if f := resume(t, m); f.damage == nil || len(f.events) > 0 {
			t.Errorf("%s: %d events, damage %v", name, len(f.events), f.damage)
		}
		if !bytes.Equal(m.nodes[samplePath].data, data) {
			t.Errorf("%s: it was changed", name)
		}
	}
}

func TestNULTail(t *testing.T) {
	data := sample(t, 12)
	for n := 0; n < len(data); n += Stride() {
		holed := bytes.Clone(data)
		clear(holed[n:])
		resume(t, withLog(holed)).check(t, "NUL from", n, goodLines(data[:n]), true)
	}
	for _, n := range []int{1, 100, 4096} { // the size grew, the data was not written
		resume(t, withLog(append(bytes.Clone(data), make([]byte, n)...))).check(t, "NUL behind", n, goodLines(data), true)
	}
}

func TestNULMiddle(t *testing.T) {
	data := sample(t, 30)
	lines := goodLines(data)
	last := len(data) - len(lines[len(lines)-1]) - 1 // start of the last line
	for _, size := range []int{1, 2, 17, 512, 4096} {
		for n := 0; n+size < last; n += 13 * Stride() {
			holed := bytes.Clone(data)
			clear(holed[n : n+size])
			f := resume(t, withLog(holed))
			good := goodLines(data[:n])
			if f.damage == nil || f.damage.Line != len(good)+1 || f.damage.Offset != int64(lengthOf(good)) {
				t.Fatalf("NUL at %d: damage is %v, want it at line %d, byte %d", n, f.damage, len(good)+1, lengthOf(good))
			}
			f.check(t, "NUL", n, good, false)
		}
	}
}

func lengthOf(lines [][]byte) (n int) {
	for _, l := range lines {
		n += len(l) + 1
	}
	return n
}

// TestBitFlips flips every bit of a log. The events read must be a prefix of the written ones, and the rest must be
// reported.
func TestBitFlips(t *testing.T) {
	data := sample(t, 9)
	lines := goodLines(data)
	repaired, damaged := 0, 0
	for n := 0; n < len(data)*8; n += Stride() {
		flipped := bytes.Clone(data)
		flipped[n/8] ^= 1 << (n % 8)
		f := resume(t, withLog(flipped))
		good := goodLines(data[:n/8])
		f.checkPrefix(t, "bit", n, good)
		f.check(t, "bit", n, good, f.damage == nil)
		if f.damage != nil {
			damaged++
		} else {
			repaired++
		}
		if f.damage == nil && len(good) < len(lines)-1 {
			t.Fatalf("bit %d: line %d of %d was cut as if torn", n, len(good)+1, len(lines))
		}
	}
	if repaired == 0 || damaged == 0 {
		t.Errorf("%d repaired, %d damaged: want some of each", repaired, damaged)
	}
}

// TestLinesMoved leaves out, doubles and swaps lines.
func TestLinesMoved(t *testing.T) {
	lines := goodLines(sample(t, 12))
	changes := map[string]func(l [][]byte, i int) [][]byte{
		"left out": func(l [][]byte, i int) [][]byte { return slices.Delete(l, i, i+1) },
		"doubled":  func(l [][]byte, i int) [][]byte { return slices.Insert(l, i, l[i]) },
		"swapped":  func(l [][]byte, i int) [][]byte { l[i], l[i+1] = l[i+1], l[i]; return l },
		"empty":    func(l [][]byte, i int) [][]byte { return slices.Insert(l, i, nil) },
	}
	for what, change := range changes {
		for i := range len(lines) - 2 {
			changed := change(slices.Clone(lines), i)
			f := resume(t, withLog(append(bytes.Join(changed, []byte("\n")), '\n')))
			good := i
			if what == "doubled" {
				good = i + 1
			}
			if f.damage == nil || f.damage.Line != good+1 {
				t.Fatalf("line %d %s: damage is %v", i+1, what, f.damage)
			}
			f.check(t, what, i, lines[:good], false)
		}
	}
}

// FuzzOpen opens arbitrary bytes as a log: nothing may panic, every event that is read has been verified, and an
// unreadable log refuses appends.
func FuzzOpen(f *testing.F) {
	var c cursor
	first := event.Event{Seq: 1, Session: sampleID, Body: said("x")}
	enc, err := event.Encode(first)
	if err != nil {
		f.Fatal(err)
	}
	line, err := c.add(nil, first, enc)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(line)
	f.Add(line[:len(line)-1])
	f.Add(append(bytes.Clone(line), line...))
	f.Add([]byte("\n\n\x00\x00\n"))
	f.Add([]byte(`{"crc":"00000000",{"crc":"00000000","seq":1}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		found := resume(t, withLog(data))
		for i, e := range found.events {
			if e.Seq != uint64(i)+1 {
				t.Fatalf("number %d at place %d", e.Seq, i+1)
			}
		}
		for _, err := range (&Store{Dir: "/store", disk: withLog(data)}).Salvage(t.Context(), sampleID) {
			if err != nil {
				t.Fatal(err)
			}
		}
	})
}

// FuzzLine verifies arbitrary bytes as a line: every accepted line is, byte for byte, what would be written.
func FuzzLine(f *testing.F) {
	f.Add([]byte(`"seq":1,"time":"2026-11-21T13:15:02.000Z","session":"s","kind":"said","body":{"parts":[]}}`))
	f.Add([]byte(`"kind":"said","seq":1,"body":{}}`))
	f.Add([]byte(`"kind":"switched+specs","seq":1,"body":{"tools":["#spec:"]}}`))
	f.Fuzz(func(t *testing.T, rest []byte) {
		line := appendCRC([]byte(crcHead), chain(0, rest))
		line = append(append(line, crcTail...), rest...)
		var c cursor
		kind, why := c.take(line)
		if why != "" {
			if c != (cursor{}) {
				t.Fatalf("cursor moved to %v though %s", c, why)
			}
			return
		}
		e, err := (&Store{Dir: "/store", disk: newMemDisk()}).decode(line)
		if err == nil && (e.Seq != 1 || e.Body.Kind() != kind) {
			t.Fatalf("taken as %d %q, decoded as %d %q", 1, kind, e.Seq, e.Body.Kind())
		}
	})
}

// TestMemDiskStore proves the disk of the tests by the suite.
func TestMemDiskStore(t *testing.T) {
	harnesstest.TestStore(t, stores(func(*testing.T) *Store { return &Store{Dir: "/store", disk: newMemDisk()} }))
}

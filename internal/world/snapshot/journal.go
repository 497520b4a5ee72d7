package snapshot

import (
	"bytes"
	"crypto/sha256"
	"fmt"

	"github.com/inspan/inspan/internal/base/keep"
)

const journalHead = "inspan-journal-1\n"

// journal is a restore: all data needed to execute or finish it.
type journal struct {
	before string
	word   string   // part of the names of temporary files
	locked []change // folders that must be made writable; from is their old state
	todo   []change // sorted by path
	kept   []change
	made   map[digest][]byte // content of todo that is not in the store
}

func (e *encoder) changes(list []change) {
	e.num(int64(len(list)))
	for _, c := range list {
		e.str(c.path)
		e.entry(c.from)
		e.entry(c.to)
		e.str(c.why)
	}
}

func (d *decoder) change() change {
	c := change{path: d.str(), from: d.entry(), to: d.entry(), why: d.str()}
	if c.path != "" && !goodPath(c.path) {
		d.fail()
	}
	return c
}

// goodPath reports whether a path stays below its start.
func goodPath(path string) bool {
	for len(path) > 0 {
		dir, name := split(path)
		if !goodName(name) || dir == "" && len(name) != len(path) {
			return false
		}
		path = dir
	}
	return true
}

func (j *journal) encode() []byte {
	var e encoder
	e.str(j.before)
	e.str(j.word)
	e.changes(j.locked)
	e.changes(j.todo)
	e.changes(j.kept)
	e.num(int64(len(j.made)))
	for _, data := range j.made {
		e.str(string(data))
	}
	sum := sha256.Sum256(e.b)
	return append(append([]byte(journalHead), sum[:]...), e.b...)
}

func parseJournal(data []byte) (*journal, bool) {
	rest, ok := bytes.CutPrefix(data, []byte(journalHead))
	if !ok || len(rest) < sha256.Size {
		return nil, false
	}
	body := rest[sha256.Size:]
	if sha256.Sum256(body) != digest(rest[:sha256.Size]) {
		return nil, false
	}
	d := decoder{b: body}
	j := &journal{before: d.str(), word: d.str()}
	j.locked = list(&d, d.change)
	j.todo = list(&d, d.change)
	j.kept = list(&d, d.change)
	if len(d.b) > 0 { // otherwise it was written before texts were merged
		j.made = map[digest][]byte{}
		for _, text := range list(&d, d.str) {
			j.made[sha256.Sum256([]byte(text))] = []byte(text)
		}
	}
	return j, !d.bad && len(d.b) == 0
}

// readJournal reads the journal of a restore in progress; the error is fs.ErrNotExist if there is none.
func readJournal(s *Store) (*journal, error) {
	data, err := keep.Read(s.path(journalName))
	if err != nil {
		return nil, err
	}
	j, ok := parseJournal(data)
	if !ok {
		return nil, &DamageError{What: fmt.Sprintf("%s is not what was written; if it is deleted, the restore stays half done",
			s.path(journalName))}
	}
	return j, nil
}

// temp returns the name of a path's temporary file.
func (j *journal) temp(n int) string { return fmt.Sprintf(".inspan-%s-%d", j.word, n) }

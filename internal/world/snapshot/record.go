package snapshot

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
)

const (
	recordHead = "inspan-checkpoint-1 "
	idTime     = "20060102-150405.000000"
)

var idPattern = regexp.MustCompile(`^\d{8}-\d{6}-\d{6}-[a-z2-7]{4}$`)

// record is a stored checkpoint.
type record struct {
	Checkpoint
	Tree string `json:"tree"` // digest of the workspace's tree
	Perm uint16 `json:"perm"` // of the workspace
}

// root returns the entry of the workspace.
func (r *record) root() (entry, error) {
	sum, ok := parseDigest(r.Tree)
	if !ok {
		return entry{}, &DamageError{Checkpoint: r.ID, What: "it names no tree"}
	}
	return entry{kind: isDir, perm: r.Perm & permission, sum: sum}, nil
}

// newID returns an ID that sorts after all others, and its time.
func (s *Store) newID() (string, time.Time, error) {
	ids, err := s.ids()
	if err != nil {
		return "", time.Time{}, err
	}
	now := time.Now().UTC()
	if len(ids) > 0 {
		if last := idTimeOf(ids[len(ids)-1]); !now.After(last) {
			now = last.Add(time.Microsecond)
		}
	}
	now = now.Truncate(time.Microsecond)
	stamp := strings.Replace(now.Format(idTime), ".", "-", 1)
	return stamp + "-" + strings.ToLower(rand.Text()[:4]), now, nil
}

// idTimeOf returns the time in an ID, rounded up so that a later one sorts after it.
func idTimeOf(id string) time.Time {
	t, _ := time.Parse(idTime, id[:15]+"."+id[16:22]) // the ID matches idPattern, otherwise zero
	return t.Add(time.Microsecond)
}

// ids lists the checkpoints, oldest first.
func (s *Store) ids() ([]string, error) {
	list, err := os.ReadDir(s.path(recordsName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var ids []string
	for _, e := range list {
		if idPattern.MatchString(e.Name()) {
			ids = append(ids, e.Name())
		}
	}
	slices.Sort(ids)
	return ids, err
}

func (r *record) encode() ([]byte, error) {
	data, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "%s%x\n%s\n", recordHead, sha256.Sum256(data), data), nil
}

func parseRecord(id string, data []byte) (*record, error) {
	damaged := &DamageError{Checkpoint: id, What: "its record is not what was written"}
	head, rest, _ := bytes.Cut(data, []byte("\n"))
	rest = bytes.TrimSuffix(rest, []byte("\n"))
	sum := sha256.Sum256(rest)
	if string(head) != recordHead+digest(sum).String() {
		return nil, damaged
	}
	var r record
	if err := json.Unmarshal(rest, &r); err != nil || r.ID != id {
		return nil, damaged
	}
	return &r, nil
}

// record reads a checkpoint's record.
func (s *Store) record(id string) (*record, error) {
	if !idPattern.MatchString(id) {
		return nil, fmt.Errorf("checkpoint %q: %w", id, ErrNoCheckpoint)
	}
	data, err := keep.Read(s.path(recordsName, id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("checkpoint %s: %w", id, ErrNoCheckpoint)
	}
	if err != nil {
		return nil, err
	}
	return parseRecord(id, data)
}

// records reads all checkpoints, oldest first, and returns the errors of damaged ones.
func (s *Store) records() (list []*record, damage error, err error) {
	ids, err := s.ids()
	for _, id := range ids {
		r, err := s.record(id)
		if err != nil {
			damage = errors.Join(damage, err)
			continue
		}
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b *record) int { return strings.Compare(a.ID, b.ID) })
	return list, damage, err
}

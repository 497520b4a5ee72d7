//go:build linux || darwin

package skill_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/extend/skill"
)

// full has a value in every field.
const full = "---\nname: b\ndescription: Does %s.\nlicense: MIT\ncompatibility: git\nmetadata: {author: me, version: '2'}\n" +
	"allowed-tools: Read Write\nargument-hint: a file\ndisable-model-invocation: true\nuser-invocable: false\n---\nText.\n"

// headed is a folder of the person's skills, and lists it as a new process does.
type headed struct {
	t          *testing.T
	dir, heads string
}

func newHeaded(t *testing.T) headed {
	h := headed{t, t.TempDir(), filepath.Join(t.TempDir(), "heads")}
	put(t, h.dir, map[string]string{"a/SKILL.md": fmt.Sprintf(full, "this"), "c/SKILL.md": fmt.Sprintf(simple, "c")})
	return h
}

func (h headed) list(source string) []skill.Skill {
	h.t.Helper()
	l := &skill.Library{Folders: []skill.Folder{{Path: h.dir, Source: source}}, Heads: h.heads}
	skills, warnings := l.List()
	if len(warnings) > 0 {
		h.t.Error(warnings)
	}
	return skills
}

// told fails unless a new process sees that a is said to do something.
func (h headed) told(want string) {
	h.t.Helper()
	skills := h.list("user")
	if len(skills) == 0 || skills[0].Description != want {
		h.t.Errorf("%+v, want %q", skills, want)
	}
}

func (h headed) do(errs ...error) {
	h.t.Helper()
	for _, err := range errs {
		if err != nil {
			h.t.Fatal(err)
		}
	}
}

// lie writes a valid file of heads whose content differs from the skills.
func (h headed) lie(is, told string) {
	h.t.Helper()
	data, err := os.ReadFile(h.heads)
	h.do(err)
	data = bytes.Replace(data[:len(data)-crc32.Size], []byte(is), []byte(told), 1)
	data = binary.LittleEndian.AppendUint32(data, crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)))
	h.do(os.WriteFile(h.heads, data, 0o600))
}

// later runs a test long after its files were written.
func later(t *testing.T, test func(h headed)) {
	h := newHeaded(t)
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(100 * 365 * 24 * time.Hour) // the clock begins in 2000
		h.t = t
		test(h)
	})
}

// TestHeads checks that a second process takes the first one's results from the file, unchanged.
func TestHeads(t *testing.T) {
	later(t, func(h headed) {
		fresh := h.list("user")
		for field, v := range reflect.ValueOf(&fresh[0]).Elem().Fields() {
			if v.IsZero() {
				t.Errorf("the skill has no %s, so that is not looked at", field.Name)
			}
		}
		if diff := cmp.Diff(fresh, h.list("user")); diff != "" {
			t.Error(diff)
		}
		info, err := os.Stat(h.heads)
		h.do(err)
		if info.Mode() != 0o600 {
			t.Error(info.Mode())
		}
		h.lie("Does this.", "Does that.")
		h.told("Does that.")
	})
}

// TestHeadsOfChangedSkills checks that the file never speaks for another file than was read.
func TestHeadsOfChangedSkills(t *testing.T) {
	path := func(h headed) string { return filepath.Join(h.dir, "a", "SKILL.md") }
	write := func(h headed, text string) { h.do(os.WriteFile(path(h), []byte(text), 0o600)) }
	for name, test := range map[string]struct {
		change func(h headed)
		want   string
	}{
		"longer": {func(h headed) { write(h, fmt.Sprintf(full, "much")+"More.") }, "Does much."},
		"as old and as long": {func(h headed) {
			before, err := os.Stat(path(h))
			h.do(err)
			_, was := keep.Inode(before)
			for now := was; now == was; { // until the clock of the disk ticks
				write(h, fmt.Sprintf(full, "much"))
				h.do(os.Chtimes(path(h), before.ModTime(), before.ModTime()))
				info, err := os.Stat(path(h))
				h.do(err)
				_, now = keep.Inode(info)
			}
		}, "Does much."},
		"another file": {func(h headed) {
			h.do(os.Rename(path(h), path(h)+".old"))
			write(h, fmt.Sprintf(full, "much"))
		}, "Does much."},
		"gone": {func(h headed) { h.do(os.RemoveAll(filepath.Join(h.dir, "a"))) }, "Does c."},
		"a folder that is a link to the same file": {func(h headed) {
			h.do(os.Rename(filepath.Join(h.dir, "a"), filepath.Join(h.dir, "c", "b")),
				os.Symlink(filepath.Join("c", "b"), filepath.Join(h.dir, "a")))
		}, "Does this."},
	} {
		t.Run(name, func(t *testing.T) {
			later(t, func(h headed) {
				h.list("user")
				h.lie("Does this.", "Lied here.")
				test.change(h)
				h.told(test.want)
				h.told(test.want) // with what the first look has written
			})
		})
	}
}

// TestHeadsDamaged checks that a damaged or cut file, or one of another program, is made again.
func TestHeadsDamaged(t *testing.T) {
	later(t, func(h headed) {
		h.list("user")
		whole, err := os.ReadFile(h.heads)
		h.do(err)
		for _, damaged := range [][]byte{nil, []byte("x"), whole[:len(whole)/2], bytes.ReplaceAll(whole, []byte("this"), []byte("that"))} {
			h.do(os.WriteFile(h.heads, damaged, 0o600))
			h.told("Does this.")
			if now, err := os.ReadFile(h.heads); err != nil || !bytes.Equal(now[:len(now)/4], whole[:len(whole)/4]) {
				t.Errorf("%q, %v", now, err)
			}
		}
		h.lie("Does this.", "Lied here.")
		h.lie("skill heads", "skill hands")
		h.told("Does this.")
	})
}

// TestHeadsOfWorkspaces checks that skills of a workspace are not in the file.
func TestHeadsOfWorkspaces(t *testing.T) {
	later(t, func(h headed) {
		h.list(skill.FromProject)
		if data, err := os.ReadFile(h.heads); err == nil {
			t.Errorf("%q", data)
		}
	})
}

// TestHeadsOfFreshSkills checks that a file which could change again without a trace is not in it.
func TestHeadsOfFreshSkills(t *testing.T) {
	h := newHeaded(t) // old by its own time, but just written
	h.told("Does this.")
	if data, err := os.ReadFile(h.heads); err == nil && strings.Contains(string(data), "this") {
		t.Errorf("%q", data)
	}
}

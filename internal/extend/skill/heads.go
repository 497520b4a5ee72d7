package skill

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/inspan/inspan/internal/base/keep"
)

// headsFormat is the format of [Library.Heads]. The content was parsed by a program, so its validity also
// depends on that program's file.
const headsFormat = "skill heads 3"

// mostHeads bounds the length of that file.
const mostHeads = 16 << 20

// saved holds the skills in the file of a library, by folder.
type saved map[string]savedSkill

type savedSkill struct {
	stamp keep.Stamp
	*known
}

// headsOf returns the format in which this program saves; empty if the program can't be identified.
func headsOf() string {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return fmt.Sprint(headsFormat, keep.StampOf(info))
}

// load returns the content of the file; nothing if it is damaged, too long, or from another program.
func (l *Library) load() saved {
	if l.Heads == "" {
		return nil
	}
	format := headsOf()
	info, err := os.Stat(l.Heads)
	if format == "" || err != nil || info.Size() > mostHeads {
		return nil
	}
	data, err := keep.Read(l.Heads)
	if err != nil {
		return nil
	}
	in, ok := keep.OpenSidecar(data, format)
	if !ok {
		return nil
	}
	out := saved{}
	for in.More() {
		dir := in.Text()
		at := keep.Stamp{Size: in.Int(), Mtime: in.Int(), Ctime: in.Int(), Ino: uint64(in.Int())}
		out[dir] = savedSkill{at, &known{saved: true, read: in.Time(), skill: loadSkill(in)}}
	}
	if !in.Good() {
		return nil
	}
	return out
}

func loadSkill(in *keep.Sidecar) (s Skill) {
	for _, text := range s.texts() {
		*text = in.Text()
	}
	for _, list := range s.lists() {
		for range max(0, in.Int()) {
			if !in.Good() {
				return s
			}
			*list = append(*list, in.Text())
		}
	}
	s.Manual, s.Hidden = in.Int() != 0, in.Int() != 0
	for range max(0, in.Int()) {
		if !in.Good() {
			return s
		}
		if s.Metadata == nil {
			s.Metadata = map[string]string{}
		}
		key := in.Text()
		s.Metadata[key] = in.Text()
	}
	return s
}

// texts and lists return the fields that come from a file, without those that depend on its place.
func (s *Skill) texts() []*string {
	return []*string{&s.Name, &s.Description, &s.License, &s.Compatibility, &s.Hint, &s.Sum}
}

func (s *Skill) lists() []*[]string { return []*[]string{&s.Tools, &s.Problems} }

func (s *Skill) put(out *keep.Sidecar) {
	for _, text := range s.texts() {
		out.PutText(*text)
	}
	for _, list := range s.lists() {
		out.PutInt(int64(len(*list)))
		for _, text := range *list {
			out.PutText(text)
		}
	}
	for _, yes := range []bool{s.Manual, s.Hidden} {
		out.PutInt(map[bool]int64{true: 1}[yes])
	}
	out.PutInt(int64(len(s.Metadata)))
	for key, value := range s.Metadata {
		out.PutText(key)
		out.PutText(value)
	}
}

// again returns the saved skill if its SKILL.md has not changed; nil if it must be read. Links are always
// checked, since they may lead elsewhere now.
func (l *Library) again(dir string, e fs.DirEntry) *known {
	s, is := l.saved[dir]
	if !is || !e.IsDir() {
		return nil
	}
	now, err := os.Lstat(filepath.Join(dir, file))
	if err != nil || !now.Mode().IsRegular() || keep.StampOf(now) != s.stamp {
		return nil
	}
	k := *s.known
	k.info = now
	return &k
}

// lasts reports whether a change of the file would give it another stamp.
func (k *known) lasts() bool {
	_, ctime := keep.Inode(k.info)
	return ctime != 0 && k.info.Name() == file && k.read.UnixNano()-ctime > int64(settled)
}

// save writes the file again if something is missing or gone. Saving only saves time later, so it may fail.
// Skills that came with a workspace are not saved.
func (l *Library) save() {
	if l.Heads == "" {
		return
	}
	var dirs []string
	changed := false
	for dir, k := range l.known {
		if !k.saved && (!k.own || !k.lasts()) {
			continue
		}
		changed, k.saved = changed || !k.saved, true
		dirs = append(dirs, dir)
	}
	if !changed && len(dirs) == len(l.saved) {
		return
	}
	format := headsOf()
	if format == "" {
		return
	}
	slices.Sort(dirs)
	out, now := keep.NewSidecar(format), saved{}
	for _, dir := range dirs {
		k := l.known[dir]
		at := keep.StampOf(k.info)
		now[dir] = savedSkill{at, k}
		out.PutText(dir)
		for _, n := range []int64{at.Size, at.Mtime, at.Ctime, int64(at.Ino)} {
			out.PutInt(n)
		}
		out.PutTime(k.read)
		k.skill.put(out)
	}
	l.saved = now
	_ = keep.Write(l.Heads, out.Bytes())
}

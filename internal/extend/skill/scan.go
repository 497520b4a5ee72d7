package skill

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
)

const (
	maxName = 100             // bytes
	settled = 2 * time.Second // time after which another change of a file gives it another time
)

// known is the content read from a SKILL.md, and the file's state then.
type known struct {
	dir   string
	own   bool // it did not come with the workspace
	saved bool // it is in the file of the library
	info  fs.FileInfo
	read  time.Time
	skill Skill
	err   error
}

func (k *known) sameFile(other *known) bool {
	return k.info != nil && other.info != nil && os.SameFile(k.info, other.info)
}

// holds reports whether the file is unchanged. A file that changed just before it was read may have changed
// again without a trace, so it does not count.
func (k *known) holds(now fs.FileInfo) bool {
	return k.info != nil && os.SameFile(k.info, now) && k.info.Size() == now.Size() && k.info.ModTime().Equal(now.ModTime()) &&
		k.read.Sub(now.ModTime()) > settled
}

// scan is one search through the folders of a library.
type scan struct {
	shelf

	library *Library
	places  []*place
	seen    map[string]*known
}

// look returns the skills of one folder, by name.
func (s *scan) look(p *place) (out []*found) {
	if p.Path == "" && !p.builtin {
		return nil
	}
	files, path, end, err := p.open()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		s.warn("skills in %s can't be read: %v", p.Path, keep.Bare(err))
		return nil
	}
	defer end()
	entries, more, err := names(files, maxEntries)
	if err != nil {
		s.warn("skills in %s can't be read: %v", path, keep.Bare(err))
		return nil
	}
	if more {
		s.warn("%s has more than %d entries; inspan ignores skills among the rest", path, maxEntries)
	}
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		return !e.IsDir() && e.Type()&fs.ModeSymlink == 0 || strings.HasPrefix(e.Name(), ".") || p.Only != nil && !slices.Contains(p.Only, e.Name())
	})
	bound := "folder"
	if p.Within != "" {
		bound = "repository"
	}
	for i, k := range s.all(files, path, entries) {
		if len(out) == MaxSkills {
			s.warn("%s has more than %d skills; inspan ignores the rest", path, MaxSkills)
			break
		}
		if !s.one(files, filepath.Join(path, entries[i].Name()), entries[i].Name(), bound, k) {
			continue
		}
		k.own = !p.builtin && p.Source != FromProject
		f := &found{Skill: k.skill, known: k, from: p}
		f.Name, f.Source, f.Dir = p.Prefix+f.Name, p.Source, k.dir
		if p.builtin {
			f.Dir = ""
		}
		out = append(out, f)
	}
	return out
}

// all reads the skills in folders on all processors, since the start of a session waits for it.
func (s *scan) all(files fs.FS, path string, entries []fs.DirEntry) []*known {
	out := make([]*known, len(entries))
	var next atomic.Int64
	var readers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), 1+len(entries)/enough) {
		readers.Go(func() {
			var head []byte
			for i := next.Add(1) - 1; i < int64(len(entries)); i = next.Add(1) - 1 {
				name := entries[i].Name()
				if out[i] = s.again(files, filepath.Join(path, name), entries[i]); out[i] != nil {
					continue
				}
				if head == nil {
					head = make([]byte, maxHead)
				}
				out[i] = readIn(files, name, head)
			}
		})
	}
	readers.Wait()
	return out
}

// again returns the known facts about a skill whose file has not changed; nil if it must be read.
func (s *scan) again(files fs.FS, dir string, e fs.DirEntry) *known {
	k := s.library.known[dir]
	if k == nil {
		return s.library.again(dir, e)
	}
	if now, err := fs.Stat(files, e.Name()+"/"+file); err == nil && k.holds(now) {
		return k
	}
	return nil
}

// enough is how many skills are worth another reader.
const enough = 16

// one takes a skill that was read in a folder, if it can be used. No link leads out of bound.
func (s *scan) one(files fs.FS, dir, name, bound string, k *known) bool {
	at := name + "/" + file
	switch {
	case k.err == nil && bound != "folder" && !markdownBehind(files, dir, at):
		s.warn("%s is ignored: its %s is a link to a file that is not markdown", dir, file)
	case k.err == nil:
		k.dir, s.seen[dir] = dir, k
		return true
	case leadsOut(files, name):
		if !s.elsewhere(dir) {
			s.warn("%s is ignored: it is a link that leads out of its %s, or nowhere", dir, bound)
		}
	case leadsOut(files, at):
		s.warn("%s is ignored: its %s is a link that leads out of its %s, or nowhere", dir, file, bound)
	case !errors.Is(k.err, fs.ErrNotExist):
		s.warn("%s is not a usable skill: %v", dir, keep.Bare(k.err))
	}
	return false
}

// markdownBehind reports whether a SKILL.md is not a link, or a link to markdown: other files of a repository,
// such as keys, must not be shown to a model as a skill.
func markdownBehind(files fs.FS, dir, at string) bool {
	if link, err := fs.Lstat(files, at); err != nil || link.Mode()&fs.ModeSymlink == 0 {
		return true
	}
	to, err := filepath.EvalSymlinks(filepath.Join(dir, file))
	return err == nil && strings.EqualFold(filepath.Ext(to), ".md")
}

// leadsOut reports whether something is a link that leads out of the folder.
func leadsOut(files fs.FS, at string) bool {
	link, err := fs.Lstat(files, at)
	if err != nil || link.Mode()&fs.ModeSymlink == 0 {
		return false
	}
	_, err = fs.Stat(files, at)
	return err != nil
}

// elsewhere reports whether a link leads to a skill that is found without it.
func (s *scan) elsewhere(link string) bool {
	to, err := filepath.EvalSymlinks(link)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(s.places, func(p *place) bool {
		folder, err := filepath.EvalSymlinks(p.Path)
		if err != nil || p.Path == "" {
			return false
		}
		if folder, err = filepath.Abs(folder); err != nil {
			return false
		}
		return filepath.Dir(to) == folder && filepath.Base(to) == filepath.Base(link)
	})
}

// readIn reads the skill in a folder, with a buffer to read into.
func readIn(files fs.FS, name string, head []byte) *known {
	k := readFile(files, name+"/"+file, name, head)
	if errors.Is(k.err, fs.ErrNotExist) { // the standard's own reader accepts this too
		k = readFile(files, name+"/skill.md", name, head)
		k.skill.Problems = append(k.skill.Problems, "its file is called skill.md, not "+file)
	}
	return k
}

// readFile reads as much of a SKILL.md as its front matter needs.
func readFile(files fs.FS, at, name string, head []byte) *known {
	k := &known{read: time.Now()}
	f, err := files.Open(at)
	if err != nil {
		k.err = err
		return k
	}
	defer f.Close()
	if k.info, k.err = usable(f, filepath.Base(at), MaxSize); k.err != nil {
		return k
	}
	if len(name) > maxName || !utf8.ValidString(name) || strings.ContainsFunc(name, text.Hidden.Has) {
		k.err = errors.New("its name is too long or has invisible characters")
		return k
	}
	n, err := io.ReadFull(f, head)
	whole := err != nil
	head = head[:n]
	matter, text, failed := SplitMatter(head)
	if !whole && (failed != nil || matter != nil && strings.TrimSpace(text) == "") { // too short to be useful
		var rest []byte
		rest, err = io.ReadAll(io.LimitReader(f, MaxSize))
		whole = true
		head = slices.Concat(head, rest)
		matter, text, failed = SplitMatter(head)
	}
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		failed = err
	}
	if k.err = failed; k.err == nil {
		k.skill = parse(name, matter, text, whole)
		sum := sha256.New()
		_, _ = sum.Write(head) // it returns no error
		if !whole {
			_, k.err = io.Copy(sum, io.LimitReader(f, MaxSize))
		}
		k.skill.Sum = hex.EncodeToString(sum.Sum(nil)[:16])
	}
	return k
}

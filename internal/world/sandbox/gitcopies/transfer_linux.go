package gitcopies

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/world/sandbox/gitfiles"
	"github.com/inspan/inspan/internal/world/sandbox/paths"
)

// change is the change of one file of a git directory by a box.
type change struct {
	name string
	kind gitfiles.Kind
	gone bool
	data []byte      // the checked content; nil means the file is copied unchecked
	is   paths.Stamp // of the file in upper
}

// transfer is one transfer of changes.
type transfer struct {
	*Copy
	changes []change
	states  map[string]bool // folders with rejected files: none of their files is taken over
	said    []string
	more    int
}

// mostSaid bounds the rejected files that are reported.
const mostSaid = 5

func (g *transfer) say(text string) {
	if g.told[text] {
		return
	}
	g.told[text] = true
	if g.more++; g.more <= mostSaid {
		g.said = append(g.said, text)
	}
}

func (g *transfer) refuse(name, why string) {
	if dir := g.stateOf(name); dir != "" && !gitfiles.Transient().MatchString(name) {
		g.states[dir] = true
	}
	if !gitfiles.Transient().MatchString(name) {
		g.say("did not keep " + filepath.Join(g.path, name) + ", as it " + why)
	}
}

const notListed = "is none of the files that git leaves there and that name no program"

// goesOn reports whether a folder holds the state of an operation that continues later.
func goesOn(name string) bool {
	return name == "rebase-merge" || name == "rebase-apply" || name == "sequencer"
}

// stateOf returns the folder of a continuing operation, or of a new worktree, that contains a file: it is taken
// over completely or not at all.
func (g *transfer) stateOf(name string) string {
	for dir := name; dir != "."; dir = path.Dir(dir) {
		if goesOn(path.Base(dir)) {
			return dir
		}
		if path.Dir(dir) == "worktrees" {
			if _, err := g.real.Lstat(dir); err != nil {
				return dir
			}
		}
	}
	return ""
}

// local returns the name of a file relative to its own git directory: those of worktrees and modules are inside
// of the repository's.
func (g *transfer) local(name string) (below string, ok bool) {
	for {
		switch first, rest, _ := strings.Cut(name, "/"); {
		case first == "worktrees" && strings.Contains(rest, "/"):
			_, name, _ = strings.Cut(rest, "/")
		case first == "modules":
			parts, found := strings.Split(name, "/"), 0
			for i := 2; i < len(parts); i++ {
				if _, err := g.real.Lstat(path.Join(path.Join(parts[:i]...), "HEAD")); err == nil {
					found = i
					break
				}
			}
			if found == 0 || len(parts) == found {
				return "", false
			}
			name = path.Join(parts[found:]...)
		default:
			return name, true
		}
	}
}

// walk collects the changes below a folder.
func (g *transfer) walk(dir string) {
	entries, err := fs.ReadDir(g.upper.FS(), dir)
	if err != nil {
		return
	}
	if opaque(g.upper, dir) {
		for _, name := range g.under(dir) {
			if _, err := g.upper.Lstat(name); err != nil {
				g.remove(name)
			}
		}
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		info, err := g.upper.Lstat(name)
		switch {
		case err != nil:
		case info.IsDir():
			g.walk(name)
		case whiteout(info):
			for _, gone := range g.under(name) {
				g.remove(gone)
			}
		case !info.Mode().IsRegular():
			g.refuse(name, "is no regular file")
		default:
			g.file(name)
		}
	}
}

// under lists the files at or below a place of the git directory.
func (g *transfer) under(name string) (out []string) {
	_ = fs.WalkDir(g.real.FS(), name, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			out = append(out, p)
		}
		return nil
	})
	return out
}

// whiteout reports whether a file of an overlay marks a removal.
func whiteout(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == 0
}

// opaque reports whether a folder of an overlay hides the lower one.
func opaque(root *os.Root, dir string) bool {
	f, err := root.Open(dir)
	if err != nil {
		return false
	}
	defer f.Close()
	var value [8]byte
	n, err := unix.Fgetxattr(int(f.Fd()), "user.overlay.opaque", value[:])
	return err == nil && n > 0 && value[0] == 'y'
}

// remove records the removal of a file.
func (g *transfer) remove(name string) {
	below, ok := g.local(name)
	if !ok {
		return
	}
	kind, ok := gitfiles.Find(g.list, below)
	switch {
	case strings.HasSuffix(below, ".lock"): // a lock that a dead git left, which the person wants removed
		ok, kind = true, gitfiles.Kind{}
	case g.treeGone(name):
		ok, kind.Permanent = g.endedTree(name), false
	}
	if ok && !kind.Permanent {
		g.changes = append(g.changes, change{name: name, kind: kind, gone: true})
	}
}

// treeGone reports whether a file belongs to a worktree that the box removed.
func (g *transfer) treeGone(name string) bool {
	parts := strings.Split(name, "/")
	if len(parts) < 3 || parts[0] != "worktrees" {
		return false
	}
	for _, at := range []string{"worktrees", path.Join(parts[:2]...), path.Join(parts[0], parts[1], "gitdir")} {
		if info, err := g.upper.Lstat(at); err == nil && whiteout(info) {
			return true
		}
	}
	return opaque(g.upper, "worktrees")
}

// endedTree reports whether a file belongs to a worktree that is gone, or was in the workspace.
func (g *transfer) endedTree(name string) bool {
	parts := strings.Split(name, "/")
	link := g.small(path.Join("worktrees", parts[1], "gitdir"))
	if link == "" || !filepath.IsAbs(link) {
		return false
	}
	_, err := os.Lstat(link)
	return errors.Is(err, fs.ErrNotExist)
}

// small returns the current content of a small file of the git directory, without its line end.
func (g *transfer) small(name string) string {
	data, err := readSome(g.real, name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// file records a new or changed file.
func (g *transfer) file(name string) {
	is, err := rootStamp(g.upper, name)
	if err != nil || g.given[name] == is {
		return
	}
	below, ok := g.local(name)
	kind, listed := gitfiles.Find(g.list, below)
	if ok && !listed && g.newTree(name, below) {
		listed = true
	}
	if !ok || !listed {
		why := notListed
		if below == "gitdir" || below == "commondir" {
			why = "leads out of the workspace, or not back from it"
		}
		g.refuse(name, why)
		return
	}
	c := change{name: name, kind: kind, is: is}
	if kind.Check != nil {
		if c.data, err = readSome(g.upper, name); err == nil {
			old, _ := readSome(g.real, name)
			err = kind.Check(c.data, old)
		}
		if err != nil {
			g.refuse(name, err.Error())
			return
		}
	}
	g.changes = append(g.changes, c)
}

// mostChecked bounds the checked files; a longer one is rejected.
const mostChecked = 256 << 20

// newTree reports whether a file links a new worktree of the workspace to its repository or back, and to
// nothing else.
func (g *transfer) newTree(name, below string) bool {
	parts := strings.Split(name, "/")
	if len(parts) != 3 || parts[0] != "worktrees" {
		return false
	}
	dir := path.Join(parts[:2]...)
	if _, err := g.real.Lstat(path.Join(dir, "gitdir")); err == nil {
		return false
	}
	read := func(name string) string {
		data, _ := readSome(g.upper, path.Join(dir, name))
		return strings.TrimSpace(string(data))
	}
	link := read("gitdir")
	leads := read("commondir") == "../.." && filepath.Base(link) == ".git" && filepath.Clean(link) == link && text.Inside(g.workspace, link) &&
		paths.ReadSmall(link) == "gitdir: "+filepath.Join(g.path, dir)
	return leads && (below == "gitdir" || below == "commondir") || below == "locked"
}

// objects takes over new objects. Existing ones are unchanged, since the name determines the content.
func (g *transfer) objects() error {
	list := slices.DeleteFunc(slices.Clone(g.changes), func(c change) bool { return c.gone || !isObject(c.name) })
	slices.SortStableFunc(list, func(a, b change) int { return cmp.Compare(objectOrder(a.name), objectOrder(b.name)) })
	for _, c := range list {
		_, err := g.real.Lstat(c.name)
		if err == nil && !derived(c.name) {
			g.given[c.name] = c.is
			continue
		}
		temp, err := g.write(c, path.Join(path.Dir(c.name), "tmp_obj_"+rand.Text()[:6]))
		if err == nil {
			err = g.real.Rename(temp, c.name)
		}
		if err != nil {
			return err
		}
		g.given[c.name] = c.is
	}
	return nil
}

func isObject(name string) bool { return strings.Contains("/"+name, "/objects/") }

// derived reports whether a file among the objects can be regenerated from them.
func derived(name string) bool {
	return strings.Contains(name, "/info/") || strings.Contains(name, "/multi-pack-index") || slices.Contains([]string{".bitmap", ".rev"}, path.Ext(name))
}

// objectOrder orders files so that a pack comes before its index: git considers the pack present once the index
// exists.
func objectOrder(name string) int {
	switch {
	case strings.HasSuffix(name, ".idx"):
		return 1
	case derived(name):
		return 2
	}
	return 0
}

// write copies a file to a free place of the git directory.
func (g *transfer) write(c change, to string) (string, error) {
	if err := g.real.MkdirAll(path.Dir(to), 0o777); err != nil {
		return "", err
	}
	mode := fs.FileMode(0o666)
	if isObject(c.name) {
		mode = 0o444
	}
	out, err := g.real.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return "", err
	}
	if c.data != nil {
		_, err = io.Copy(out, bytes.NewReader(c.data))
	} else {
		err = g.stream(out, c.name)
	}
	if err == nil && strings.HasSuffix(c.name, ".pack") {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err != nil {
		_ = g.real.Remove(to)
	}
	return to, err
}

func (g *transfer) stream(out io.Writer, name string) error {
	in, err := openRegular(g.upper, name)
	if err != nil {
		return err
	}
	defer in.Close()
	_, err = io.Copy(out, in)
	return err
}

var errMeanwhile = errors.New("was changed from outside meanwhile; the objects are there, run the command again")

// rest takes over all files except objects, completely or not at all, as far as that can be checked beforehand.
// It holds git's locks, so that no other git interferes.
func (g *transfer) rest() error {
	if name := g.strayed(); name != "" {
		return fmt.Errorf("%s lies outside of the workspace and could not be changed with it; the objects are there. Ask for outside, or for a wider workspace", name)
	}
	var locks [][2]string // the lock, and its file
	defer func() {
		for _, l := range locks {
			_ = g.real.Remove(l[0])
		}
	}()
	lock := func(c change) error {
		name := c.name + ".lock"
		late := time.Now().Add(time.Second)
		for {
			err := g.lock(c, name)
			if err == nil {
				break
			}
			if !errors.Is(err, fs.ErrExist) || time.Now().After(late) {
				return err
			}
			time.Sleep(5 * time.Millisecond)
		}
		locks = append(locks, [2]string{name, c.name})
		return g.unchanged(c)
	}
	var gone, plain, locked []change
	for _, c := range g.changes {
		switch {
		case isObject(c.name):
		case c.gone:
			gone = append(gone, c)
		case c.kind.Locked:
			locked = append(locked, c)
		default:
			plain = append(plain, c)
		}
	}
	order := func(c change) int {
		switch path.Base(c.name) {
		case "packed-refs":
			return 0
		case "HEAD":
			return 2
		case "index":
			return 3
		}
		return 1
	}
	slices.SortStableFunc(locked, func(a, b change) int { return cmp.Compare(order(a), order(b)) })
	// A folder's name may become a file's, and vice versa.
	for _, c := range gone {
		for _, n := range slices.Concat(locked, plain) {
			if strings.HasPrefix(n.name, c.name+"/") {
				if err := g.real.Remove(c.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return err
				}
			}
		}
	}
	for _, c := range slices.Concat(locked, slices.DeleteFunc(slices.Clone(gone), func(c change) bool { return !c.kind.Locked })) {
		if err := lock(c); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	for _, c := range plain {
		temp, err := g.write(c, c.name+".inspan-"+rand.Text()[:6])
		if err == nil {
			err = g.settle(temp, c.name)
		}
		if err != nil {
			return err
		}
		g.given[c.name] = c.is
	}
	move := func(c change) error {
		err := g.settle(c.name+".lock", c.name)
		locks = slices.DeleteFunc(locks, func(l [2]string) bool { return err == nil && l[1] == c.name })
		if err == nil {
			g.given[c.name] = c.is
		}
		return err
	}
	for len(locked) > 0 && path.Base(locked[0].name) == "packed-refs" {
		if err := move(locked[0]); err != nil {
			return err
		}
		locked = locked[1:]
	}
	for _, c := range gone {
		if err := g.real.Remove(c.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if c.kind.Locked {
			_ = g.real.Remove(c.name + ".lock")
		}
		g.prune(path.Dir(c.name))
	}
	for _, c := range locked {
		if err := move(c); err != nil {
			return err
		}
	}
	return g.collected()
}

// strayed returns a file outside of the workspace whose index entry would no longer match it, since a box can't
// write there. After a checkout in one package of many, it would appear as a change.
func (g *transfer) strayed() string {
	top := filepath.Dir(g.path)
	i := slices.IndexFunc(g.changes, func(c change) bool { return c.name == "index" })
	if filepath.Base(g.path) != ".git" || top == g.workspace || !text.Inside(top, g.workspace) || i < 0 {
		return ""
	}
	old, _ := readSome(g.real, "index")
	before, was := gitfiles.Index(old)
	after, is := gitfiles.Index(g.changes[i].data)
	if !was || !is {
		return ""
	}
	names := maps.Clone(before)
	maps.Copy(names, after)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		at := filepath.Join(top, filepath.FromSlash(name))
		if now := after[name]; now.What != before[name].What && !text.Inside(g.workspace, at) && !lies(at, now) {
			return at
		}
	}
	return ""
}

// lies reports whether a file matches its index entry.
func lies(at string, s gitfiles.Seen) bool {
	st, err := paths.StampAt(at)
	if s.What == "" || err != nil {
		return s.What == "" && err != nil || s.Away
	}
	return s.Away || uint32(st.Mtime/1e9) == s.Sec && uint32(st.Mtime%1e9) == s.Nanos
}

// lock creates git's lock of a file, with the file's new content.
func (g *transfer) lock(c change, name string) error {
	if c.gone {
		f, err := g.real.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if err == nil {
			err = f.Close()
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // its folder is gone
		}
		return err
	}
	_, err := g.write(c, name)
	return err
}

// settle moves a file to its place, which may be an empty folder.
func (g *transfer) settle(from, to string) error {
	err := g.real.Rename(from, to)
	if err != nil && g.real.Remove(to) == nil {
		err = g.real.Rename(from, to)
	}
	return err
}

// unchanged checks that a file was not changed from outside since the box was made.
func (g *transfer) unchanged(c change) error {
	is, err := rootStamp(g.real, c.name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !is.Changed().After(g.since) {
		return nil
	}
	if err == nil && c.name == "index" && g.index != nil {
		// A prompt or editor may only have refreshed the index.
		before, bad := io.ReadAll(io.NewSectionReader(g.index, 0, mostChecked))
		if now, err := readSome(g.real, c.name); err == nil && bad == nil && gitfiles.SameIndex(before, now) {
			return nil
		}
	}
	return cmp.Or(err, errMeanwhile)
}

// prune removes folders that are now empty, except those that git has in every repository.
func (g *transfer) prune(dir string) {
	for strings.Contains(dir, "/") || goesOn(dir) {
		below, ok := g.local(dir)
		if ok && slices.Contains([]string{"refs/heads", "refs/tags", "refs/remotes", "logs/refs", "logs/refs/heads", "objects/pack", "objects/info"}, below) {
			return
		}
		if g.real.Remove(dir) != nil {
			return
		}
		dir = path.Dir(dir)
	}
}

// collected removes objects that are also stored elsewhere, as git does when it packs. Other objects are never
// removed: a box can't destroy the content of a repository.
func (g *transfer) collected() error {
	gone := slices.DeleteFunc(slices.Clone(g.changes), func(c change) bool { return !c.gone || !isObject(c.name) })
	packs := map[string]*packList{}
	for _, c := range gone {
		dir, id, ok := looseObject(c.name)
		switch {
		case derived(c.name) || strings.HasSuffix(c.name, ".keep"):
		case ok && g.packed(packs, dir, id, ""):
		case strings.HasSuffix(c.name, ".pack") && g.elsewhere(packs, c.name):
			stem := strings.TrimSuffix(c.name, ".pack")
			for _, ext := range []string{".idx", ".mtimes", ".promisor"} {
				if err := g.real.Remove(stem + ext); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return err
				}
			}
			delete(packs[path.Dir(path.Dir(c.name))].of, stem+".idx")
		default:
			continue
		}
		if err := g.real.Remove(c.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if ok {
			_ = g.real.Remove(path.Dir(c.name)) // if it is empty
		}
	}
	return nil
}

// looseObject splits the name of a loose object.
func looseObject(name string) (objects string, id []byte, ok bool) {
	rest, file := path.Split(name)
	objects, two := path.Split(path.Clean(rest))
	id, err := hex.DecodeString(two + file)
	return path.Clean(objects), id, err == nil && len(two) == 2
}

// packList is the objects in a repository's packs, according to their indexes.
type packList struct{ of map[string][]byte }

// packs reads the pack indexes in an objects folder, once.
func (g *transfer) packs(known map[string]*packList, objects string) *packList {
	if p := known[objects]; p != nil {
		return p
	}
	p := &packList{of: map[string][]byte{}}
	known[objects] = p
	names, _ := fs.Glob(g.real.FS(), path.Join(objects, "pack", "*.idx"))
	for _, name := range names {
		data, err := readSome(g.real, name)
		if _, is := g.real.Lstat(strings.TrimSuffix(name, ".idx") + ".pack"); err == nil && is == nil {
			p.of[name] = data
		}
	}
	return p
}

// packed reports whether a pack other than but contains an object.
func (g *transfer) packed(known map[string]*packList, objects string, id []byte, but string) bool {
	for name, data := range g.packs(known, objects).of {
		if name != but && inPack(data, id) {
			return true
		}
	}
	return false
}

// elsewhere reports whether all objects of a pack are in other packs or loose.
func (g *transfer) elsewhere(known map[string]*packList, name string) bool {
	objects, list := path.Dir(path.Dir(name)), strings.TrimSuffix(name, ".pack")+".idx"
	data, ok := g.packs(known, objects).of[list]
	if !ok {
		return false
	}
	names, size, ok := packNames(data)
	for ; ok && len(names) > 0; names = names[size:] {
		id := hex.EncodeToString(names[:size])
		_, err := g.real.Lstat(path.Join(objects, id[:2], id[2:]))
		ok = err == nil || g.packed(known, objects, names[:size], list)
	}
	return ok
}

// packNames returns the sorted names in a pack index of version 2, and the length of each; see
// gitformat-pack(5).
func packNames(data []byte) (names []byte, size int, ok bool) {
	const head = 8 + 256*4
	if len(data) < head || !bytes.HasPrefix(data, []byte("\xfftOc\x00\x00\x00\x02")) {
		return nil, 0, false
	}
	count := int(binary.BigEndian.Uint32(data[head-4:]))
	// After the names come two numbers each, possibly some longer ones, and two checksums.
	for _, size := range []int{20, 32} {
		if rest := len(data) - head - count*(size+8) - 2*size; rest >= 0 && rest%8 == 0 && rest/8 <= count {
			return data[head : head+count*size], size, true
		}
	}
	return nil, 0, false
}

func inPack(data, id []byte) bool {
	names, size, ok := packNames(data)
	if !ok || size != len(id) {
		return false
	}
	count := len(names) / size
	i := sort.Search(count, func(i int) bool { return bytes.Compare(names[i*size:(i+1)*size], id) >= 0 })
	return i < count && bytes.Equal(names[i*size:(i+1)*size], id)
}

// rootStamp returns the stamp of a regular file below a folder.
func rootStamp(root *os.Root, name string) (paths.Stamp, error) {
	info, err := root.Lstat(name)
	if err != nil {
		return paths.Stamp{}, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return paths.Stamp{}, errors.ErrUnsupported
	}
	//nolint:unconvert // other architectures have other widths
	return paths.Stamp{Dev: uint64(st.Dev), Ino: st.Ino, Mtime: st.Mtim.Nano(), Ctime: st.Ctim.Nano()}, nil
}

// openRegular opens a regular file, and fails for others.
func openRegular(root *os.Root, name string) (*os.File, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(errors.New("is no regular file"), err, f.Close())
	}
	return f, nil
}

// readSome reads a file up to mostChecked bytes.
func readSome(root *os.Root, name string) ([]byte, error) {
	f, err := openRegular(root, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, mostChecked+1))
	if len(data) > mostChecked {
		err = errors.New("is too long to be looked at")
	}
	return data, err
}

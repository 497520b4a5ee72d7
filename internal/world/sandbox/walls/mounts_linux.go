package walls

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/world/sandbox/paths"
	"github.com/inspan/inspan/tool"
)

// mountTree is a file system under construction: a small tmpfs into which parts of the machine's file system
// are mounted, and which then becomes the root. Everything else does not exist in it.
//
// Bubblewrap uses the same system calls. It isn't used since it could not watch the workspace for new files,
// and would cost another process start.
type mountTree struct {
	base   string // where the root will be until it is the root
	pieces []piece
	hidden string   // the folder of masks
	masked []string // masked places
}

// piece is one mount: a clone of a part of the machine's file system, or a change of an existing mount.
type piece struct {
	path  string
	fd    int // a clone; -1: of itself, cloned later
	write bool
	mask  bool // hidden
	dev   bool // a device
}

const cloneTree = unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_RECURSIVE

// add clones a part of the machine's file system, to mount at the same path. A missing path is left out.
func (s *mountTree) add(path string, write, dev bool) error {
	return s.addAs(path, path, write, dev)
}

// addAs is add with another target path.
func (s *mountTree) addAs(path, target string, write, dev bool) error {
	at, err := paths.Open(path)
	if err != nil {
		return nil //nolint:nilerr // missing, or inaccessible for this user
	}
	defer func() { _ = unix.Close(at) }()
	fd, err := unix.OpenTree(at, "", cloneTree|unix.AT_EMPTY_PATH)
	if err != nil && !write && !dev {
		return nil // some mounts can't be cloned; then the path is missing
	}
	if err != nil {
		return During("open "+path, err)
	}
	s.pieces = append(s.pieces, piece{path: target, fd: fd, write: write, dev: dev})
	return nil
}

// devices lists the devices without content. The terminal is that of the opening process, or none.
func devices() []string {
	return []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}
}

// EnterMounts creates the file system of the box, and enters it with this process.
func (o Plan) EnterMounts() error {
	var s mountTree
	for _, step := range []func() error{
		func() error { return s.collect(o) },
		func() error { return s.found(o) },
		func() error { return s.blanks(o) },
		s.build, s.enter,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// collect clones all visible parts.
func (s *mountTree) collect(o Plan) error {
	for _, g := range o.Read {
		// Devices would not work if they were mounted as files.
		if g.Path == "/proc" || slices.Contains(o.Write, g.Path) || o.Copied(g.Path) || slices.Contains(devices(), g.Path) {
			continue
		}
		if err := s.add(g.Path, false, false); err != nil {
			return err
		}
	}
	for _, path := range o.Write {
		open := func() error { return s.add(path, true, false) }
		if o.Throwaway != "" && path == o.Root {
			open = func() error { return s.lay(path, o.Throwaway) }
		}
		if err := open(); err != nil {
			return err
		}
	}
	for _, c := range o.Copies {
		if err := s.lay(c.Path, c.Dir); err != nil {
			return err
		}
	}
	if o.Tmp != "" {
		for _, r := range TempFolders() {
			if err := s.addAs(filepath.Join(o.Tmp, r[1]), r[0], o.Level == tool.BoxWorkspace, false); err != nil {
				return err
			}
		}
	}
	if o.Cache != "" {
		if err := s.addAs(o.Cache, CacheDir, true, false); err != nil {
			return err
		}
	}
	if o.GoCache != "" {
		self, err := os.Readlink("/proc/self/exe")
		if err != nil {
			return During("find the program of this process", err)
		}
		if err := s.addAs(self, GoCacheProgram, false, false); err != nil {
			return err
		}
	}
	for _, path := range devices() {
		if err := s.add(path, true, true); err != nil {
			return err
		}
	}
	for _, g := range o.Read {
		for _, hole := range g.Holes {
			s.pieces = append(s.pieces, piece{path: hole, fd: -1, mask: true})
		}
	}
	for _, path := range o.View.Frozen {
		s.pieces = append(s.pieces, piece{path: path, fd: -1})
	}
	for _, path := range o.View.Pinned {
		s.pieces = append(s.pieces, piece{path: path, fd: -1, write: true})
	}
	// Parents come first. At the same place a clone comes first, then its changes, masks last.
	slices.SortStableFunc(s.pieces, func(a, b piece) int {
		return cmp.Or(cmp.Compare(strings.Count(a.path, "/"), strings.Count(b.path, "/")), cmp.Compare(a.path, b.path),
			compareBool(a.fd < 0, b.fd < 0), compareBool(a.mask, b.mask), compareBool(!a.write, !b.write))
	})
	s.pieces = slices.CompactFunc(s.pieces, func(a, b piece) bool {
		return a.path == b.path && a.fd < 0 && b.fd < 0 && a.mask == b.mask && a.write == b.write
	})
	return nil
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// found creates the empty file system for the mounts.
func (s *mountTree) found(o Plan) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return During("part from the mounts of the machine", err)
	}
	links := topLinks()
	s.base = "/tmp"
	if st, err := os.Lstat(s.base); err != nil || !st.IsDir() {
		s.base = "/dev"
	}
	if err := memory(s.base, "mode=755"); err != nil {
		return err
	}
	for _, l := range links {
		if err := os.Symlink(l[1], s.base+"/"+l[0]); err != nil {
			return During("link /"+l[0], err)
		}
	}
	for _, dir := range []string{"/dev", "/proc", "/tmp", "/var", "/var/tmp", "/run", OwnTemp, "/dev/shm", "/dev/pts"} {
		if err := os.Mkdir(s.base+dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return During("make "+dir, err)
		}
	}
	for _, dir := range o.InMemory() {
		if err := memory(s.base+dir, "mode=1777"); err != nil {
			return err
		}
	}
	return s.fillDev()
}

// InMemory lists the writable folders of the box that exist only in memory.
func (o Plan) InMemory() []string {
	out := []string{"/dev/shm", OwnTemp}
	if o.Tmp == "" {
		out = append(out, "/tmp", "/var/tmp")
	}
	return out
}

// topLinks lists the symbolic links in the root, such as /bin on most systems, except folders for temporary
// files.
func topLinks() [][2]string {
	var out [][2]string
	entries, _ := os.ReadDir("/")
	for _, e := range entries {
		if target, err := os.Readlink("/" + e.Name()); err == nil && e.Name() != "tmp" {
			out = append(out, [2]string{e.Name(), target})
		}
	}
	return out
}

func memory(dir, options string) error {
	return During("mount memory", unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options))
}

func (s *mountTree) fillDev() error {
	for name, target := range map[string]string{
		"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1",
		"stderr": "/proc/self/fd/2", "ptmx": "pts/ptmx",
	} {
		if err := os.Symlink(target, s.base+"/dev/"+name); err != nil {
			return During("link /dev/"+name, err)
		}
	}
	if err := unix.Mount("devpts", s.base+"/dev/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC,
		"newinstance,ptmxmode=0666,mode=620"); err != nil {
		return During("mount terminals", err)
	}
	if err := unix.Mount("proc", s.base+"/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC|unix.MS_RDONLY, ""); err != nil {
		return During("mount /proc (containers often forbid that)", err)
	}
	return nil
}

// blanks creates the masks of secrets and the replaced lists of users, in a place that is hidden in the end.
func (s *mountTree) blanks(o Plan) error {
	s.hidden = s.base + "/proc/" // the real /proc is mounted over it later
	if err := memory(s.hidden, "mode=755"); err != nil {
		return err
	}
	if err := os.WriteFile(s.hidden+"file", nil, 0); err != nil {
		return During("make a mask", err)
	}
	if err := os.Mkdir(s.hidden+"folder", 0); err != nil {
		return During("make a mask", err)
	}
	for path, text := range map[string]string{"/etc/passwd": o.View.Passwd, "/etc/group": o.View.Group} {
		if text == "" {
			continue
		}
		name := s.hidden + filepath.Base(path)
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			return During("write "+path, err)
		}
		fd, err := unix.OpenTree(unix.AT_FDCWD, name, cloneTree)
		if err != nil {
			return During("open "+path, err)
		}
		s.pieces = append(s.pieces, piece{path: path, fd: fd})
	}
	return nil
}

// build mounts all pieces. A readable place that can't be mounted is left out.
func (s *mountTree) build() error {
	for _, p := range s.pieces {
		mount := s.put
		if p.fd < 0 {
			mount = s.shut
		}
		if err := mount(p); err != nil && (p.fd < 0 || p.write || p.dev) {
			return During("mount "+p.path, err)
		}
	}
	return During("leave the masks", unix.Unmount(s.hidden, unix.MNT_DETACH))
}

// shut closes a place. If that fails, it closes the folder of the place: root has no privileges over files
// here, so the place may be unreachable for us while the command could make it reachable.
func (s *mountTree) shut(p piece) error {
	if paths.InsideAny(s.masked, p.path) {
		return nil
	}
	err := s.put(p)
	for at := filepath.Dir(p.path); err != nil; at = filepath.Dir(at) {
		if at == "/" || slices.ContainsFunc(s.pieces, func(o piece) bool { return o.fd >= 0 && o.write && text.Inside(at, o.path) }) {
			return err // the box would be useless without it
		}
		if s.put(piece{path: at, fd: -1, mask: true}) == nil {
			return nil
		}
	}
	return nil
}

// put mounts one piece.
func (s *mountTree) put(p piece) error {
	target := s.base + p.path
	if p.fd >= 0 {
		if err := s.point(p, target); err != nil {
			return err
		}
	}
	// It follows no links: a link created since the lookup must not redirect the mount.
	at, err := paths.Open(target)
	if p.fd < 0 && (errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR)) {
		return nil // it is gone
	}
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(at) }()
	switch {
	case p.mask:
		return s.mask(p, at)
	case p.fd < 0:
		if p.fd, err = unix.OpenTree(at, "", cloneTree|unix.AT_EMPTY_PATH); err != nil {
			return err
		}
	}
	return p.over(at)
}

// over mounts a clone over an open file, and closes it.
func (p piece) over(at int) error {
	defer func() { _ = unix.Close(p.fd) }()
	var st unix.Stat_t
	if unix.Fstat(at, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return nil // a link can't be mounted over; its target is judged by itself
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID}
	if !p.dev {
		attr.Attr_set |= unix.MOUNT_ATTR_NODEV
	}
	if !p.write || p.mask {
		attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	if err := unix.MountSetattr(p.fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err != nil {
		return err
	}
	return unix.MoveMount(p.fd, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// mask hides an open file or folder behind an empty, unreadable one. The folder is accessible if something in
// it must be visible.
func (s *mountTree) mask(p piece, at int) error {
	names := []string{"file", "folder"}
	var st unix.Stat_t
	if unix.Fstat(at, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
		names = []string{"folder"}
		if inner := s.shown(p.path); len(inner) > 0 {
			name, err := s.opening(p.path, inner)
			if err != nil {
				return err
			}
			names = []string{name}
		}
	}
	err := error(nil)
	for _, name := range names { // the kind can't always be determined
		if p.fd, err = unix.OpenTree(unix.AT_FDCWD, s.hidden+name, cloneTree); err != nil {
			return err
		}
		if err = p.over(at); err == nil {
			s.masked = append(s.masked, p.path)
			return nil
		}
	}
	return err
}

// shown lists the visible pieces below a masked place.
func (s *mountTree) shown(path string) []piece {
	return slices.DeleteFunc(slices.Clone(s.pieces), func(o piece) bool {
		return o.fd < 0 || o.path == path || !text.Inside(path, o.path)
	})
}

// opening creates a mask that contains only the mount points of the visible pieces below it.
func (s *mountTree) opening(path string, inner []piece) (name string, err error) {
	name = "opening-" + strconv.Itoa(len(s.masked))
	if err := os.Mkdir(s.hidden+name, 0o755); err != nil {
		return "", err
	}
	for _, o := range inner {
		if err := s.point(o, s.hidden+name+strings.TrimPrefix(o.path, path)); err != nil {
			return "", err
		}
	}
	return name, nil
}

// point creates the mount point of a piece, unless it exists.
func (s *mountTree) point(p piece, target string) error {
	var st unix.Stat_t
	if unix.Lstat(target, &st) == nil {
		return nil
	}
	if err := unix.Fstat(p.fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return os.MkdirAll(target, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(target, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return file.Close()
}

// enter makes the tree the file system of this process.
func (s *mountTree) enter() error {
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(unix.AT_FDCWD, s.base, 0, &attr); err != nil {
		return During("close the root", err)
	}
	if err := os.Chdir(s.base); err != nil {
		return During("enter the root", err)
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return During("change the root", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return During("leave the old root", err)
	}
	return During("enter the root", os.Chdir("/"))
}

package sandbox

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/world/sandbox/walls"

	"github.com/inspan/inspan/internal/world/sandbox/paths"
	"github.com/inspan/inspan/tool"
)

// cached lists where programs keep what they fetch, build and install: variables, and the
// folders of the caches that they lead to.
func cached() [][2]string {
	return [][2]string{
		{"XDG_CACHE_HOME", "xdg"},
		{"GOCACHE", walls.GoBuilds},
		{"npm_config_cache", "npm"},
		{"PIP_CACHE_DIR", "pip"},
		{"UV_CACHE_DIR", "uv"},
		{"UV_TOOL_DIR", "uv-tools"},
		{"UV_TOOL_BIN_DIR", "bin"},
		{"PIPX_HOME", "pipx"},
		{"PIPX_BIN_DIR", "bin"},
		{"PIPX_MAN_DIR", "man"},
		{"npm_config_store_dir", "pnpm"},
		{"BUN_INSTALL_CACHE_DIR", "bun"},
		{"DENO_DIR", "deno"},
	}
}

// fetched lists the same of what the person's own folders are read for until something is
// fetched here: a box without hosts could not bring what those hold.
func fetched() [][2]string { return [][2]string{{"GOMODCACHE", "go-mod"}, {"CARGO_HOME", "cargo"}} }

// sessionCaches begins the names of folders of caches that end with their session.
const sessionCaches = "session-"

// caches makes the folder where boxes of this session keep what they fetch and build, and
// the variables that lead there. The user's own caches are not written: what a box puts
// there would run outside of it. For the same reason the folder ends with the session: what
// a command leaves in it would run in the next one, and no digest tells. Only programs that have
// a cache of their own find it again.
func (b *boxes) caches(box tool.Box) (folder string, vars []string, err error) {
	if b.o.State == "" {
		return "", nil, nil
	}
	dir := ""
	if box.Cache == "" {
		dir, err = b.cache.open(filepath.Join(b.o.State, "cache"), b.Root)
	} else {
		key := b.Root + "\x00" + box.Cache
		if b.engine != nil {
			key += "\x00" + b.o.Container.Image // other libraries, so other results
		}
		sum := sha256.Sum256([]byte(key))
		dir = filepath.Join(b.o.State, "cache", hex.EncodeToString(sum[:8]))
		err = nameCache(dir, b.Root)
	}
	if err != nil {
		return "", nil, fmt.Errorf("make cache: %w", err)
	}
	list := cached()
	if b.engine != nil || empty(ownPythons(b.o.Map.Home)) {
		list = append(list, [2]string{"UV_PYTHON_INSTALL_DIR", "uv-python"}, [2]string{"UV_PYTHON_BIN_DIR", "bin"})
	}
	for _, c := range fetched() {
		if len(box.Hosts) > 0 || !empty(filepath.Join(dir, c[1])) {
			list = append(list, c)
		}
	}
	for _, c := range list {
		if err := os.MkdirAll(filepath.Join(dir, c[1]), 0o700); err != nil {
			return "", nil, fmt.Errorf("make cache: %w", err)
		}
		vars = append(vars, c[0]+"="+walls.CacheDir+"/"+c[1])
		if c[0] == "GOMODCACHE" && b.engine == nil {
			vars = append(vars, "GOPROXY="+moduleProxies(b.o.Map.Home))
		}
	}
	dir, err = filepath.EvalSymlinks(dir)
	return dir, vars, err
}

// empty reports whether a folder has nothing in it, or is not there.
func empty(dir string) bool {
	list, err := os.ReadDir(dir)
	return err != nil || len(list) == 0
}

// ownPythons is where uv keeps the interpreters of the person. It finds them nowhere else,
// so they are used from there, read only.
func ownPythons(home string) string {
	data := cmp.Or(os.Getenv("XDG_DATA_HOME"), filepath.Join(home, ".local", "share"))
	return cmp.Or(os.Getenv("UV_PYTHON_INSTALL_DIR"), filepath.Join(data, "uv", "python"))
}

// moduleProxies are where Go fetches modules from: from those that the person has, and else from
// where they say.
func moduleProxies(home string) string {
	own := cmp.Or(os.Getenv("GOMODCACHE"), filepath.Join(cmp.Or(filepath.SplitList(os.Getenv("GOPATH"))...), "pkg", "mod"))
	if !filepath.IsAbs(own) {
		own = filepath.Join(home, "go", "pkg", "mod")
	}
	proxy := os.Getenv("GOPROXY")
	if settings, err := keep.Read(filepath.Join(home, ".config", "go", "env")); err == nil && proxy == "" {
		for line := range strings.Lines(string(settings)) {
			if value, is := strings.CutPrefix(strings.TrimSpace(line), "GOPROXY="); is {
				proxy = value
			}
		}
	}
	return "file://" + filepath.Join(own, "cache", "download") + "," + cmp.Or(proxy, "https://proxy.golang.org,direct")
}

// nameCache writes it, unless it is there.
func nameCache(dir, root string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(CacheRoot(dir), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(root)
	return errors.Join(err, f.Close())
}

// cache is the folder of caches of a session. It is locked by whoever uses it, as that for temporary
// files is.
type cache struct {
	mu   sync.Mutex
	dir  string // empty until a box needs it
	lock *os.File
}

// open makes the folder in another, if there is none yet.
func (c *cache) open(parent, root string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dir != "" {
		return c.dir, nil
	}
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return "", err
	}
	parent, err := filepath.EvalSymlinks(parent)
	if err != nil {
		return "", err
	}
	sweepCaches(parent)
	for range 20 { // whoever sweeps can come between the folder and its lock
		dir := filepath.Join(parent, sessionCaches+rand.Text())
		if err = os.Mkdir(dir, 0o700); err != nil {
			continue
		}
		if c.lock, err = paths.LockFolder(dir, true); err == nil {
			c.dir = dir
			return dir, nameCache(dir, root)
		}
	}
	return "", err
}

// close removes the folder, unless a process that was let go of still uses it.
func (c *cache) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dir == "" {
		return nil
	}
	dir, lock := c.dir, c.lock
	c.dir, c.lock = "", nil
	defer lock.Close()
	if alone, _ := keep.TryLock(lock, false); !alone {
		return nil // it is swept later
	}
	return errors.Join(paths.RemoveAll(dir), os.RemoveAll(CacheRoot(dir)))
}

// sweepCaches removes what sessions left that were killed.
func sweepCaches(parent string) {
	list, _ := filepath.Glob(filepath.Join(parent, sessionCaches+"*"))
	for _, dir := range list {
		if lock, err := paths.LockFolder(dir, false); err == nil {
			_ = errors.Join(paths.RemoveAll(dir), os.RemoveAll(CacheRoot(dir)))
			lock.Close()
		}
	}
}

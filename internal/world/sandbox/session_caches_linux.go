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
	"github.com/inspan/inspan/internal/world/sandbox/paths"
	"github.com/inspan/inspan/internal/world/sandbox/processes"
	"github.com/inspan/inspan/internal/world/sandbox/walls"
	"github.com/inspan/inspan/tool"
)

// cached lists where programs store what they fetch, build and install: variables, and the cache folders that
// they name.
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
		{"PNPM_CONFIG_STORE_DIR", "pnpm"}, // of pnpm 11 and later
		{"BUN_INSTALL_CACHE_DIR", "bun"},
		{"DENO_DIR", "deno"},
	}
}

// fetched lists caches for which the person's own folders are read until something is fetched in the box: a box
// without network could not fetch their content.
func fetched() [][2]string {
	return [][2]string{{"GOMODCACHE", "go-mod"}, {"CARGO_HOME", "cargo"}, {processes.MavenOptions, "maven"}}
}

// sessionCaches begins the names of cache folders that end with their session.
const sessionCaches = "session-"

// caches creates the folder in which boxes of this session cache fetched and built files, and returns the
// variables for it, to be set in env. The user's own caches are not written: their content is run outside of the box. For the
// same reason the folder ends with the session: content that a command leaves would run in the next session
// without a check. Only programs with caches of their own find them again.
func (b *boxes) caches(box tool.Box, env []string) (folder string, vars []string, err error) {
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
	if _, err := os.Stat(filepath.Join(b.Root, "pnpm-lock.yaml")); err == nil {
		list = append(list, [2]string{"npm_config_store_dir", "pnpm"}) // of older ones; npm warns of it at each call
	}
	mavens := filepath.Join(b.o.Map.Home, ".m2", "repository")
	for _, c := range fetched() {
		if len(box.Hosts) > 0 || !empty(filepath.Join(dir, c[1])) || c[0] == processes.MavenOptions && empty(mavens) {
			list = append(list, c)
		}
	}
	for _, c := range list {
		if err := os.MkdirAll(filepath.Join(dir, c[1]), 0o700); err != nil {
			return "", nil, fmt.Errorf("make cache: %w", err)
		}
		at := walls.CacheDir + "/" + c[1]
		switch c[0] {
		case processes.MavenOptions: // the tail is read too, by Maven 3.9 and later
			vars = append(vars, processes.WithOptions(env, processes.MavenOptions, "-Dmaven.repo.local="+at, "-Dmaven.repo.local.tail="+mavens))
			continue
		case "GOMODCACHE": // go writes the state of the checksum database below GOPATH whenever it fetches
			vars = append(vars, "GOPATH="+walls.CacheDir+"/go")
			if b.engine == nil {
				vars = append(vars, "GOPROXY="+moduleProxies(b.o.Map.Home))
			}
		}
		vars = append(vars, c[0]+"="+at)
	}
	dir, err = filepath.EvalSymlinks(dir)
	return dir, vars, err
}

// empty reports whether a folder is empty or missing.
func empty(dir string) bool {
	list, err := os.ReadDir(dir)
	return err != nil || len(list) == 0
}

// ownPythons returns the folder of the person's uv interpreters. uv finds them only there, so they are used
// from there, read-only.
func ownPythons(home string) string {
	data := cmp.Or(os.Getenv("XDG_DATA_HOME"), filepath.Join(home, ".local", "share"))
	return cmp.Or(os.Getenv("UV_PYTHON_INSTALL_DIR"), filepath.Join(data, "uv", "python"))
}

// moduleProxies returns where Go fetches modules from: first the person's module cache, then their proxy.
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

// nameCache writes the file that names the workspace of a cache, unless it exists.
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

// cache is the cache folder of a session. Its users lock it, as they do the folder for temporary files.
type cache struct {
	mu   sync.Mutex
	dir  string // empty until a box needs it
	lock *os.File
}

// open creates the folder in parent, if it does not exist yet.
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
	for range 20 { // another process can sweep the folder before it is locked
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

// close removes the folder, unless a detached process still uses it.
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
		return nil // swept later
	}
	return errors.Join(keep.RemoveAll(dir), os.RemoveAll(CacheRoot(dir)))
}

// sweepCaches removes leftovers of killed sessions.
func sweepCaches(parent string) {
	list, _ := filepath.Glob(filepath.Join(parent, sessionCaches+"*"))
	for _, dir := range list {
		if lock, err := paths.LockFolder(dir, false); err == nil {
			_ = errors.Join(keep.RemoveAll(dir), os.RemoveAll(CacheRoot(dir)))
			lock.Close()
		}
	}
}

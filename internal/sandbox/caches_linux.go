package sandbox

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// cacheDir is where a workspace box sees its caches. Their true place may lie
// below one that is closed.
const cacheDir = "/var/cache/inspan"

// goBuilds is the folder among them where Go keeps what it has compiled.
const goBuilds = "go-build"

// cached lists where programs keep what they fetch, build and install: variables, and the
// folders of the caches that they lead to.
func cached() [][2]string {
	return [][2]string{
		{"XDG_CACHE_HOME", "xdg"},
		{"GOCACHE", goBuilds},
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

// caches makes the folder where boxes of this workspace keep what they fetch and build, and
// the variables that lead there. The user's own caches are not written: what a box puts
// there would run outside of it. Fetches says that the box reaches hosts.
func (b *boxes) caches(fetches bool) (folder string, vars []string, err error) {
	if b.o.State == "" {
		return "", nil, nil
	}
	key := b.root
	if b.engine != nil {
		key += "\x00" + b.o.Container.Image // other libraries, so other results
	}
	sum := sha256.Sum256([]byte(key))
	dir := filepath.Join(b.o.State, "cache", hex.EncodeToString(sum[:8]))
	if err := nameCache(dir, b.root); err != nil {
		return "", nil, fmt.Errorf("make cache: %w", err)
	}
	list := cached()
	if b.engine != nil || empty(ownPythons(b.o.Map.Home)) {
		list = append(list, [2]string{"UV_PYTHON_INSTALL_DIR", "uv-python"}, [2]string{"UV_PYTHON_BIN_DIR", "bin"})
	}
	for _, c := range fetched() {
		if fetches || !empty(filepath.Join(dir, c[1])) {
			list = append(list, c)
		}
	}
	for _, c := range list {
		if err := os.MkdirAll(filepath.Join(dir, c[1]), 0o700); err != nil {
			return "", nil, fmt.Errorf("make cache: %w", err)
		}
		vars = append(vars, c[0]+"="+cacheDir+"/"+c[1])
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
	if settings, err := os.ReadFile(filepath.Join(home, ".config", "go", "env")); err == nil && proxy == "" {
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

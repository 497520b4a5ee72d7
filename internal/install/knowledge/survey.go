package knowledge

// A survey gathers facts that an agent would otherwise look up in its first turns: the content
// of the folder, the state of its repository, the installed tools, and the way to run the tests.

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

//go:embed look.sh
var look string

// patience bounds how long programs may take to report their versions. Slower ones are left out.
const patience = 2 * time.Second

// Bounds on the named entries of the folder and of each folder in it, and on the bytes of a name and of a file
// that is read.
const (
	mostTop   = 24
	mostBelow = 8
	mostName  = 40
	mostFile  = 64 << 10
	mostRead  = 2000 // entries of a folder that are examined
)

// Machine describes a machine. It has a JSON form for the cache.
type Machine struct {
	Tools    []string `json:"tools,omitempty"`    // with versions where they matter
	Packages []string `json:"packages,omitempty"` // package managers
	Cores    int      `json:"cores,omitempty"`
	Memory   int64    `json:"memory,omitempty"` // bytes; 0: unknown
}

// AskMachine surveys the machine of an environment. It starts one process, in the read-only sandbox if
// available. Unknown facts are left out.
func AskMachine(ctx context.Context, env tool.Env) Machine {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	named := slices.Concat(programs(), managers())
	out := run(ctx, env, look, strings.Join(named, " "), strings.Join(versioned(), " "))
	m := Machine{}
	versions := map[string]string{}
	for line := range strings.Lines(out) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "has":
			if slices.Contains(managers(), rest) {
				m.Packages = append(m.Packages, rest)
			} else {
				m.Tools = append(m.Tools, rest)
			}
		case "version":
			name, text, _ := strings.Cut(rest, " ")
			versions[name] = number.FindString(text)
		case "cores":
			m.Cores, _ = strconv.Atoi(rest)
		case "memory":
			kib, _ := strconv.ParseInt(rest, 10, 64)
			m.Memory = kib << 10
		case "limit":
			if limit, err := strconv.ParseInt(rest, 10, 64); err == nil && limit < m.Memory {
				m.Memory = limit
			}
		}
	}
	for i, name := range m.Tools {
		m.Tools[i] = strings.TrimSpace(name + " " + versions[name])
	}
	return m
}

var number = regexp.MustCompile(`\d+(?:\.\d+)+`)

// programs returns the programs to look for, the most informative first.
func programs() []string {
	return []string{
		"python3", "node", "go", "rustc", "java", "ruby", "php", "perl", "gcc", "clang", "dotnet", "git", "make", "cmake", "docker", "podman",
		"sqlite3", "psql", "mysql", "redis-server", "nginx", "tmux", "gdb", "qemu-system-x86_64", "rg", "jq", "curl", "wget", "openssl", "ffmpeg",
	}
}

func versioned() []string {
	return []string{"python3", "node", "go", "rustc", "java", "ruby", "php", "gcc", "clang", "dotnet"}
}

func managers() []string {
	return []string{
		"apt-get", "apk", "dnf", "pacman", "brew", "pip", "pip3", "uv", "poetry", "conda", "npm", "pnpm", "yarn", "bun", "cargo", "gem",
		"composer", "mvn", "gradle",
	}
}

// run runs a script with sh and returns its output, "" if it fails.
func run(ctx context.Context, env tool.Env, script string, args ...string) string {
	if env.Procs == nil {
		return ""
	}
	var out bytes.Buffer
	box := tool.Box{Level: tool.BoxNone}
	if env.Walls.Read {
		box.Level = tool.BoxRead
	}
	p, err := env.Procs.Start(ctx, tool.Command{
		Args: append([]string{"sh", "-c", script, "sh"}, args...),
		Dir:  env.Root, Output: &out, Box: box,
	})
	if err != nil {
		return ""
	}
	if _, err := p.Wait(); err != nil {
		return ""
	}
	return out.String()
}

// Survey returns facts, one per line, the most useful first, within a number of tokens.
func Survey(ctx context.Context, env tool.Env, m Machine, tokens int) []string {
	f := folder{ctx: ctx, env: env}
	f.rules = f.rules.Add("", []byte(f.read(".gitignore")))
	top := f.list("")
	var out []string
	add := func(line string) {
		if cost := tokensOf(line); line != "" && cost <= tokens {
			out, tokens = append(out, line), tokens-cost
		}
	}
	add(hardware(m))
	add(f.git())
	add(f.tests(top))
	add(labelled("tools", m.Tools))
	add(labelled("package managers", m.Packages))
	add(f.tree(top, tokens))
	return out
}

// tokensOf estimates how many tokens a line takes in the prompt.
func tokensOf(line string) int { return llm.Request{System: []string{"- " + line + "\n"}}.Tokens() + 1 }

func hardware(m Machine) string {
	text := "system: " + runtime.GOOS + "/" + runtime.GOARCH
	if m.Cores > 0 {
		text += fmt.Sprintf(", %d cores", m.Cores)
	}
	if m.Memory > 0 {
		text += fmt.Sprintf(", %.1f GiB of memory", float64(m.Memory)/(1<<30))
	}
	return text
}

func labelled(label string, list []string) string {
	if len(list) == 0 {
		return ""
	}
	return label + ": " + strings.Join(list, ", ")
}

// folder reads the workspace with the access of its tools.
type folder struct {
	ctx   context.Context
	env   tool.Env
	rules *places.Ignores // ignore rules at the top
}

// read returns the beginning of a file, "" if it can't be read.
func (f folder) read(name string) string {
	file, err := f.env.Files.Open(f.ctx, filepath.Join(f.env.Root, name))
	if err != nil {
		return ""
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	data, err := io.ReadAll(io.LimitReader(file, mostFile))
	if err != nil {
		return ""
	}
	return string(data)
}

// list returns the entries, sorted, of a folder below the workspace that are not ignored.
func (f folder) list(dir string) []fs.DirEntry {
	file, err := f.env.Files.Open(f.ctx, filepath.Join(f.env.Root, dir))
	if err != nil {
		return nil
	}
	defer file.Close()
	d, ok := file.(fs.ReadDirFile)
	if !ok {
		return nil
	}
	entries, _ := d.ReadDir(mostRead) // the first entries suffice
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		return e.Name() == ".git" || e.Name() == "node_modules" || f.rules.Ignored(path.Join(dir, e.Name()), e.IsDir())
	})
	slices.SortStableFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries
}

// tree names the entries of the folder and of its subfolders, within a number of tokens.
func (f folder) tree(top []fs.DirEntry, tokens int) string {
	if len(top) == 0 {
		return "files: none"
	}
	text, left := "files:", len(top)
	for _, e := range top[:min(len(top), mostTop)] {
		name := plain(e.Name())
		if e.IsDir() {
			name += "/" + f.within(e.Name())
		}
		if tokensOf(text+" "+name+" and 1000 more") > tokens {
			break
		}
		text, left = text+" "+name, left-1
	}
	if left > 0 {
		text += fmt.Sprintf(" and %d more", left)
	}
	return text
}

// within names the entries of a folder in the workspace.
func (f folder) within(dir string) string {
	var names []string
	for _, e := range f.list(dir) {
		name := plain(e.Name())
		if e.IsDir() {
			name += "/"
		}
		names = append(names, name)
	}
	if more := len(names) - mostBelow; more > 0 {
		names = append(names[:mostBelow], fmt.Sprintf("+%d", more))
	}
	if len(names) == 0 {
		return ""
	}
	return "(" + strings.Join(names, " ") + ")"
}

// plain returns an unambiguous name: unusual characters are quoted, and long names are cut.
func plain(name string) string {
	name = text.Cut(name, mostName)
	odd := func(r rune) bool {
		return r <= ' ' || r > '~' && r != '…' || strings.ContainsRune("()\"'`", r)
	}
	if strings.ContainsFunc(name, odd) {
		return strconv.QuoteToASCII(name)
	}
	return name
}

// git describes the state of the repository, "" if there is none. Programs that the repository configures run
// only in the read-only sandbox.
func (f folder) git() string {
	head := f.read(".git/HEAD")
	if head == "" && f.read(".git") == "" { // in a worktree .git is a file
		return ""
	}
	text := "git repository"
	if branch, ok := strings.CutPrefix(strings.TrimSpace(head), "ref: refs/heads/"); ok {
		text += ", branch " + plain(branch)
	}
	if !f.env.Walls.Read {
		return text
	}
	ctx, stop := context.WithTimeout(f.ctx, patience/4)
	defer stop()
	out := run(ctx, f.env, `GIT_CONFIG_GLOBAL=/dev/null git -c core.fsmonitor=false -c core.hooksPath=/dev/null --no-optional-locks status --porcelain 2>/dev/null && echo .`)
	if !strings.HasSuffix(out, ".\n") {
		return text
	}
	changed, untracked := 0, 0
	for line := range strings.Lines(strings.TrimSuffix(out, ".\n")) {
		if strings.HasPrefix(line, "??") {
			untracked++
		} else {
			changed++
		}
	}
	if changed+untracked == 0 {
		return text + ", clean"
	}
	return text + fmt.Sprintf(", %d changed, %d untracked", changed, untracked)
}

// tests describes how the project is probably tested.
func (f folder) tests(top []fs.DirEntry) string {
	has := func(name string) bool {
		return slices.ContainsFunc(top, func(e fs.DirEntry) bool { return e.Name() == name })
	}
	for _, way := range []struct {
		file, holds, command string
	}{
		{"Makefile", "\ntest:", "make test"},
		{"justfile", "\ntest", "just test"},
		{"go.mod", "", "go test ./..."},
		{"Cargo.toml", "", "cargo test"},
		{"package.json", `"test":`, "npm test"},
		{"pytest.ini", "", "python3 -m pytest"},
		{"tox.ini", "", "python3 -m pytest"},
		{"pyproject.toml", "pytest", "python3 -m pytest"},
		{"conftest.py", "", "python3 -m pytest"},
		{"pom.xml", "", "mvn test"},
		{"build.gradle", "", "gradle test"},
		{"mix.exs", "", "mix test"},
		{"Gemfile", "rspec", "bundle exec rspec"},
		{"CMakeLists.txt", "enable_testing", "ctest"},
	} {
		if has(way.file) && (way.holds == "" || strings.Contains("\n"+f.read(way.file), way.holds)) {
			return "tests: probably " + way.command
		}
	}
	return ""
}

package script

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"modernc.org/quickjs"
)

// TestTest262 runs the tests of the language and of its built-ins from a copy of tc39/test262, whose folder
// INSPAN_TEST262 names, within the limits of scripts. It uses the engine's own list of missing features and failing
// tests.
func TestTest262(t *testing.T) {
	suite := os.Getenv("INSPAN_TEST262")
	if suite == "" {
		t.Skip("INSPAN_TEST262 names no copy of tc39/test262; see 'make test262'")
	}
	own := ofEngine(t)
	files := make(chan string)
	var failed, ran, left []string
	var mu sync.Mutex
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for file := range files {
				how, err := own.run(suite, file)
				mu.Lock()
				switch {
				case how == "":
					left = append(left, file)
				case err == nil || own.fails[file]:
					ran = append(ran, file)
				default:
					failed = append(failed, file+": "+err.Error())
				}
				mu.Unlock()
			}
		})
	}
	for _, dir := range []string{"language", "built-ins"} {
		err := filepath.WalkDir(filepath.Join(suite, "test", dir), func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && strings.HasSuffix(path, ".js") && !strings.Contains(path, "_FIXTURE") {
				rel, _ := filepath.Rel(suite, path)
				files <- filepath.ToSlash(rel)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	close(files)
	all.Wait()
	slices.Sort(failed)
	t.Logf("%d tests ran, %d were left out, %d failed that the engine does not name", len(ran)+len(failed), len(left), len(failed))
	for _, f := range failed {
		t.Error(f)
	}
}

// engineList is the engine's own list, and the files that tests include.
type engineList struct {
	lacks map[string]bool // features
	fails map[string]bool // files
	out   []string        // beginnings of files
}

func ofEngine(t *testing.T) engineList {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "modernc.org/libquickjs").Output()
	if err != nil {
		t.Fatal(err)
	}
	root := strings.TrimSpace(string(dir))
	conf, err := os.ReadFile(filepath.Join(root, "testdata", "test262.conf"))
	fails, err2 := os.ReadFile(filepath.Join(root, "test262_errors.txt"))
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	l := engineList{lacks: map[string]bool{}, fails: map[string]bool{}}
	for line := range strings.Lines(string(conf)) {
		line = strings.TrimSpace(line)
		if name, lacks := strings.CutSuffix(line, "=skip"); lacks {
			l.lacks[name] = true
		}
		if path, test := strings.CutPrefix(line, "test262/"); test {
			l.out = append(l.out, path)
		}
	}
	for line := range strings.Lines(string(fails)) {
		name, _, _ := strings.Cut(strings.TrimPrefix(line, "test262/"), ":")
		l.fails[name] = true
	}
	for _, name := range []string{"all", "allSettled"} { // which the list of the engine misses
		l.fails["test/built-ins/Promise/"+name+"/does-not-invoke-array-setters.js"] = true
	}
	for _, class := range []string{"digit", "whitespace", "word"} { // they need more than 64 MB
		l.fails["test/built-ins/RegExp/CharacterClassEscapes/character-class-non-"+class+"-class-escape-positive-cases.js"] = true
	}
	return l
}

// run runs one test. How is empty if it is left out.
func (l engineList) run(suite, file string) (how string, err error) {
	raw, err := os.ReadFile(filepath.Join(suite, filepath.FromSlash(file)))
	if err != nil {
		return "read", err
	}
	_, rest, _ := bytes.Cut(raw, []byte("/*---"))
	front, _, _ := bytes.Cut(bytes.ReplaceAll(rest, []byte("\r"), []byte("\n")), []byte("---*/"))
	list := func(key string) []string {
		m := regexp.MustCompile(`(?m)^` + key + `: *\[([^\]]*)\]`).FindSubmatch(front)
		if m == nil {
			m = regexp.MustCompile(`(?m)^` + key + `: *\n((?: +- .*\n?)+)`).FindSubmatch(front)
		}
		if m == nil {
			return nil
		}
		return strings.FieldsFunc(string(m[1]), func(r rune) bool { return strings.ContainsRune(", \n\t", r) })
	}
	clean := func(words []string) []string {
		return slices.DeleteFunc(words, func(w string) bool { return w == "-" })
	}
	flags, features, includes := clean(list("flags")), clean(list("features")), clean(list("includes"))
	beyond := []string{"Atomics", "SharedArrayBuffer", "WeakRef", "FinalizationRegistry"} // scripts don't have them
	if slices.Contains(flags, "module") || bytes.Contains(raw, []byte("$262")) || slices.Contains(includes, "detachArrayBuffer.js") ||
		slices.ContainsFunc(features, func(f string) bool { return l.lacks[f] || slices.Contains(beyond, f) }) ||
		slices.ContainsFunc(l.out, func(p string) bool { return strings.HasPrefix(file, p) }) || slices.Contains(features, "dynamic-import") ||
		slices.Contains(flags, "CanBlockIsTrue") {
		return "", nil
	}
	negative := regexp.MustCompile(`(?s)negative:\s*\n(?:\s+phase: *(\w+)\s*\n\s+type: *(\w+))`).FindSubmatch(front)
	vm, err := quickjs.NewVM()
	if err != nil {
		return "make", err
	}
	defer func() { _ = vm.Close() }()
	limit(vm, 64<<20)
	if err := vm.SetEvalTimeout(30 * time.Second); err != nil {
		return "limit", err
	}
	async, said := slices.Contains(flags, "async"), ""
	if err := vm.RegisterHostFunc("print", func(args []any) (any, error) { said, _ = args[0].(string); return nil, nil }); err != nil {
		return "make", err
	}
	if !slices.Contains(flags, "raw") {
		includes = append([]string{"assert.js", "sta.js"}, includes...)
		if async {
			includes = append(includes, "doneprintHandle.js")
		}
		for _, name := range includes {
			code, err := os.ReadFile(filepath.Join(suite, "harness", name))
			if err == nil {
				_, err = vm.Eval(string(code), quickjs.EvalGlobal)
			}
			if err != nil {
				return "include", errors.New(name + ": " + err.Error())
			}
		}
	}
	code := string(raw)
	if slices.Contains(flags, "onlyStrict") {
		code = "\"use strict\";\n" + code
	}
	if _, err = vm.Eval(code, quickjs.EvalGlobal); err == nil {
		_, err = vm.ExecutePendingJobs()
	}
	switch {
	case negative != nil && err == nil:
		return "ran", errors.New("it was to fail as " + string(negative[2]))
	case negative != nil:
		if !strings.Contains(err.Error(), string(negative[2])) {
			return "ran", errors.New("it was to fail as " + string(negative[2]) + ", and failed as " + err.Error())
		}
		return "ran", nil
	case err == nil && async && said != "Test262:AsyncTestComplete":
		return "ran", errors.New("it was not done: " + said)
	}
	return "ran", err
}

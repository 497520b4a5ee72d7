package coding_test

import (
	"bytes"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan/coding"
	"github.com/inspan/inspan/files"
	"github.com/inspan/inspan/internal/install/equipment"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/mcptool"
	"github.com/inspan/inspan/tool"
)

// TestWrongOptions names the option that is wrong before anything is made.
func TestWrongOptions(t *testing.T) {
	at := home(t)
	file := filepath.Join(folder(t), "file")
	write(t, file, "model = 'x'\nmodle = 'y'\n")
	for want, change := range map[string]func(*coding.Options){
		"call coding.Init first in main":        func(o *coding.Options) { o.Sandbox = coding.Sandbox{} },
		"Root: ":                                func(o *coding.Options) { o.Root = "/not/there" },
		"is not a folder":                       func(o *coding.Options) { o.Root = file },
		`option Mode: unknown mode "edti"`:      func(o *coding.Options) { o.Mode = "edti" },
		`option Allow: rule "nonsense": no`:     func(o *coding.Options) { o.Allow = []string{"bash(ls *)", "nonsense"} },
		`"edit_fil"; did you mean "edit_file"?`: func(o *coding.Options) { o.Deny = []string{"edit_fil(*.go)"} },
		`option Tools: tool 1: "" is not`:       func(o *coding.Options) { o.Tools = []tool.Tool{{}} },
		`option Tools: tool 2: "a b" is not`:    func(o *coding.Options) { o.Tools = []tool.Tool{{Name: "a"}, {Name: "a b"}} },
		"two tools are called a":                func(o *coding.Options) { o.Tools = []tool.Tool{{Name: "a"}, {Name: "a"}} },
		"option Skills: ":                       func(o *coding.Options) { o.Skills = []string{"/not/there"} },
		"option Skills: " + file:                func(o *coding.Options) { o.Skills = []string{file} },
		"option State: " + file:                 func(o *coding.Options) { o.State = file },
		"option Allow: ":                        func(o *coding.Options) { o.Allow = []string{"bash("} },
		"option Ask: ":                          func(o *coding.Options) { o.Ask = []string{"bash("} },
		"option Deny: ":                         func(o *coding.Options) { o.Deny = []string{"bash("} },
		"Servers: ":                             func(o *coding.Options) { o.Servers = []mcptool.Server{{Name: "a b"}} },
		"Settings: ":                            func(o *coding.Options) { o.Settings = filepath.Join(at, "nowhere") },
		`did you mean "model"?`:                 func(o *coding.Options) { o.Settings = file },
		"set one of them":                       func(o *coding.Options) { o.Settings, o.Personal = file, true },
		"option Container needs":                func(o *coding.Options) { o.Container, o.Sandbox = "alpine", coding.NoSandbox() },
		"option Env has Files":                  func(o *coding.Options) { o.Root, o.Env = "", &tool.Env{Root: "/w"} },
		"excludes the options Root":             func(o *coding.Options) { world := files.New(nil).Env(); o.Env = &world },
		"is closed to tools":                    func(o *coding.Options) { o.State = filepath.Dir(o.Root) },
		at + "/.config/inspan, which holds set": func(o *coding.Options) { o.Root = filepath.Join(at, ".config", "inspan", "work") },
	} {
		o := coding.Options{Sandbox: coding.Init(), Root: folder(t), Model: &script.Model{}}
		change(&o)
		if strings.HasSuffix(o.Root, "work") {
			if err := os.MkdirAll(o.Root, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := coding.Agent(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		if _, err := coding.Env(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the environment: %v, want %q", err, want)
		}
	}
	if exists(filepath.Join(at, ".local")) {
		t.Error("something was made")
	}
}

// TestNoModel checks the errors without a model, and with a cost limit but no price.
func TestNoModel(t *testing.T) {
	host, o := kit(t, func(o *coding.Options) { o.Model = nil })
	if _, err := host.New(t.Context(), o.Root); err == nil || !strings.Contains(err.Error(), "no model is configured: set option Model") ||
		strings.Contains(err.Error(), "--model") {
		t.Error(err)
	}
	host, o = kit(t, func(o *coding.Options) { o.Model, o.Limits.Cost = unpriced{&script.Model{}}, 1 })
	if _, err := host.New(t.Context(), o.Root); err == nil || !strings.Contains(err.Error(), "its llm.Info has no Prices") {
		t.Error(err)
	}
}

// unpriced is a model without a price.
type unpriced struct{ llm.Model }

// Info implements [llm.Model].
func (u unpriced) Info() llm.Info {
	info := u.Model.Info()
	info.Prices = nil
	return info
}

// TestNoSandbox warns, and asks for commands that the sandbox would have held.
func TestNoSandbox(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(before)
	host, o := kit(t, func(o *coding.Options) { o.Mode, o.Sandbox, o.Warn = tool.ModeAuto, coding.NoSandbox(), nil })
	s := open(t, host, o.Root)
	run(t, s, false, `bash: python3 -c "open('denied','w')"`)
	run(t, s, true, `bash: python3 -c "open('allowed','w')"`)
	if exists(filepath.Join(o.Root, "denied")) || !exists(filepath.Join(o.Root, "allowed")) {
		t.Error("nobody was asked, or no command runs")
	}
	if !strings.Contains(log.String(), "no full sandbox: it is switched off") {
		t.Errorf("warned: %s", log.String())
	}
	log.Reset()
	free, o := kit(t, func(o *coding.Options) { o.Mode, o.Sandbox, o.Warn = tool.ModeYolo, coding.NoSandbox(), nil })
	open(t, free, o.Root)
	if log.Len() > 0 { // nothing asks in this mode
		t.Errorf("warned: %s", log.String())
	}
	env := environment(t, o)
	if _, err := env.Procs.Start(t.Context(), tool.Command{Args: []string{"true"}, Dir: o.Root}); !errors.Is(err, tool.ErrNoBox) {
		t.Errorf("a command for the sandbox runs without: %v", err)
	}
}

// TestEnv starts a process in the sandbox, and keeps secrets closed.
func TestEnv(t *testing.T) {
	_, o := kit(t, func(o *coding.Options) { o.Deny = []string{"read(private.txt)"} })
	env := environment(t, o)
	write(t, filepath.Join(o.Root, "private.txt"), "x")
	if _, err := env.Files.Open(t.Context(), filepath.Join(o.Root, "private.txt")); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a file that a rule denies: %v", err)
	}
	if !env.Walls.Workspace {
		t.Skip("THIS MACHINE CAN'T BUILD THE SANDBOX: " + env.Walls.Why)
	}
	outside := filepath.Join(folder(t), "x")
	p, err := env.Procs.Start(t.Context(), tool.Command{Args: []string{"sh", "-c", "touch inside; touch " + outside}, Dir: o.Root})
	if err != nil {
		t.Fatal(err)
	}
	if code, err := p.Wait(); err != nil || code == 0 || !exists(filepath.Join(o.Root, "inside")) || exists(outside) {
		t.Errorf("ended with %d, %v", code, err)
	}
}

// TestPersonal uses a person's set-up of the command only on request, and keeps tools away from it otherwise.
func TestPersonal(t *testing.T) {
	host, o := kit(t)
	at := os.Getenv("HOME")
	write(t, filepath.Join(at, ".config/inspan/config.toml"), "mode = 'plan'\n")
	write(t, filepath.Join(at, ".config/inspan/skills/mine/SKILL.md"), "---\nname: mine\ndescription: Of the person.\n---\nSay moin.\n")
	s := open(t, host, o.Root)
	got := run(t, s, true, `call: skill {"name":"mine"}`+"\nread: "+at+
		"/.config/inspan/config.toml\nbash: cat "+at+"/.config/inspan/config.toml")
	if strings.Contains(got, "moin") || strings.Contains(got, "plan'") || s.Status().Mode != "ask" {
		t.Errorf("without Personal, in mode %s: %s", s.Status().Mode, got)
	}
	if !strings.Contains(host.Dir, "/.local/state/inspan/embedded/coding.test/") {
		t.Error(host.Dir)
	}

	o.Personal = true
	host, err := coding.Agent(o)
	if err != nil {
		t.Fatal(err)
	}
	s = open(t, host, o.Root)
	if got := run(t, s, false, `call: skill {"name":"mine"}`); !strings.Contains(got, "moin") || s.Status().Mode != "plan" {
		t.Errorf("with Personal, in mode %s: %s", s.Status().Mode, got)
	}
	if host.Dir != at+"/.local/state/inspan/sessions" {
		t.Error(host.Dir)
	}
}

// TestSettings reads a file of the program, and no variables of the environment.
func TestSettings(t *testing.T) {
	file := filepath.Join(folder(t), "config.toml")
	write(t, file, "mode = 'plan'\nallow = ['bash(touch *)']\n")
	host, o := kit(t, func(o *coding.Options) { o.Settings = file })
	t.Setenv("INSPAN_MODE", "yolo")
	if s := open(t, host, o.Root); s.Status().Mode != "plan" {
		t.Error(s.Status().Mode)
	}
}

// TestFewNames checks how much there is to learn, and that every type can be named by its users.
func TestFewNames(t *testing.T) {
	const most = 39
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		internal := map[string]bool{}
		for _, i := range f.Imports {
			if path := strings.Trim(i.Path.Value, `"`); strings.Contains(path, "/internal/") {
				internal[path[strings.LastIndex(path, "/")+1:]] = true
			}
		}
		ast.FileExports(f)
		for _, decl := range f.Decls {
			names = append(names, exported(decl)...)
			ast.Inspect(decl, func(n ast.Node) bool {
				if sel, ok := n.(*ast.SelectorExpr); ok && internal[sel.X.(*ast.Ident).Name] {
					t.Errorf("%s: %s.%s is internal", path, sel.X, sel.Sel)
				}
				_, body := n.(*ast.BlockStmt)
				return !body
			})
		}
	}
	t.Logf("%d exported names: %s", len(names), strings.Join(names, " "))
	if len(names) > most || len(names) < 20 {
		t.Errorf("%d exported names, at most %d are wanted", len(names), most)
	}
}

// exported are the names that a declaration exports: funcs, methods, types and fields.
func exported(decl ast.Decl) (names []string) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		return []string{d.Name.Name}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if v, ok := spec.(*ast.ValueSpec); ok {
				for _, n := range v.Names {
					names = append(names, n.Name)
				}
			}
			typ, ok := spec.(*ast.TypeSpec)
			if !ok {
				continue
			}
			names = append(names, typ.Name.Name)
			if st, ok := typ.Type.(*ast.StructType); ok {
				for _, f := range st.Fields.List {
					for _, n := range f.Names {
						names = append(names, typ.Name.Name+"."+n.Name)
					}
				}
			}
		}
	}
	return names
}

// TestRulesNameAnyTool checks that a rule may name each tool of a session, each kind of effect, the program's own tools
// and those of servers, and that the first wrong list is named.
func TestRulesNameAnyTool(t *testing.T) {
	_, o := kit(t, func(o *coding.Options) { o.Tools = []tool.Tool{{Name: "mine"}} })
	o.Allow = equipment.Names()
	o.Ask = []string{"mine", "mcp__files__*", "read(**)", "network(example.com)", "keep", "edit_*", "*"}
	if _, err := coding.Agent(o); err != nil {
		t.Error(err)
	}
	o.Allow, o.Ask, o.Deny = []string{"x1"}, []string{"x2"}, []string{"x3"}
	for range 20 {
		if _, err := coding.Agent(o); err == nil || !strings.Contains(err.Error(), "option Allow: ") {
			t.Fatal(err)
		}
	}
}

// TestAllNamesAreKnown checks that the names of built-in tools are those of a session.
func TestAllNamesAreKnown(t *testing.T) {
	sources, err := filepath.Glob("../internal/*/*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	names, found := equipment.Names(), 0
	for _, path := range sources {
		raw, err := os.ReadFile(path)
		if err != nil || strings.HasSuffix(path, "_test.go") || strings.Contains(filepath.ToSlash(path), "/testkit/") {
			continue
		}
		for _, made := range regexp.MustCompile(`tool\.New\("(\w+)"`).FindAllSubmatch(raw, -1) {
			if found++; !slices.Contains(names, string(made[1])) {
				t.Errorf("%s is missing", made[1])
			}
		}
	}
	if found < 30 {
		t.Error(found, "tools")
	}
}

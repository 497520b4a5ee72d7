//go:build unix

package custom_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"image"
	"image/png"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/extend/custom"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

func picture(t testing.TB) []byte {
	t.Helper()
	var buf bytes.Buffer
	if err := png.Encode(&buf, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestResults(t *testing.T) {
	pic := base64.StdEncoding.EncodeToString(picture(t))
	for name, tt := range map[string]struct {
		body  string
		parts string // texts, and media types of images
		err   []string
		exit  int
	}{
		"text":      {body: `echo hello`, parts: "hello"},
		"nothing":   {body: `:`, parts: ""},
		"arguments": {body: `cat`, parts: `{"a":"x y"}`},
		"none":      {body: `echo $#`, parts: "0"},
		"colour":    {body: `printf '\033[31mred\033[0m\a\n'`, parts: "red"},
		"binary":    {body: `printf 'a\377\000b'`, parts: "a\ufffdb"},
		"object":    {body: `echo '{"text":"hi"}'`, parts: "hi"},
		"error":     {body: `echo '{"text":"some","error":"no luck"}'`, parts: "some", err: []string{"no luck"}},
		"other":     {body: `echo '{"text":"hi","more":1}'`, parts: `{"text":"hi","more":1}`},
		"case":      {body: `echo '{"Text":"hi"}'`, parts: `{"Text":"hi"}`},
		"no object": {body: `echo '{}'`, parts: `{}`},
		"two":       {body: `echo '{"text":"a"}{"text":"b"}'`, parts: `{"text":"a"}{"text":"b"}`},
		"number":    {body: `echo '{"text":1}'`, parts: `{"text":1}`},
		"image":     {body: `echo '{"text":"see","images":[{"media_type":"image/png","data":"` + pic + `"}]}'`, parts: "see image/png"},
		"false image": {
			body:  `echo '{"images":[{"media_type":"image/png","data":"aGk="}]}'`,
			parts: `{"images":[{"media_type":"image/png","data":"aGk="}]}`,
		},
		"odd image": {
			body:  `echo '{"images":[{"media_type":"text/plain; charset=utf-8","data":"aGk="}]}'`,
			parts: `{"images":[{"media_type":"text/plain; charset=utf-8","data":"aGk="}]}`,
		},
		"failure": {
			body:  `echo part; echo why >&2; echo really >&2; exit 7`,
			parts: "part", err: []string{"exit code 7:\nwhy\nreally"}, exit: 7,
		},
		"both":       {body: `echo '{"error":"because"}'; echo log >&2; exit 2`, err: []string{"exit code 2:\nbecause"}, exit: 2},
		"silent":     {body: `exit 9`, err: []string{"exit code 9"}, exit: 9},
		"signal":     {body: `kill -KILL $$`, err: []string{"exit code 137"}, exit: 137},
		"no program": {body: `exec /nowhere/at/all`, err: []string{"exit code 127", "its first line"}, exit: 127},
		"said":       {body: `echo fine; echo noise >&2`, parts: "fine"},
		"here": {
			body:  `pwd; echo "$INSPAN_ROOT $INSPAN_SESSION $INSPAN_MODE $INSPAN_KEY"`,
			parts: "ROOT\nROOT s1 ask " + "key of the call",
		},
		"no leaks": {body: `env | grep -c -e '^s=' -e '^l='; [ -e /proc/$$/fd/3 ] || echo closed`, parts: "0\nclosed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.write(t, "x", declare("x", "", tt.body))
			res, err := b.run(t, b.one(t, "x"), `{"a":"x y"}`)
			var got []string
			for _, p := range res.Parts {
				switch p := p.(type) {
				case llm.Text:
					got = append(got, p.Text)
				case llm.Image:
					got = append(got, p.MediaType)
					if !bytes.Equal(p.Data, picture(t)) {
						t.Error("another image")
					}
				}
			}
			if text, want := strings.Join(got, " "), strings.ReplaceAll(tt.parts, "ROOT", b.Env.Root); text != want {
				t.Errorf("got %q, want %q", text, want)
			}
			if (err != nil) != (tt.err != nil) {
				t.Fatalf("error %v", err)
			}
			if err != nil {
				has(t, "error", err.Error(), tt.err...)
			}
			if res.Exit == nil || *res.Exit != tt.exit {
				t.Errorf("exit %v, want %d", res.Exit, tt.exit)
			}
		})
	}
}

func TestFlood(t *testing.T) {
	b := newBench(t)
	b.write(t, "x", declare("x", "", `yes 0123456789abcde | head -c 20000000; echo THE END; yes | head -n 5000 >&2; echo LAST >&2; exit 1`))
	var p progress
	x := b.one(t, "x")
	res, err := x.Run(t.Context(), b.call(x, "{}", &p))
	text := res.Parts.Text()
	if len(text) > 9<<20 || len(text) < 8<<20 || !strings.HasPrefix(text, "0123") || !strings.HasSuffix(text, "THE END") {
		t.Errorf("%d bytes, %q ... %q", len(text), text[:10], text[len(text)-10:])
	}
	has(t, "text", text, "bytes left out; they are not kept")
	if err == nil || len(err.Error()) > 17<<10 || !strings.HasSuffix(err.Error(), "LAST") {
		t.Errorf("error %.100v", err)
	}
	if n := strings.Count(p.get(), "\n"); n != 1001 || !strings.HasSuffix(p.get(), "y\n[the rest is not shown]\n") {
		t.Errorf("%d lines of progress", n)
	}
}

// TestProgress checks that lines are passed on while the program runs.
func TestProgress(t *testing.T) {
	b := newBench(t)
	b.write(t, "x", declare("x", "",
		`printf 'half ' >&2; echo whole >&2; printf '\033[1mbold\n\n' >&2; while ! [ -e go ]; do sleep 0.01; done; printf last >&2; echo done`))
	x := b.one(t, "x")
	var p progress
	c := b.call(x, "{}", &p)
	seen := false
	c.Progress = func(text string) {
		p.add(text)
		if strings.HasPrefix(text, "bold") && !seen {
			seen = true
			write(t, b.Env.Root, "go", "")
		}
	}
	res, err := x.Run(t.Context(), c)
	if err != nil || res.Parts.Text() != "done" || p.get() != "half whole\nbold\nlast\n" {
		t.Errorf("%q, %v, progress %q", res.Parts.Text(), err, p.get())
	}
}

func TestTimeout(t *testing.T) {
	b := newBench(t)
	mark := filepath.Join(t.TempDir(), "pid")
	b.write(t, "x", declare("x", `"timeout_seconds":1`, "echo $$ > "+mark+
		"\nsleep 1000 & echo $! >> "+mark+"\necho some; echo stuck >&2; wait"))
	res, err := b.run(t, b.one(t, "x"), `{}`)
	if err == nil || res.Parts.Text() != "some" || res.Exit != nil {
		t.Fatalf("%+v, %v", res, err)
	}
	has(t, "error", err.Error(), "x did not finish within 1s and was ended:\nstuck")
	gone(t, mark)
}

func TestInterrupted(t *testing.T) {
	b := newBench(t)
	mark := filepath.Join(t.TempDir(), "pid")
	b.write(t, "x", declare("x", "", "echo $$ > "+mark+"\nsleep 1000 & echo $! >> "+mark+"\necho ready >&2; wait"))
	x := b.one(t, "x")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := b.call(x, "{}", nil)
	c.Progress = func(string) { cancel() }
	if _, err := x.Run(ctx, c); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	gone(t, mark)
}

// TestLeftBehind checks that processes that a program leaves behind end with it, and do not hold it up.
func TestLeftBehind(t *testing.T) {
	b := newBench(t)
	mark := filepath.Join(t.TempDir(), "pid")
	b.write(t, "x", declare("x", "", "sleep 1000 & echo $! > "+mark+"\nsetsid sleep 1000 & echo $! >> "+mark+"\necho done"))
	began := time.Now()
	res, err := b.run(t, b.one(t, "x"), `{}`)
	if err != nil || res.Parts.Text() != "done" || time.Since(began) > testkit.Patience {
		t.Errorf("%q, %v after %v", res.Parts.Text(), err, time.Since(began))
	}
	gone(t, mark)
}

// TestChanged checks that only the program that was looked at runs.
func TestChanged(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, dir string){
		"program": func(t *testing.T, dir string) { write(t, dir, "x/run", declare("x", "", "echo other")) },
		"beside":  func(t *testing.T, dir string) { write(t, dir, "x/lib", "other") },
		"added":   func(t *testing.T, dir string) { write(t, dir, "x/more", "") },
		"gone":    func(_ *testing.T, dir string) { _ = os.RemoveAll(filepath.Join(dir, "x")) },
		"folder":  func(_ *testing.T, dir string) { _ = os.RemoveAll(dir) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.write(t, "x/run", declare("x", "", "echo first"))
			b.write(t, "x/lib", "first")
			x := b.one(t, "x")
			change(t, b.dir)
			res, err := b.run(t, x, `{}`)
			if err == nil || len(res.Parts) > 0 {
				t.Fatalf("%v, %v", res, err)
			}
			has(t, "error", err.Error(), "x has changed since inspan read it", "next turn")
		})
	}
}

func TestSecrets(t *testing.T) {
	b := newBench(t)
	b.Folders[0].Source = "project"
	// What it finds in the list of processes, of itself and the shell before it.
	b.write(t, "x", declare("x", `"secrets":["A_TOKEN","B_TOKEN"]`, `printf '%s|%s|%s' "$A_TOKEN" "$B_TOKEN" "$(cat)"`))
	b.write(t, "other", declare("other", "", `env | grep -c TOKEN`))
	t.Setenv("A_TOKEN", "from outside")
	x := b.one(t, "x")
	line := "[tool_secrets.project]\nx = [\"A_TOKEN\", \"B_TOKEN\"]"
	if _, err := b.run(t, x, `{}`); err == nil || !strings.Contains(err.Error(), line) ||
		!strings.Contains(err.Error(), "A_TOKEN and B_TOKEN") {
		t.Errorf("error %v", err)
	}
	var wants []custom.Want
	values := map[string]string{"A_TOKEN": "a"}
	b.Secret = func(w custom.Want) (string, bool) {
		wants = append(wants, w)
		v, granted := values[w.Name]
		return v, granted
	}
	if _, err := b.run(t, x, `{}`); err == nil || !strings.Contains(err.Error(), line) || strings.Contains(err.Error(), "A_TOKEN and") {
		t.Errorf("error %v", err)
	}
	if want := []custom.Want{{"project", "x", "A_TOKEN"}, {"project", "x", "B_TOKEN"}}; !reflect.DeepEqual(wants, want) {
		t.Errorf("asked for %v", wants)
	}
	values["B_TOKEN"] = ""
	if _, err := b.run(t, x, `{}`); err == nil || !strings.Contains(err.Error(), "B_TOKEN is granted but empty") {
		t.Errorf("error %v", err)
	}
	for _, odd := range []string{"plain", "two\nlines", "it's $HOME `id` \"q\" \\n %s", "#\n##\n#", "\n\n", " blank ", "ü\xff", "-n"} {
		values["B_TOKEN"] = odd
		res, err := b.run(t, x, `{"a":"v"}`)
		if want := strings.ToValidUTF8("a|"+odd+"|"+`{"a":"v"}`, "\ufffd"); err != nil || res.Parts.Text() != want {
			t.Errorf("%q: got %q, %v", odd, res.Parts.Text(), err)
		}
	}
	values["B_TOKEN"] = "a\x00b"
	if _, err := b.run(t, x, `{}`); err == nil || !strings.Contains(err.Error(), "NUL") || strings.Contains(err.Error(), "a\x00b") {
		t.Errorf("error %v", err)
	}
	if res, _ := b.run(t, b.one(t, "other"), `{}`); res.Parts.Text() != "0" {
		t.Errorf("another tool has secrets: %q", res.Parts.Text())
	}
}

func TestEffects(t *testing.T) {
	all := tool.Walls{Read: true, Workspace: true, Hosts: true}
	root := "/w"
	read, written := tool.Effect{Kind: tool.Read, Path: root}, tool.Effect{Kind: tool.Write, Path: root}
	host := tool.Effect{Kind: tool.Network, Text: "slack.com"}
	send := tool.Effect{Kind: tool.External, Text: "send it"}
	silent := tool.Effect{Kind: tool.External, Text: "run x, which does not say what it does"}
	free := tool.Effect{Kind: tool.External, Text: "run x without a sandbox that holds it to what it declares"}
	workspace, reads := tool.Box{Level: tool.BoxWorkspace}, tool.Box{Level: tool.BoxRead}
	none := tool.Box{Level: tool.BoxNone}
	for _, tt := range []struct {
		declared string
		walls    tool.Walls
		effects  []tool.Effect
		box      tool.Box
	}{
		{``, all, []tool.Effect{silent}, workspace},
		{`"effects":{}`, all, []tool.Effect{silent}, workspace},
		{`"effects":{"read":false}`, all, []tool.Effect{silent}, workspace},
		{`"effects":{"read":true}`, all, []tool.Effect{read}, reads},
		{`"effects":{"read":true}`, tool.Walls{Workspace: true, Hosts: true}, []tool.Effect{read, free}, none},
		{`"effects":{"read":true}`, tool.Walls{Read: true}, []tool.Effect{read}, reads},
		{`"effects":{"write":true}`, all, []tool.Effect{written}, workspace},
		{`"effects":{"write":true}`, tool.Walls{Read: true, Hosts: true}, []tool.Effect{written, free}, none},
		{`"effects":{"read":true,"write":true}`, tool.Walls{Workspace: true}, []tool.Effect{read, written}, workspace},
		{`"effects":{"read":true,"external":"send it"}`, all, []tool.Effect{read, send}, workspace},
		{
			`"effects":{"read":true,"network":["slack.com"]}`, all,
			[]tool.Effect{read, host},
			tool.Box{Level: tool.BoxWorkspace, Hosts: []string{"slack.com"}},
		},
		{
			`"effects":{"network":["slack.com"],"external":"send it"}`,
			tool.Walls{Read: true, Workspace: true},
			[]tool.Effect{host, send, free},
			none,
		},
		{`"effects":{"network":["*","*.a.example:443"]}`, all, []tool.Effect{
			{Kind: tool.Network, Text: "*"},
			{Kind: tool.Network, Text: "*.a.example:443"},
		}, tool.Box{Level: tool.BoxWorkspace, Hosts: []string{"*", "*.a.example:443"}}},
	} {
		b := newBench(t)
		b.write(t, "x", declare("x", tt.declared, ""))
		x := b.one(t, "x")
		c := b.call(x, "{}", nil)
		procs := &refusing{}
		c.Env = tool.Env{Root: root, Procs: procs, Walls: tt.walls}
		if tt.box.Level != tool.BoxNone { // which opens the folder of the program
			tt.box.Program = b.dir
		}
		got, err := x.Effects(t.Context(), c)
		if err != nil || !reflect.DeepEqual(got, tt.effects) {
			t.Errorf("%s with %+v: %v, %v, want %v", tt.declared, tt.walls, got, err, tt.effects)
		}
		if _, err := x.Run(t.Context(), c); !errors.Is(err, errRefused) {
			t.Errorf("error %v", err)
		}
		if !reflect.DeepEqual(procs.got.Box, tt.box) {
			t.Errorf("%s with %+v: box %+v, want %+v", tt.declared, tt.walls, procs.got.Box, tt.box)
		}
		if strings.Contains(strings.Join(procs.got.Args, " "), "INSPAN_KEY") || procs.got.Env != nil {
			t.Errorf("args %q, environment %q", procs.got.Args, procs.got.Env)
		}
	}
}

var errRefused = errors.New("refused")

// refusing records the programs that it was asked to start.
type refusing struct{ got tool.Command }

func (r *refusing) Start(_ context.Context, c tool.Command) (tool.Process, error) {
	r.got = c
	return nil, errRefused
}

func TestDescribedInABox(t *testing.T) {
	b := newBench(t)
	b.write(t, "x", declare("x", "", ""))
	for _, tt := range []struct {
		walls tool.Walls
		want  tool.Box
	}{
		{tool.Walls{}, tool.Box{Level: tool.BoxNone}},
		{tool.Walls{Read: true}, tool.Box{Level: tool.BoxRead, Program: b.dir}},
	} {
		procs := &refusing{}
		b.Env.Procs, b.Env.Walls = procs, tt.walls
		b.names(t)
		if !reflect.DeepEqual(procs.got.Box, tt.want) || procs.got.Env != nil || procs.got.Stdin != nil {
			t.Errorf("started %+v", procs.got)
		}
	}
	has(t, "warned", b.warned(), "could not be asked to describe itself: refused")
}

func TestGoneFolder(t *testing.T) {
	b := newBench(t)
	b.write(t, "x", declare("x", "", ""))
	x := b.one(t, "x")
	c := b.call(x, "{}", nil)
	c.Cwd = filepath.Join(b.Env.Root, "nowhere")
	if _, err := x.Run(t.Context(), c); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "x was not run") {
		t.Errorf("error %v", err)
	}
}

// TestSorted checks that a program gets the fields of its arguments in order, whatever the model wrote first.
func TestSorted(t *testing.T) {
	b := newBench(t)
	b.write(t, "x", declare("x", "", "cat"))
	res, err := b.run(t, b.one(t, "x"), `{"z":1.50,"a":"<x>","m":{"y":12345678901234567890,"b":[{"d":1,"c":2}]}}`)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := res.Parts.Text(), `{"a":"<x>","m":{"b":[{"c":2,"d":1}],"y":12345678901234567890},"z":1.50}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestChangedFilesAreNamed checks that a program that may write tells which files of the workspace it has changed, also
// where it fails, and that one that only reads looks at none.
func TestChangedFilesAreNamed(t *testing.T) {
	b := newBench(t)
	root := b.Env.Root
	for _, name := range []string{"same", "more", "gone", ".git/config"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755), os.WriteFile(filepath.Join(root, name), []byte(name), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	const body = `cd "$INSPAN_ROOT"; echo x >> more; rm -f gone; mkdir -p sub; echo new > sub/new; echo x >> .git/config; exit 3`
	b.write(t, "x", declare("x", `"effects":{"write":true}`, body))
	res, err := b.run(t, b.one(t, "x"), `{}`)
	if err == nil {
		t.Error("it did not fail")
	}
	var got []string
	for _, f := range res.Files {
		rel, _ := filepath.Rel(root, f.Path)
		got = append(got, rel)
		if !f.Written || f.Partial != (f.Digest != "") || (f.Digest == "") != (rel == "gone") {
			t.Errorf("%+v", f)
		}
	}
	if all := strings.Join(got, " "); all != "gone more sub/new" {
		t.Errorf("named: %s", all)
	}
	b.write(t, "y", declare("y", `"effects":{"read":true}`, `true`))
	if res, err := b.run(t, b.one(t, "y"), `{}`); err != nil || res.Files != nil {
		t.Error(res.Files, err)
	}
}

package oracle

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/inspan/inspan/internal/testkit"
)

// shots is where pictures of the page go, for people to look at; empty means none are taken.
var shots = os.Getenv("PAGE_SHOTS")

// desktop and phone are sizes of windows.
var (
	desktop = [2]int64{1200, 800}
	phone   = [2]int64{390, 844}
)

// chromium is a browser of this machine.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("SKIPPED: there is no Chromium here; install it to test the web page")
	return ""
}

// web is 'inspan web' as it serves a folder, in a process that can be killed.
type web struct {
	t   *testing.T
	bin string // the command
	dir string
	cmd *exec.Cmd
	at  string // address
}

var opensAt = regexp.MustCompile(`the page is at http://([^/]+)/`)

// newWeb starts the command.
func newWeb(t *testing.T) *web {
	t.Helper()
	w := &web{t: t, bin: testkit.Command(t), dir: t.TempDir(), at: "127.0.0.1:0"}
	for _, dir := range []string{"folder", "config"} {
		if err := os.Mkdir(filepath.Join(w.dir, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	w.start()
	t.Cleanup(w.kill)
	return w
}

func (w *web) command(args ...string) *exec.Cmd {
	cmd := exec.Command(w.bin, args...)
	cmd.Env = append(os.Environ(), "INSPAN_CONFIG_DIR="+filepath.Join(w.dir, "config"), "INSPAN_STATE_DIR="+filepath.Join(w.dir, "state"))
	cmd.Dir = filepath.Join(w.dir, "folder")
	return cmd
}

// start serves at the address that was served before, if any was.
func (w *web) start() {
	w.t.Helper()
	w.cmd = w.command("web", "--no-open", "--model", "script", "--listen", w.at)
	stderr, err := w.cmd.StderrPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		if m := opensAt.FindStringSubmatch(lines.Text()); m != nil {
			w.at = m[1]
			go func() { _, _ = io.Copy(io.Discard, stderr) }()
			return
		}
		w.t.Log(lines.Text())
	}
	w.t.Fatal("the page is not served")
}

// kill is kill -9.
func (w *web) kill() {
	_ = w.cmd.Process.Kill()
	_ = w.cmd.Wait()
}

// signIn is a code that signs a browser in.
func (w *web) signIn() string {
	w.t.Helper()
	return w.post("/api/v1/codes", nil)["code"].(string)
}

// token is the owner's.
func (w *web) token() string {
	w.t.Helper()
	token, err := os.ReadFile(filepath.Join(w.dir, "state", "server.token"))
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.TrimSpace(string(token))
}

// post sends something as the owner, and returns the answer.
func (w *web) post(path string, body any) (out map[string]any) {
	w.t.Helper()
	in := io.Reader(http.NoBody)
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			w.t.Fatal(err)
		}
		in = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, "http://"+w.at+path, in)
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+w.token())
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil || res.StatusCode/100 != 2 {
		w.t.Fatalf("POST %s: %s %v %v", path, res.Status, out, err)
	}
	return out
}

// tab is a page in a browser.
type tab struct {
	t   *testing.T
	ctx context.Context
	w   *web
}

// open opens a browser with a window of a size, which is signed in.
func (w *web) open(size [2]int64) *tab {
	w.t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium(w.t)), chromedp.NoSandbox)
	browser, end := chromedp.NewExecAllocator(context.Background(), options...)
	w.t.Cleanup(end)
	ctx, end := chromedp.NewContext(browser)
	p := &tab{t: w.t, ctx: ctx, w: w}
	said := chromedp.Console(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for m, err := range said {
			switch {
			case err != nil:
				return
			case m.IsException(), m.Source == "security":
				p.t.Errorf("the page: %v %v", m, m.Stack)
			}
		}
	}()
	w.t.Cleanup(func() { end(); <-done })
	p.do(chromedp.EmulateViewport(size[0], size[1]), chromedp.Navigate("http://"+w.at+"/#code="+w.signIn()))
	p.see("Board")
	return p
}

// patience is how long the page may take to show something.
const patience = 2 * time.Minute

func (p *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, end := context.WithTimeout(p.ctx, patience)
	defer end()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.fail(err)
	}
}

// ask returns the value of a JavaScript expression, or of its promise.
func ask[T any](p *tab, expression string) T {
	p.t.Helper()
	ctx, end := context.WithTimeout(p.ctx, patience)
	defer end()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.fail(err)
	}
	return value
}

func (p *tab) fail(err error) {
	p.t.Helper()
	p.shot("failed")
	ctx, end := context.WithTimeout(p.ctx, patience)
	defer end()
	text, _ := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText`))
	p.t.Fatalf("%v\n%s", err, text)
}

// when waits until an expression of JavaScript is true.
func (p *tab) when(expression string) {
	p.t.Helper()
	ctx, end := context.WithTimeout(p.ctx, patience)
	defer end()
	every, most := chromedp.WithPollingInterval(50*time.Millisecond), chromedp.WithPollingTimeout(patience)
	_, err := chromedp.Run(ctx, chromedp.Poll[any](expression, every, most))
	if err != nil {
		p.fail(fmt.Errorf("%s: %w", expression, err))
	}
}

// says is an expression that is true if the page shows a text, wherever its lines break.
func says(text string) string {
	return `document.body.innerText.replace(/\s+/g, " ").includes(` + strconv.Quote(text) + ")"
}

// see waits until the page shows texts, and miss until it does not show one.
func (p *tab) see(texts ...string) {
	p.t.Helper()
	for _, text := range texts {
		p.when(says(text))
	}
}

func (p *tab) miss(text string) {
	p.t.Helper()
	p.when("!" + says(text))
}

// press clicks the element whose text begins with a name.
func (p *tab) press(kind, text string) {
	p.t.Helper()
	find := fmt.Sprintf(`[...document.querySelectorAll(%q)].find((e) => e.innerText.trim().startsWith(%q) && !e.disabled)`, kind, text)
	p.when(find + " !== undefined")
	ask[any](p, find+".click()")
}

// say writes a text into a field, and key presses a key where no field is.
func (p *tab) say(field, text string) {
	p.t.Helper()
	p.do(chromedp.SendKeys(chromedp.CSS(field), text))
}

func (p *tab) key(key string) {
	p.t.Helper()
	ask[any](p, "document.activeElement.blur()")
	p.do(chromedp.KeyEvent(key))
}

func (p *tab) path() string {
	p.t.Helper()
	return ask[string](p, "location.pathname")
}

func (p *tab) visit(path string) {
	p.t.Helper()
	p.do(chromedp.Navigate("http://" + p.w.at + path))
}

// scheme has the page look light or dark.
func (p *tab) scheme(name string) {
	p.t.Helper()
	ask[any](p, "document.documentElement.style.colorScheme = "+strconv.Quote(name))
}

// shot takes a picture.
func (p *tab) shot(name string) {
	if shots == "" {
		return
	}
	ctx, end := context.WithTimeout(p.ctx, patience)
	defer end()
	if png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot()); err == nil {
		_ = os.MkdirAll(shots, 0o755)
		_ = os.WriteFile(filepath.Join(shots, name+".png"), png, 0o644)
	}
}

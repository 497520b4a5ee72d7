package command

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/internal/testkit/anthropictest"
	"github.com/inspan/inspan/internal/testkit/ollamatest"
	"github.com/inspan/inspan/llm"
)

// desk is a local server with a small window that refuses prompts that are too long for it, and reads one file after
// the other up to a number.
type desk struct {
	window int // tokens

	mu      sync.Mutex
	reads   int // that are left
	made    int
	longest int // request that was answered, in tokens
	refused int
	command string // that is run in the place of reading
	verdict string // as a judge
}

func (d *desk) answer(_ *http.Request, body []byte) ollamatest.Answer {
	d.mu.Lock()
	defer d.mu.Unlock()
	tokens := len(body) * 2 / 7
	if tokens > d.window {
		d.refused++
		return ollamatest.Answer{Status: http.StatusBadRequest, Message: "the input length exceeds the context length"}
	}
	if d.verdict != "" && strings.Contains(string(body), "You sort tasks") {
		return ollamatest.Answer{Parts: llm.Say(d.verdict), Usage: llm.Usage{Input: 200, Output: 1}}
	}
	d.longest = max(d.longest, tokens)
	if d.reads == 0 || strings.Contains(string(body), "the work can go on without loss") {
		return ollamatest.Answer{Parts: llm.Say("HERON is done")}
	}
	d.reads--
	d.made++
	if d.command != "" {
		args, _ := json.Marshal(map[string]any{"command": fmt.Sprintf("%s %d", d.command, d.made)})
		return ollamatest.Answer{Parts: llm.Parts{llm.Call{ID: fmt.Sprint("c", d.made), Name: "bash", Args: args}}}
	}
	args, _ := json.Marshal(map[string]any{"path": fmt.Sprintf("f%d.txt", d.made)})
	return ollamatest.Answer{Parts: llm.Parts{llm.Call{ID: fmt.Sprint("c", d.made), Name: "read_file", Args: args}}}
}

// private is a home whose router has a small model on the desk and a large one in the cloud, which records its
// requests.
type private struct {
	t    *testing.T
	desk *desk
	dir  string

	settings string // with a place for the window of the desk

	mu    sync.Mutex
	cloud []string
}

func newPrivate(t *testing.T, d *desk) *private {
	t.Helper()
	p := &private{t: t, desk: d, dir: t.TempDir()}
	local := ollamatest.Start(t, &ollamatest.Server{
		Models:  []llm.Info{{Model: "small", Window: d.window}},
		Largest: d.window, Answer: d.answer,
	})
	far := anthropictest.Start(t, &anthropictest.Server{Answer: func(_ *http.Request, body []byte) anthropictest.Answer {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.cloud = append(p.cloud, string(body))
		return anthropictest.Answer{Parts: llm.Say("I am the cloud")}
	}})
	p.settings = fmt.Sprintf("model='router/auto'\n[providers.desk]\nkind='ollama'\nbase_url='%s'\nlocal=true\n[providers.far]\n"+
		"kind='anthropic'\nbase_url='%s'\nkey_command='echo k'\nlocal=false\n"+
		"[providers.desk.models.small]\nwindow=%s\n[providers.far.models.big]\nwindow=200000\n[router]\nprivate=['ACME-[0-9]+']\n"+
		"routes={local='desk/small', cloud='far/big'}\n", local, far, "%d")
	p.shrink(d.window)
	for i := range 40 {
		p.file(fmt.Sprintf("work/f%d.txt", i+1), strings.Repeat(fmt.Sprintf("line of file %d\n", i+1), 400))
	}
	return p
}

// shrink gives the model on the desk another window.
func (p *private) shrink(window int) {
	p.desk.mu.Lock()
	p.desk.window = window
	p.desk.mu.Unlock()
	p.file("config/config.toml", fmt.Sprintf(p.settings, window))
}

func (p *private) file(name, text string) {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func (p *private) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(p.t.Context(), testkit.Command(p.t), args...)
	cmd.Dir = filepath.Join(p.dir, "work")
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + p.dir, "INSPAN_STATE_DIR=" + filepath.Join(p.dir, "state"),
		"INSPAN_CONFIG_DIR=" + filepath.Join(p.dir, "config"),
	}
	return cmd
}

// inspan runs the command, which must succeed.
func (p *private) inspan(args ...string) string {
	p.t.Helper()
	out, code := p.try(args...)
	if code != 0 {
		p.t.Fatalf("inspan %s: exit %d\n%s", args, code, out)
	}
	return out
}

func (p *private) try(args ...string) (out string, code int) {
	p.t.Helper()
	cmd := p.command(args...)
	raw, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		p.t.Fatal(err)
	}
	return string(raw), cmd.ProcessState.ExitCode()
}

// TestPrivateSessionOutgrowsTheDesk checks that a session that only the local model may see continues beyond the window
// of that model: it is cut to fit, and nothing private leaves.
func TestPrivateSessionOutgrowsTheDesk(t *testing.T) {
	d := &desk{window: 24_000, reads: 20}
	p := newPrivate(t, d)
	if out := p.inspan("run", "For ACME-4711: list what is in the files"); !strings.Contains(out, "HERON is done") {
		t.Errorf("the run says %s", out)
	}
	if out := p.inspan("resume", "last", "and what was it that ACME-4711 wanted?"); !strings.Contains(out, "HERON is done") {
		t.Errorf("resume says %s", out)
	}
	if out := p.inspan("sessions", "show", "last", "--events"); !strings.Contains(out, `"kind":"compacted"`) ||
		strings.Contains(out, "no route may answer") {
		t.Errorf("nothing was cut, or somebody was refused: %.3000s", out)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.made != 20 || d.longest < d.window/2 {
		t.Errorf("%d files were read, the longest prompt had %d tokens", d.made, d.longest)
	}
	for _, body := range p.cloud {
		if strings.Contains(body, "ACME-") || strings.Contains(body, "line of file") {
			t.Errorf("the cloud was asked: %.300s", body)
		}
	}
}

// TestPrivateSessionIsTooLong checks that a session which is too long already for all that may see it, can be compacted
// and resumed.
func TestPrivateSessionIsTooLong(t *testing.T) {
	for _, args := range [][]string{{"compact", "last"}, {"resume", "last", "and now?"}} {
		t.Run(args[0], func(t *testing.T) {
			d := &desk{window: 100_000, reads: 12}
			p := newPrivate(t, d)
			p.inspan("run", "For ACME-4711: list what is in the files")
			d.mu.Lock()
			long := d.longest
			d.mu.Unlock()
			p.shrink(16_000)
			p.inspan(args...)
			if out := p.inspan("resume", "last", "once more"); long < 2*d.window || !strings.Contains(out, "HERON is done") || len(p.cloud) > 0 {
				t.Errorf("%d tokens, %d times to the cloud: %s", long, len(p.cloud), out)
			}
		})
	}
}

// TestRoutingFollowsTheTask checks, through the whole command, that a task that continues a plan of the cloud stays
// there, that a run whose commands keep failing moves there and gives the reason why, and that a new easy task
// comes home.
func TestRoutingFollowsTheTask(t *testing.T) {
	d := &desk{window: 100_000}
	p := newPrivate(t, d)
	p.file("work/fails.sh", "exit 3\n")
	if out := p.inspan("run", "Entwirf eine Architektur für den Synchronisationsdienst"); !strings.Contains(out, "I am the cloud") {
		t.Errorf("the plan: %s", out)
	}
	if out := p.inspan("resume", "last", "ja, setz es um"); !strings.Contains(out, "I am the cloud") {
		t.Errorf("what goes on with it: %s", out)
	}
	if out := p.inspan("resume", "last", "Liste die Dateien im Ordner auf"); !strings.Contains(out, "HERON is done") {
		t.Errorf("a new task: %s", out)
	}
	d.mu.Lock()
	d.command, d.reads = "sh ./fails.sh", 12
	d.mu.Unlock()
	out := p.inspan("run", "--mode", "yolo", "Run the script and mend it")
	if !strings.Contains(out, "I am the cloud") || !strings.Contains(out, "taken over from local: 3 calls or checks failed since a check succeeded") {
		t.Errorf("commands that fail: %s", out)
	}
}

// TestJudgeOfTheSettings checks that a small model named by the settings decides, and that its cost is listed under its
// name.
func TestJudgeOfTheSettings(t *testing.T) {
	d := &desk{window: 100_000, verdict: "9"}
	p := newPrivate(t, d)
	p.settings = strings.Replace(p.settings, "[router]\n",
		"[providers.desk.models.judge]\nprice={input=1000.0, output=1000.0}\n[router]\njudge='desk/judge'\n", 1)
	p.shrink(100_000)
	if out := p.inspan("run", "Bring me something nice"); !strings.Contains(out, "I am the cloud") ||
		!strings.Contains(out, "the judge calls the task hard") {
		t.Errorf("the run: %s", out)
	}
	if out := p.inspan("cost", "--by", "model"); !strings.Contains(out, "desk/judge") {
		t.Errorf("the cost: %s", out)
	}
}

// TestRefusedAnswersCount checks that an answer which a check has refused is paid for: in the cost of the session, in
// its limit and in the cost of the day.
func TestRefusedAnswersCount(t *testing.T) {
	p := newPrivate(t, &desk{window: 100_000})
	p.settings = strings.Replace(p.settings, "[providers.far.models.big]\n",
		"[providers.far.models.big]\nprice={input=1000.0, output=1000.0}\n", 1) +
		"[[check]]\nname='no clouds'\non='output'\npattern='cloud'\naction='deny'\n"
	p.settings = strings.Replace(p.settings, "model='router/auto'\n", "model='far/big'\nmax_cost_per_day=0.5\n", 1)
	p.shrink(100_000)
	out, code := p.try("run", "hello")
	if code != 12 || strings.Contains(out, "I am the cloud") {
		t.Fatalf("exit %d: %s", code, out)
	}
	if out := p.inspan("cost", "--by", "model"); !strings.Contains(out, "far/big") || strings.Contains(out, " 0.0000") {
		t.Errorf("the cost: %s", out)
	}
	if out, code := p.try("run", "again"); code != 11 || len(p.cloud) != 1 {
		t.Errorf("beyond the day's cap: exit %d, %d requests: %s", code, len(p.cloud), out)
	}
}

// TestDayCapOfManyProcesses has six runs at once with money for two: at most one request exceeds the cap, and every
// refusal gives the reason why.
func TestDayCapOfManyProcesses(t *testing.T) {
	t.Parallel()
	const runs, most = 6, 2
	arrived, release := make(chan struct{}, runs), make(chan struct{})
	far := anthropictest.Start(t, &anthropictest.Server{Answer: func(*http.Request, []byte) anthropictest.Answer {
		arrived <- struct{}{}
		<-release
		return anthropictest.Answer{Parts: llm.Say("paid"), Usage: llm.Usage{Output: 1000}}
	}})
	p := newPrivate(t, &desk{window: 1})
	p.file("config/config.toml",
		fmt.Sprintf("model='far/big'\nmax_cost_per_day=%d.0\n[providers.far]\nkind='anthropic'\nbase_url='%s'\nkey_command='echo k'\n"+
			"[providers.far.models.big]\nwindow=200000\nmax_output=1000\nprice={input=0.0, output=1000.0}\n", most, far))
	testkit.Command(t)
	ended := make(chan int, runs)
	waits := make(chan struct{}, runs)
	for range runs {
		go func() {
			cmd := p.command("run", "hello")
			told, err := cmd.StderrPipe()
			if err == nil {
				err = cmd.Start()
			}
			if err != nil {
				t.Error(err)
			}
			said := false
			for lines := bufio.NewScanner(told); lines.Scan(); {
				if !said && strings.Contains(lines.Text(), "waiting for them") {
					said = true
					waits <- struct{}{}
				}
			}
			_ = cmd.Wait()
			ended <- cmd.ProcessState.ExitCode()
		}()
	}
	for range most {
		<-arrived
	}
	for range runs - most {
		select {
		case <-waits:
		case <-arrived:
			t.Fatal("a request went out beyond the cap")
		}
	}
	close(release)
	codes := map[int]int{}
	for range runs {
		codes[<-ended]++
	}
	if codes[0] > most+1 || codes[0]+codes[11] != runs {
		t.Errorf("the runs ended with %v", codes)
	}
}

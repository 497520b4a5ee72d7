package bench

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/internal/world/sandbox/processes"
	"github.com/inspan/inspan/tool"
)

// stage is where harnesses act, one at a time: their folder, and their model.
type stage struct {
	dir string
	env tool.Env

	mu  sync.Mutex
	act *act // nil means no harness acts
}

// moment is when a harness is killed.
type moment int

const (
	killNever    moment = iota
	killAsked           // after a request to the model
	killAnswered        // in the middle of its response
	killCalled          // in the middle of a command, after its effect
)

// act is one run of a harness. The stage's lock guards the changing fields.
type act struct {
	dir   string // workspace
	nonce string // in the output of all its commands
	turns int    // commands that the model wants
	kill  moment

	proc  tool.Process
	ready chan struct{} // closed when proc is set, or never will be
	pid   int
	out   keep.Tail

	began, first, answered time.Time
	gaps                   []float64 // ms from a response to the next request
	peak                   float64   // MB
	asked                  int       // commands so far
	killed                 bool
	got                    map[string]bool // results found in requests
	seen                   map[string]bool // those of the first request
}

// perform runs a harness to its end; the parameter what selects its arguments.
func (st *stage) perform(ctx context.Context, s *subject, a *act, what string) error {
	most := time.Minute + time.Duration(a.turns)*time.Second/2
	ctx, stop := context.WithTimeout(ctx, most)
	defer stop()
	st.on(a)
	defer st.on(nil)
	a.began = time.Now()
	proc, err := st.env.Procs.Start(ctx, tool.Command{
		Args: append([]string{"sh", "-c", `echo $$ >&3; exec "$@" 3>&-`, "sh"}, s.command(what, benchTask)...),
		Dir:  a.dir, Env: s.vars, Output: &a.out, Report: pidOf{st, a},
	})
	a.proc = proc
	close(a.ready)
	if err != nil {
		return err
	}
	var killer sync.WaitGroup
	if a.kill == killCalled {
		killer.Go(func() { a.killAfter(ctx) })
	}
	code, err := proc.Wait()
	proc.Kill() // remaining child processes
	late := ctx.Err() != nil
	stop()
	killer.Wait()
	st.mu.Lock()
	defer st.mu.Unlock()
	last := words.OneLine(strings.TrimSpace(a.out.Text()), 200)
	switch {
	case err != nil:
		return err
	case late:
		return fmt.Errorf("it took longer than %s, for %d of %d commands: %s", most, len(a.got), a.turns, last)
	case a.first.IsZero():
		return fmt.Errorf("it ended with code %d before its first request: %s", code, last)
	case a.kill != killNever && !a.killed:
		return fmt.Errorf("it ended with code %d before it was killed: %s", code, last)
	case a.kill == killNever && len(a.got) < a.turns:
		return fmt.Errorf("it ended with code %d after %d of %d commands: %s", code, len(a.got), a.turns, last)
	}
	return nil
}

func (st *stage) on(a *act) {
	st.mu.Lock()
	st.act = a
	st.mu.Unlock()
}

// pidOf reads the id of a process, which its shell prints before it becomes the harness.
type pidOf struct {
	st *stage
	a  *act
}

func (p pidOf) Write(data []byte) (int, error) {
	p.st.mu.Lock()
	defer p.st.mu.Unlock()
	p.a.pid, _ = strconv.Atoi(strings.TrimSpace(string(data))) // 0 means its memory is unknown
	return len(data), nil
}

const mostAsked = 64 << 20 // bytes of a request

// ServeHTTP is the model.
func (st *stage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	came := time.Now()
	body, err := io.ReadAll(io.LimitReader(r.Body, mostAsked))
	wire := wireOf(r.URL.Path)
	if err != nil || r.Method != http.MethodPost || wire == "" {
		beside(w, r)
		return
	}
	q, err := readQuestion(wire, r.URL.Path, body)
	if err != nil {
		http.Error(w, `{"error":{"message":"the request is not JSON"}}`, http.StatusBadRequest)
		return
	}
	st.mu.Lock()
	a := st.act
	st.mu.Unlock()
	if a == nil || q.shell == nil {
		q.write(w, q.beside(), nil)
		return
	}
	<-a.ready
	st.mu.Lock()
	s, now := a.answer(q, came, body)
	st.mu.Unlock()
	switch {
	case now && a.kill == killAsked:
		a.proc.Kill()
		return
	case now && a.kill == killAnswered:
		q.write(w, s, a.proc.Kill)
		return
	}
	q.write(w, s, nil)
	st.mu.Lock()
	a.answered = time.Now()
	st.mu.Unlock()
}

// beside responds to requests that are not for a model.
func beside(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case strings.HasSuffix(r.URL.Path, "/count_tokens"), strings.HasSuffix(r.URL.Path, ":countTokens"):
		_, _ = io.WriteString(w, `{"input_tokens":1000,"totalTokens":1000}`)
	case strings.HasSuffix(r.URL.Path, "/models"):
		_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"`+benchModel+`","object":"model"}]}`)
	default:
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"error":{"message":"there is no such thing here"}}`)
	}
}

// answer returns the model's response to a request; now says that the harness must be killed.
func (a *act) answer(q question, came time.Time, body []byte) (s said, now bool) {
	marks := a.marks(body)
	if a.first.IsZero() {
		a.first, a.seen = came, marks
	} else if !a.answered.IsZero() {
		a.gaps = append(a.gaps, millis(came.Sub(a.answered)))
	}
	for m := range marks {
		a.got[m] = true
	}
	a.peak = max(a.peak, memoryOf(a.pid))
	if a.asked == a.turns {
		return said{text: "Done.", id: "done"}, false
	}
	a.asked++
	now = a.kill != killNever && a.asked == killedTurns
	a.killed = a.killed || now
	pause := ""
	if now && a.kill == killCalled {
		pause = "sleep 5; "
	}
	// The output does not occur in the command, so that results can be distinguished from calls.
	command := fmt.Sprintf("m=%d; echo $m-%s >> %s; %[4]secho $m-%[2]s", 1000+a.asked, a.nonce, effectsFile, pause)
	return said{tool: q.shell.Name, id: fmt.Sprintf("call_%s%d", a.nonce, a.asked), args: q.shell.args(command)}, now
}

const effectsFile = "effects.txt"

// marks returns the results in a request.
func (a *act) marks(body []byte) map[string]bool {
	out := map[string]bool{}
	for _, m := range regexp.MustCompile(`\d+-`+a.nonce).FindAll(body, -1) {
		out[string(m)] = true
	}
	return out
}

// lacks returns how many results of another act are missing in the first request of this one.
func (a *act) lacks(of *act) (n int) {
	for m := range of.got {
		if !a.seen[m] {
			n++
		}
	}
	return n
}

// effects returns the effects of the commands in the workspace, in order.
func (a *act) effects() ([]string, error) {
	data, err := keep.Read(filepath.Join(a.dir, effectsFile))
	return strings.Fields(string(data)), err
}

// killAfter kills the harness once its last command has had its effect.
func (a *act) killAfter(ctx context.Context) {
	mark := fmt.Sprintf("%d-%s", 1000+killedTurns, a.nonce)
	for keep.Sleep(ctx, time.Millisecond) == nil {
		if list, err := a.effects(); err == nil && slices.Contains(list, mark) {
			a.proc.Kill()
			return
		}
	}
}

// memoryOf returns the memory of a process and its descendants in MB, with each shared page divided evenly; 0
// if unknown.
func memoryOf(pid int) (sum float64) {
	if pid == 0 {
		return 0
	}
	for _, one := range append(processes.Descendants(pid), pid) {
		raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", one)) // empty if it has ended
		_, rest, _ := strings.Cut(string(raw), "\nPss:")
		if fields := strings.Fields(rest); len(fields) > 0 {
			kb, _ := strconv.ParseFloat(fields[0], 64)
			sum += kb / 1024
		}
	}
	return sum
}

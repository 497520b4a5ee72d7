package script

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"modernc.org/quickjs"

	"github.com/inspan/inspan/internal/world/sandbox/walls"
)

//go:embed prelude.js
var prelude string

const (
	reportFD = 3       // the process writes its messages there
	maxDepth = 2000    // nested calls in JavaScript
	mostText = 8 << 20 // bytes of the arguments of one call, of one printed line, and of the result
)

// Child must be called first by every program that is the Self of an [Engine], tests included. If this process
// was started to run a script, Child runs it, and the caller must exit with the code. Otherwise it does
// nothing.
func Child() (ran bool, code int) {
	if len(os.Args) != 2 || os.Args[1] != program {
		return false, 0
	}
	report := os.NewFile(reportFD, "report")
	if _, err := report.Stat(); err != nil {
		fmt.Fprintln(os.Stderr, "this process runs scripts for inspan; it is of no use alone")
		return true, 2
	}
	if err := walls.Seal(); err != nil {
		fmt.Fprintln(os.Stderr, "close the engine of scripts off:", err)
		return true, 1
	}
	if err := serve(os.Stdin, report); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return true, 1
	}
	return true, 0
}

// machine runs one script.
type machine struct {
	vm     *quickjs.VM
	settle quickjs.Value // function of prelude.js
	in     *json.Decoder
	out    *bufio.Writer
	busy   time.Duration // computing time left
	finish bool          // a failed script still waits for open calls
	open   int           // unsettled calls
	held   bool          // one of them waits for a person
	end    *ending       // of the script itself; calls may still be open

	programs []string      // that have not begun
	follow   quickjs.Value // function of prelude.js that waits for the end of a program
	next     bool          // the last program to begin has ended
}

// asyncGlobal is the flag of the engine for global code that may use await.
const asyncGlobal = 1 << 7

func serve(in io.Reader, out io.Writer) error {
	m := &machine{in: json.NewDecoder(bufio.NewReader(in)), out: bufio.NewWriter(out)}
	var o order
	if err := m.in.Decode(&o); err != nil {
		return fmt.Errorf("read the script: %w", err)
	}
	var err error
	if m.vm, err = quickjs.NewVM(); err != nil {
		return fmt.Errorf("make the engine: %w", err)
	}
	limit(m.vm, o.Memory)
	m.busy, m.finish = time.Duration(o.Busy)*time.Millisecond, o.Finish
	if err := m.begin(o); err != nil {
		m.over(ending{Error: err.Error()})
	}
	for {
		if err := m.turn(); err != nil {
			m.over(ending{Error: err.Error()})
		}
		if done, err := m.rest(); done || err != nil {
			return err
		}
		var r reply
		if err := m.in.Decode(&r); err != nil {
			return fmt.Errorf("read what a call brought: %w", err)
		}
		if err := m.answer(r); err != nil {
			m.over(ending{Error: err.Error()})
		}
	}
}

// limit sets the limits for the whole script.
func limit(vm *quickjs.VM, memory int) {
	vm.SetMemoryLimit(uintptr(memory))
	vm.SetMaxStackSize(maxDepth)
	vm.SetCanBlock(false)
}

// rest reports the state of the resting script, and returns whether it is done.
func (m *machine) rest() (done bool, err error) {
	stuck := m.open == 0
	switch {
	case m.end != nil && (stuck || m.end.Held || m.end.Error != "" && (!m.finish || m.busy <= 0)):
		done = true
	case stuck && m.held:
		m.end, done = &ending{Held: true}, true
	case stuck:
		m.end, done = &ending{Error: "the script waits for something that never comes: no call is open"}, true
	}
	if done {
		if m.held { // its result depends on results that do not exist yet
			m.end = &ending{Held: true}
		}
		m.tell(message{End: m.end})
	} else {
		m.tell(message{Rest: &m.open})
	}
	return done, m.out.Flush()
}

// over records how the script ended, the first time.
func (m *machine) over(e ending) {
	if m.end == nil {
		m.end = &e
	}
}

// begin compiles the code and begins the script.
func (m *machine) begin(o order) error {
	if err := m.vm.RegisterHostFunc("send", m.send); err != nil {
		return err
	}
	// the script can't reach the function that sends
	start, err := m.eval(`(prelude => { const send = globalThis.send; delete globalThis.send; return (now, seed) => {
		const parts = prelude(send, now, seed);
		let ended;
		return {
			settle: parts.settle,
			start: (setup, input, main) => { ended = setup(parts.host, input); return main && parts.start(main); },
			follow: (running) => parts.follow(running, ended),
		};
	}})` + "(" + prelude + ")")
	if err != nil {
		return err
	}
	parts, err := start.CallValue(quickjs.UndefinedValue, float64(o.Now), o.Seed)
	if err != nil {
		return err
	}
	var main any // null for JavaScript
	if len(o.Programs) == 0 {
		if main, err = m.eval("(async function script() {" + o.Code + "\n})"); err != nil {
			return syntax(err)
		}
	}
	setup, err := m.eval(o.Setup)
	if err != nil {
		return fmt.Errorf("the setup of the script: %w", err)
	}
	if m.settle, err = m.part(parts, "settle"); err != nil {
		return err
	}
	if m.follow, err = m.part(parts, "follow"); err != nil {
		return err
	}
	begin, err := m.part(parts, "start")
	if err != nil {
		return err
	}
	m.programs, m.next = o.Programs, len(o.Programs) > 0
	return m.within(func() error {
		_, err := begin.CallValue(quickjs.UndefinedValue, setup, o.Input, main)
		return err
	})
}

func (m *machine) eval(code string) (v quickjs.Value, err error) {
	err = m.within(func() (err error) { v, err = m.vm.EvalValue(code, quickjs.EvalGlobal); return err })
	return v, err
}

func (m *machine) part(of quickjs.Value, name string) (quickjs.Value, error) {
	atom, err := m.vm.NewAtom(name)
	if err != nil {
		return quickjs.Value{}, err
	}
	return m.vm.GetPropertyValue(of, atom)
}

// syntax returns the place of a syntax error. The engine counts lines from 1, as people do.
func syntax(err error) error {
	var e *quickjs.Error
	if errors.As(err, &e) && e.LineNumber > 0 {
		return fmt.Errorf("line %d: %w", e.LineNumber, err)
	}
	return err
}

// turn runs everything that is ready.
func (m *machine) turn() error {
	for {
		ran := 0
		err := m.within(func() (err error) { ran, err = m.vm.ExecutePendingJobs(); return err })
		if spent(err) || m.held && m.end != nil {
			return err
		}
		if ran > 0 {
			continue
		}
		if !m.next || m.open > 0 || m.end != nil {
			return nil
		}
		if err := m.proceed(); err != nil {
			return err
		}
	}
}

// proceed begins the next program, or ends the script.
func (m *machine) proceed() error {
	if m.next = false; len(m.programs) == 0 {
		m.over(ending{Value: json.RawMessage("null")})
		return nil
	}
	code := m.programs[0]
	m.programs = m.programs[1:]
	return m.within(func() error {
		running, err := m.vm.EvalValue(code, quickjs.EvalGlobal|asyncGlobal)
		if err != nil {
			return syntax(err)
		}
		_, err = m.follow.CallValue(quickjs.UndefinedValue, running)
		return err
	})
}

// answer settles a call.
func (m *machine) answer(r reply) error {
	m.open--
	m.held = m.held || r.How == held
	return m.within(func() error {
		_, err := m.settle.Call(quickjs.UndefinedValue, r.ID, int(r.How), string(r.Value))
		return err
	})
}

var errBusy = errors.New("the script has computed for as long as it may")

// within calls f with the rest of the computing time as its limit.
func (m *machine) within(f func() error) error {
	if m.busy <= 0 {
		return errBusy
	}
	began := time.Now()
	if err := m.vm.SetEvalTimeout(m.busy); err != nil {
		return err
	}
	err := f()
	if m.busy -= time.Since(began); m.busy <= 0 {
		return errBusy
	}
	return err
}

// spent reports whether no more code may run.
func spent(err error) bool {
	var e *quickjs.Error
	return errors.Is(err, errBusy) || errors.As(err, &e) && e.Name == "InternalError"
}

// send is the function that JavaScript uses to reach the process.
func (m *machine) send(args []any) (any, error) {
	texts := make([]string, len(args))
	for i, a := range args {
		switch a := a.(type) {
		case string:
			texts[i] = a
		case int:
			texts[i] = strconv.Itoa(a)
		}
		if len(texts[i]) > mostText {
			return nil, fmt.Errorf("that is %d bytes at once; at most %d can leave a script", len(texts[i]), mostText)
		}
	}
	switch kind := texts[0]; {
	case kind == "call" && len(texts) == 4:
		id, err := strconv.Atoi(texts[1])
		if err != nil {
			return nil, err
		}
		m.open++
		m.tell(message{Call: &asked{ID: id, Name: texts[2], Args: json.RawMessage(texts[3])}})
	case kind == "print" && len(texts) == 2:
		m.tell(message{Print: &texts[1]})
	case kind == "tell" && len(texts) == 3:
		m.tell(message{Tell: &hint{texts[1], texts[2]}})
	case kind == "done" && len(texts) == 2:
		m.over(ending{Value: json.RawMessage(texts[1])})
	case kind == "failed" && len(texts) == 2:
		m.over(ending{Error: tidy(texts[1])})
	case kind == "next":
		m.next = true
	case kind == "touched":
		m.over(ending{Held: true})
		m.vm.Interrupt()
	}
	return nil, nil
}

// tell writes a message, which is sent when the script rests.
func (m *machine) tell(msg message) {
	raw, err := line(msg)
	if err != nil {
		raw, _ = line(message{End: &ending{Error: err.Error()}})
	}
	m.out.Write(raw) //nolint:errcheck // Flush reports it
}

// tidy reduces a stack to the line of the script that it comes from.
func tidy(text string) string {
	what, stack, _ := strings.Cut(text, "\n")
	if at := regexp.MustCompile(`at (?:script|<eval>) \(<eval>:(\d+)`).FindStringSubmatch(stack); at != nil {
		return "line " + at[1] + ": " + what
	}
	return what
}

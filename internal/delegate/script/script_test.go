package script_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/delegate/script"
	"github.com/inspan/inspan/internal/kernel/hold"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/internal/world/sandbox"
)

func TestMain(m *testing.M) {
	if ran, code := sandbox.Keeper(); ran {
		os.Exit(code)
	}
	if ran, code := script.Child(); ran {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

const setup = `(host, input) => { globalThis.call = (name, args) => host.call(name, args); globalThis.input = input; }`

// echo returns its arguments.
func echo(_ context.Context, name string, args json.RawMessage) func() script.Answer {
	return func() script.Answer { return script.Answer{Value: map[string]any{"name": name, "args": args}} }
}

func run(t testing.TB, s script.Script) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	if s.Setup == "" {
		s.Setup = setup
	}
	if s.Call == nil {
		s.Call = echo
	}
	value, err := script.Engine{Self: sandbox.Self(), Open: true}.Run(ctx, s)
	return string(value), err
}

func TestScripts(t *testing.T) {
	for name, c := range map[string]struct{ code, want, err string }{
		"value":        {code: `return {a: [1, "x", null]}`, want: `{"a":[1,"x",null]}`},
		"nothing":      {code: ``, want: `null`},
		"call":         {code: `return (await call("x", {a: 1})).args.a`, want: `1`},
		"input":        {code: `return input`, want: `{"in":true}`},
		"side by side": {code: `return (await Promise.all([1, 2, 3].map(i => call("x", {i})))).map(r => r.args.i)`, want: `[1,2,3]`},
		"time stands still": {
			code: `return [Date.now(), new Date().getTime(), +new Date(7), typeof Date(), new Date(0).constructor === Date]`,
			want: `[5,5,7,"string",true]`,
		},
		"a subclass": {code: `class D extends Date {}; return [new D() instanceof D, new D().getTime()]`, want: `[true,5]`},
		"no collector": {
			code: `return [typeof WeakRef, typeof SharedArrayBuffer, typeof Atomics, typeof FinalizationRegistry]`,
			want: `["undefined","undefined","undefined","undefined"]`,
		},
		"no way out": {
			code: `return [typeof send, typeof std, typeof os, typeof require, typeof process, typeof setTimeout, typeof fetch]`,
			want: `["undefined","undefined","undefined","undefined","undefined","undefined","undefined"]`,
		},
		"throws":                  {code: "let x = 1\n\nx.foo.bar()", err: "line 3: TypeError: cannot read property 'bar' of undefined"},
		"throws what is no error": {code: `throw "no"`, err: "the script has thrown no"},
		"syntax":                  {code: "let x = 1;\nlet y = ;", err: "line 2: SyntaxError"},
		"never":                   {code: `await new Promise(() => {})`, err: "never comes"},
		"for ever":                {code: `while (true);`, err: "computed for as long as it may"},
		"for ever, in turns":      {code: `for (;;) await null`, err: "computed for as long as it may"},
		"memory":                  {code: `const a = []; for (;;) a.push("x".repeat(1e6) + a.length)`, err: "out of memory"},
		"stack":                   {code: `const f = () => f() + 1; f()`, err: "stack overflow"},
		"too many calls":          {code: `for (let i = 0; ; i++) await call("x")`, err: "more than 50 calls"},
		"no JSON":                 {code: `return 1n`, err: "BigInt"},
		"no arguments":            {code: `await call("x", () => 1)`, err: "arguments must be an object"},
		"module":                  {code: `await import("os")`, err: "could not load module"},
	} {
		t.Run(name, func(t *testing.T) {
			busy := testkit.Patience // on a busy machine the end of memory takes its time
			if strings.Contains(c.err, "for as long as it may") {
				busy = 2 * time.Second
			}
			got, err := run(t, script.Script{
				Code: c.code, Now: time.UnixMilli(5), Input: json.RawMessage(`{"in":true}`), Limits: script.Limits{Busy: busy, Calls: 50},
			})
			var own *script.Error
			switch {
			case c.err == "" && err != nil:
				t.Fatal(err)
			case c.err != "" && (!errors.As(err, &own) || !strings.Contains(err.Error(), c.err)):
				t.Fatalf("got %q and the error %v, want %q", got, err, c.err)
			case got != c.want:
				t.Fatalf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestChanceFollowsTheSeed(t *testing.T) {
	s := script.Script{Code: `return [Math.random(), Math.random()]`, Seed: "a"}
	first, err := run(t, s)
	again, err2 := run(t, s)
	s.Seed = "b"
	other, err3 := run(t, s)
	if err := errors.Join(err, err2, err3); err != nil {
		t.Fatal(err)
	}
	if first != again || first == other {
		t.Errorf("%s, again %s, with another seed %s", first, again, other)
	}
}

// TestAnswersComeInOrder has the answers come backwards: the script must see them as they are numbered.
func TestAnswersComeInOrder(t *testing.T) {
	const n = 20
	var all sync.WaitGroup
	all.Add(n)
	turns := make([]chan struct{}, n+1)
	for i := range turns {
		turns[i] = make(chan struct{})
	}
	close(turns[n])
	made := 0
	got, err := run(t, script.Script{
		Code: `const seen = [];
			await Promise.all([...Array(20).keys()].map(i => call("x", {i}).then(r => seen.push(r))));
			return seen`,
		Call: func(context.Context, string, json.RawMessage) func() script.Answer {
			i := made
			made++
			return func() script.Answer {
				all.Done()
				all.Wait()
				<-turns[i+1] // the last one first
				defer close(turns[i])
				return script.Answer{Value: i, Nth: i + 1}
			}
		},
	})
	if want := "[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19]"; err != nil || got != want {
		t.Errorf("got %s and %v", got, err)
	}
}

// TestHeld has calls wait for a person: the script continues until it looks at a missing result.
func TestHeld(t *testing.T) {
	for name, c := range map[string]struct {
		code string
		want []string // calls that are asked for
	}{
		"a loop":               {`for (const i of [1, 2, 3]) await call("write", {i})`, []string{"write", "write", "write"}},
		"side by side":         {`await Promise.all([call("write"), call("write")]); await call("write")`, []string{"write", "write", "write"}},
		"it looks":             {`for (const i of [1, 2, 3]) if ((await call("write", {i})).name) continue`, []string{"write"}},
		"it looks and catches": {`for (const i of [1, 2, 3]) try { (await call("write", {i})).name } catch { await call("bad") }`, []string{"write"}},
		"it prints":            {`print(await call("write")); await call("bad")`, []string{"write"}},
		"it returns":           {`return [await call("write")]`, []string{"write"}},
		"it reads on":          {`await call("write"); const r = await call("read"); await call(r.name + "s")`, []string{"write", "read", "reads"}},
		"it fails":             {`await call("write"); throw new Error("no")`, []string{"write"}},
		"not awaited":          {`call("write"); return 1`, []string{"write"}},
	} {
		t.Run(name, func(t *testing.T) {
			var calls []string
			_, err := run(t, script.Script{Code: c.code, Call: func(ctx context.Context, name string, args json.RawMessage) func() script.Answer {
				calls = append(calls, name)
				if name == "write" {
					return func() script.Answer { return script.Answer{Held: true} }
				}
				return echo(ctx, name, args)
			}})
			if !errors.Is(err, script.ErrHeld) || !slices.Equal(calls, c.want) {
				t.Errorf("%v with the calls %v, want %v", err, calls, c.want)
			}
		})
	}
}

func TestWhatNobodyAwaits(t *testing.T) {
	var printed strings.Builder
	_, err := run(t, script.Script{
		Code:  `call("x"); print("first"); return 1`,
		Print: func(text string) { fmt.Fprintln(&printed, text) },
		Call: func(context.Context, string, json.RawMessage) func() script.Answer {
			return func() script.Answer { return script.Answer{Err: errors.New("the disk is full")} }
		},
	})
	if want := "first\nnot awaited, and failed: Error: the disk is full\n"; err != nil || printed.String() != want {
		t.Errorf("%v, printed %q", err, printed.String())
	}
}

func TestScriptEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("enough")
	hangs := func(ctx context.Context, _ string, _ json.RawMessage) func() script.Answer {
		return func() script.Answer {
			cancel(stop)
			<-ctx.Done()
			return script.Answer{}
		}
	}
	_, err := script.Engine{Self: sandbox.Self(), Open: true}.Run(ctx, script.Script{
		Code: `await call("x"); for (;;);`, Setup: setup, Call: hangs,
	})
	if !errors.Is(err, stop) {
		t.Error(err)
	}
}

// TestFinish has a call fail next to one that continues: the rest of that one's work is still done.
func TestFinish(t *testing.T) {
	for _, finish := range []bool{true, false} {
		var calls []string
		over := make(chan struct{})
		_, err := run(t, script.Script{
			Finish: finish,
			Code:   `const b = async () => { await call("slow"); await call("then") }; await Promise.all([call("bad"), b()])`,
			Call: func(ctx context.Context, name string, _ json.RawMessage) func() script.Answer {
				calls = append(calls, name)
				return func() script.Answer {
					switch name {
					case "bad":
						defer close(over)
						return script.Answer{Err: errors.New("no")}
					case "slow":
						<-over
						if !finish {
							<-ctx.Done()
						}
					}
					return script.Answer{}
				}
			},
		})
		if err == nil || !strings.Contains(err.Error(), "Error: no") || slices.Contains(calls, "then") != finish {
			t.Errorf("finish %v: %v, called %v", finish, err, calls)
		}
	}
}

// TestNever has a call that has no end: all that does not wait for it is done, then the script ends.
func TestNever(t *testing.T) {
	var calls []string
	_, err := run(t, script.Script{
		Code: `const a = async () => { await call("never"); await call("bad") };
			const b = async () => { await call("x"); await call("y") };
			await Promise.all([a(), b()])`,
		Call: func(_ context.Context, name string, _ json.RawMessage) func() script.Answer {
			calls = append(calls, name)
			return func() script.Answer { return script.Answer{Never: name == "never"} }
		},
	})
	if !errors.Is(err, script.ErrHeld) || !slices.Equal(calls, []string{"never", "x", "y"}) {
		t.Errorf("%v, called %v", err, calls)
	}
}

// TestDiverged gives a script an answer that comes after one which it does not ask for.
func TestDiverged(t *testing.T) {
	second := func(context.Context, string, json.RawMessage) func() script.Answer {
		return func() script.Answer { return script.Answer{Nth: 2} }
	}
	_, err := run(t, script.Script{Code: `await call("second")`, Call: second})
	if !errors.Is(err, hold.ErrDiverged) {
		t.Error(err)
	}
}

// BenchmarkStart is a script that does nothing: its process, its engine and their end.
func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		if _, err := run(b, script.Script{Code: `return 1`}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCalls is one call of a script, of a thousand one after the other.
func BenchmarkCalls(b *testing.B) {
	const n = 1000
	for b.Loop() {
		if _, err := run(b, script.Script{Code: `for (let i = 0; i < 1000; i++) await call("x", {i})`, Limits: script.Limits{Calls: n}}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/n, "µs/call")
}

// TestNoProgramRunsScripts checks that a program which names none that runs scripts isn't started as one.
func TestNoProgramRunsScripts(t *testing.T) {
	_, err := script.Engine{Open: true}.Run(t.Context(), script.Script{Code: `return 1`})
	if err == nil || !strings.Contains(err.Error(), "it names none that runs them") {
		t.Error(err)
	}
}

// TestPrograms checks that programs share their global names, in the order of their calls, and that one that fails ends
// the script.
func TestPrograms(t *testing.T) {
	programs := []string{
		"const a = await call('x', {n: 1}); let b = 2; var c = 3; function d() { return b + c } e = 5; class F {}",
		"b += a.args.n; call('x', {late: true}).then(r => { late = r.args.late })",
		"print(typeof F, d(), e, late)",
	}
	for name, c := range map[string]struct{ add, err string }{
		"well":         {"", ""},
		"twice":        {"const a = 1", "SyntaxError: redeclaration of 'a'"},
		"throws":       {"\nawait call('x');\nnull.x", "line 3: TypeError: cannot read property 'x' of null"},
		"syntax":       {"\nlet y = ;", "line 2: SyntaxError"},
		"never":        {"await new Promise(() => {})", "never comes"},
		"for ever":     {"for (;;) await null", "computed for as long as it may"},
		"no way out":   {"print(typeof send, typeof std, typeof follow); send('done', '1')", "'send' is not defined"},
		"its own void": {"return 1", "line 1: SyntaxError"},
	} {
		t.Run(name, func(t *testing.T) {
			var printed []string
			ends := 0
			list := programs
			if c.add != "" {
				list = append(list[:len(list):len(list)], c.add)
			}
			got, err := run(t, script.Script{
				Programs: list, Print: func(text string) { printed = append(printed, text) },
				Setup:  `(host, input) => { globalThis.call = (name, args) => host.call(name, args); return () => host.tell('ended', '') }`,
				Tell:   func(string, string) error { ends++; return nil },
				Limits: script.Limits{Busy: 2 * time.Second},
			})
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("%v, want %s", err, c.err)
				}
			} else if err != nil || got != "null" {
				t.Errorf("%s, %v", got, err)
			}
			if len(printed) == 0 || printed[0] != "function 6 5 true" || ends != 3 {
				t.Errorf("printed %q, %d ended", printed, ends)
			}
		})
	}
}

// TestRepliesAfterTheEnd checks that a script that fails ends, even while results of its other calls come.
func TestRepliesAfterTheEnd(t *testing.T) {
	big := strings.Repeat("x", 20_000)
	for range 10 {
		_, err := run(t, script.Script{
			Code: `await Promise.all([...Array(100).keys()].map(i => call("x", {i})))`, Limits: script.Limits{Calls: 200},
			Call: func(_ context.Context, _ string, args json.RawMessage) func() script.Answer {
				return func() script.Answer {
					if string(args) == `{"i":3}` {
						return script.Answer{Err: errors.New("the third fails")}
					}
					return script.Answer{Value: big}
				}
			},
		})
		if err == nil || !strings.Contains(err.Error(), "the third fails") {
			t.Fatal(err)
		}
	}
}

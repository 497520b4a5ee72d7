package script_test

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/delegate/script"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/tool"
)

//go:embed testdata/hostile.txt
var hostile string

// mostMemory is how much a process of a script may ever have, in bytes: the 64 MB of its values, and the
// program around it.
const mostMemory = 250 << 20

// TestHostileScripts runs scripts that mean harm. Each costs its own process and nothing else, within its
// limits, and reaches nothing but the calls that it asks for.
func TestHostileScripts(t *testing.T) {
	if testkit.Race {
		t.Skip("with the race detector the engine computes ten times as long, and meets other limits first")
	}
	cases := strings.Split(hostile, "\n== ")[1:]
	if len(cases) < 60 {
		t.Fatalf("only %d scripts", len(cases))
	}
	for i, text := range cases {
		if testing.Short() && i%4 != 0 {
			continue
		}
		head, code, _ := strings.Cut(text, "\n")
		name, wants, _ := strings.Cut(head, ": ")
		t.Run(name, func(t *testing.T) { hostileScript(t, wants, code) })
	}
	if most := memoryOfChildren(t); most > mostMemory {
		t.Errorf("a process had %d MB", most>>20)
	} else {
		t.Logf("no process had more than %d MB", most>>20)
	}
}

func hostileScript(t *testing.T, wants, code string) {
	t.Helper()
	wants, count, counted := strings.Cut(wants, ": calls ")
	calls := 0
	if counted {
		if _, err := fmt.Sscan(count, &calls); err != nil {
			t.Fatal(err)
		}
	}
	var made sync.Map
	asked := 0
	call := &tool.Call{
		Key: "k", Time: time.UnixMilli(0), Mode: tool.ModeYolo, Progress: func(string) {},
		Start: func(_ context.Context, name string, args json.RawMessage) func() (tool.Result, error) {
			asked++
			made.Store(asked, name)
			return func() (tool.Result, error) {
				var in struct{ Word string }
				if name != "note" || json.Unmarshal(args, &in) != nil {
					return tool.Result{}, errors.New("there is no tool of that name")
				}
				return tool.Text("noted " + in.Word), nil
			}
		},
	}
	busy := 50 * time.Second // on a busy machine what is to end in another way takes its time
	if wants == "error" || strings.Contains(wants, "for as long as it may") {
		busy = 2 * time.Second
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	res, err := script.Perform(ctx, call, sandbox.Self(), code, nil, script.Limits{Busy: busy})
	if took := time.Since(began); took > time.Minute {
		t.Errorf("it took %v", took)
	}
	got := res.Parts.Text()
	switch kind, what, _ := strings.Cut(wants, " "); {
	case kind == "error":
		var own *script.Error
		if !errors.As(err, &own) || !strings.Contains(err.Error(), what) {
			t.Errorf("%.300q and the error %v, want %q", got, err, what)
		}
	case err != nil:
		t.Errorf("the error is %v", err)
	default:
		var want any
		if err := json.Unmarshal([]byte(what), &want); err != nil {
			t.Fatal(err)
		}
		if s, ok := want.(string); ok {
			what = s
		}
		if lines := strings.Split(got, "\n"); lines[len(lines)-1] != what && (want != nil || !strings.Contains(got, "returned nothing")) {
			t.Errorf("got %.300q, want %s", got, what)
		}
	}
	if asked != calls {
		t.Errorf("it made %d calls, want %d", asked, calls)
	}
}

package custom

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/kernel/hold"
	"github.com/inspan/inspan/tool"
)

// mostTrial bounds the time of one test.
const mostTrial = 20 * time.Second

// Trial is the outcome of a test of a draft.
type Trial struct {
	Test
	Got  string // its result, with the error if there was one
	Good bool
}

// ErrNoTrial means that tests were not run, since no box would have confined them.
var ErrNoTrial = errors.New("tests need a sandbox, and there is none")

// Trial returns the tool of a draft for its tests: it reaches no network, whatever is declared, and can write
// if the draft can. Dir is as in [Installed.Tool]. The error is [ErrNoTrial] if no box would confine it.
func (in Installed) Trial(dir string, walls tool.Walls) (tool.Tool, error) {
	says, err := decode(in.files[saysFile])
	if err != nil {
		return tool.Tool{}, err
	}
	if len(says.effects.network) > 0 {
		says.effects.network, says.effects.write = nil, true
	}
	says.timeout = min(says.timeout, mostTrial)
	c := in.caller(dir, says)
	if c.box(walls).Level == tool.BoxNone {
		return tool.Tool{}, fmt.Errorf("%w: %s", ErrNoTrial, walls.Why)
	}
	return c.tool(), nil
}

// Try runs the tests of a draft with a tool from [Installed.Trial]. Env is for a new folder. The error is that
// of ctx.
func (d Draft) Try(ctx context.Context, env tool.Env, own tool.Tool) (out []Trial, err error) {
	for i, t := range d.Tests {
		trial := Trial{Test: t}
		if trial.Good, trial.Got, err = try(ctx, own, env, i, t); err != nil {
			return out, err
		}
		out = append(out, trial)
	}
	return out, nil
}

func try(ctx context.Context, own tool.Tool, env tool.Env, i int, t Test) (good bool, got string, err error) {
	args, err := own.Check(t.Args)
	if err != nil {
		return false, "the arguments do not fit the schema: " + err.Error(), nil
	}
	limited, cancel := context.WithTimeout(ctx, mostTrial)
	defer cancel()
	res, failed := own.Run(limited, &tool.Call{
		ID: "test", Key: hold.Key("test", uint64(i), own.Name), Name: own.Name, Args: args, Session: "test", Env: env, Cwd: env.Root,
		Progress: func(string) {}, Start: t.begin(),
	})
	if ctx.Err() != nil {
		return false, "", ctx.Err()
	}
	got = strings.TrimSpace(res.Parts.Text())
	if failed != nil {
		return false, strings.TrimSpace(got + "\n" + failed.Error()), nil
	}
	return got == strings.TrimSpace(t.Expect), got, nil
}

// begin answers the calls of a script in a test with the results in the test.
func (t Test) begin() func(context.Context, string, json.RawMessage) func() (tool.Result, error) {
	left := slices.Clone(t.Calls)
	var mu sync.Mutex
	return func(_ context.Context, name string, _ json.RawMessage) func() (tool.Result, error) {
		mu.Lock()
		defer mu.Unlock()
		i := slices.IndexFunc(left, func(c TestCall) bool { return c.Tool == name })
		if i < 0 {
			return func() (tool.Result, error) {
				return tool.Result{}, fmt.Errorf("a test can't call tools, and its calls have no result for this call of %s", name)
			}
		}
		brings := left[i].Brings
		left = slices.Delete(left, i, i+1)
		return func() (tool.Result, error) { return tool.Text(brings), nil }
	}
}

// Passed reports whether there are tests and all succeeded.
func Passed(trials []Trial) bool {
	for _, t := range trials {
		if !t.Good {
			return false
		}
	}
	return len(trials) > 0
}

// DescribeTrials describes the outcome of tests, for models and people.
func DescribeTrials(trials []Trial) string {
	var b strings.Builder
	for i, t := range trials {
		if t.Good {
			fmt.Fprintf(&b, "test %d passed\n", i+1)
			continue
		}
		fmt.Fprintf(&b, "test %d failed: %s\n  expected: %s\n  got:      %s\n", i+1, text.Clip(string(t.Args), 200),
			text.Clip(strings.TrimSpace(t.Expect), 500), text.Clip(t.Got, 500))
	}
	return b.String()
}

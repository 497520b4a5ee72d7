package app

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/internal/keep"
	"github.com/inspan/inspan/internal/policy"
	"github.com/inspan/inspan/internal/prompt"
	"github.com/inspan/inspan/internal/subagent"
	"github.com/inspan/inspan/internal/survey"
	"github.com/inspan/inspan/tool"
)

// facts are what the prompt says of the surroundings of a new session.
func (a *App) facts(ctx context.Context, agent *inspan.Agent, ord *subagent.Order) []string {
	if ord != nil { // what holds for a child is set when it is made
		told := *agent
		agent = &told
		agent.Mode, agent.MaxTurns, agent.MaxCost, agent.MaxTime = ord.Mode, ord.MaxTurns, ord.MaxCost, ord.MaxTime
	}
	truth := prompt.Session{
		Mode: cmp.Or(agent.Mode, policy.ModeAsk), Walls: agent.Env.Walls, Throwaway: agent.Env.Throwaway, Unattended: agent.Unattended,
		Turns: turns(agent.MaxTurns), Cost: agent.MaxCost, Time: agent.MaxTime,
	}
	list := append([]string{"workspace: " + agent.Env.Root, "date: " + time.Now().Format("Monday, 2 January 2006")}, truth.Facts()...)
	lever := agent.Levers.Bootstrap
	if !lever.Active(agent.Unattended) {
		return append(list, "system: "+runtime.GOOS+"/"+runtime.GOARCH)
	}
	return append(list, survey.Facts(ctx, agent.Env, a.machine(ctx, agent.Env), lever.Strength(0))...)
}

// turns are the most of one run, 0 for no limit.
func turns(limit int) int {
	switch {
	case limit < 0:
		return 0
	case limit == 0:
		return inspan.DefaultMaxTurns
	}
	return limit
}

// freshMachine is how long what is known of a machine holds.
const freshMachine = 24 * time.Hour

// machine is what the machine has, asked for once a day.
func (a *App) machine(ctx context.Context, env tool.Env) survey.Machine {
	type known struct {
		Key     string
		At      time.Time
		Machine survey.Machine
	}
	path, key := filepath.Join(a.StateDir, "machine.json"), os.Getenv("PATH")+"\x00"+a.Config.Sandbox.Container
	var k known
	if data, err := os.ReadFile(path); err == nil && json.Unmarshal(data, &k) == nil && k.Key == key && time.Since(k.At) < freshMachine {
		return k.Machine
	}
	k = known{key, time.Now(), survey.Ask(ctx, env)}
	if data, err := json.Marshal(k); err == nil {
		_ = keep.Write(path, data) // the next session asks again
	}
	return k.Machine
}

package equipment

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/extend/hook"
	"github.com/inspan/inspan/tool"
)

const (
	setupTime   = 15 * time.Minute
	setupOutput = 64 << 10 // bytes of its output that are read
)

// SetUp runs the setup command of the settings in a copy of a workspace before an agent works there; without a
// command it does nothing. The error is for the agent. A closed copy has no network.
func (s *Set) SetUp(ctx context.Context, env tool.Env, mode tool.Mode, closed bool) error {
	c := hook.Config{Command: s.Config.Agents.Setup, Hosts: s.Config.Agents.SetupHosts}
	if closed {
		c.Hosts = nil
	}
	limited, cancel := context.WithTimeout(ctx, setupTime)
	defer cancel()
	out := keep.Head{Limit: setupOutput}
	p, err := env.Procs.Start(limited, tool.Command{
		Args: []string{"sh", "-c", c.Command}, Dir: env.Root, Output: &out,
		Box: hook.Walls{Own: true, Outside: s.Config.Sandbox.Outside}.Box(ctx, env, mode, c),
	})
	if err != nil {
		return err
	}
	code, err := p.Wait()
	switch {
	case limited.Err() != nil && ctx.Err() == nil:
		return fmt.Errorf("it did not end within %v", setupTime)
	case err != nil || code == 0:
		return err
	}
	data, _ := out.Bytes()
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	return fmt.Errorf("exit code %d: %s", code, text.Short(lines[len(lines)-1], 300))
}

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/tool"
)

const (
	keptTimes   = 64   // calls whose time is kept
	maxProgress = 1000 // lines of progress of one call

	// notSent is the code of an error of the SDK, not of a server: a request over HTTP
	// was not sent, or answered with nothing but a status.
	notSent = -32005
)

// Tools returns the approved tools of the connected servers, ordered by name. Of tools with the same name,
// ignoring case, it returns none.
func (m *Manager) Tools() []tool.Tool {
	var out []tool.Tool
	count := map[string]int{}
	for _, o := range m.offers() {
		for _, d := range o.tools {
			c := caller{m, o.slot, d}
			out = append(out, c.tool())
			count[strings.ToLower(d.spec.Name)]++
		}
	}
	out = slices.DeleteFunc(out, func(t tool.Tool) bool {
		same := count[strings.ToLower(t.Name)] > 1
		if same {
			m.warn("Several tools of MCP servers have the name " + t.Name + ", so inspan offers none of them.")
		}
		return same
	})
	slices.SortStableFunc(out, func(a, b tool.Tool) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// offer is the tools of one server.
type offer struct {
	slot  *slot
	tools []definition
}

// offers returns the tools that the person has approved, of servers that are connected or about to be.
func (m *Manager) offers() []offer {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []offer
	for _, s := range m.slots {
		if s.kept {
			out = append(out, offer{s, m.free(s)})
		}
	}
	return out
}

// caller calls one tool.
type caller struct {
	manager    *Manager
	slot       *slot
	definition // that the tool was offered with
}

func (c caller) tool() tool.Tool {
	return tool.Tool{
		Name: c.spec.Name, Doc: c.spec.Description, Schema: slices.Clone(c.spec.Schema), Effects: c.effects, Run: c.run,
		Ready: func(*tool.Call) { c.manager.Ready() },
	}
}

// effects are unknown, except for a tool that a trusted server declares to be read-only.
func (c caller) effects(_ context.Context, call *tool.Call) ([]tool.Effect, error) {
	server := c.slot.server
	if !server.believed() || !c.readOnly {
		return []tool.Effect{{Kind: tool.External, Text: "call " + words.OneLine(c.name, 100) + " of the MCP server " + c.slot.server.Name}}, nil
	}
	if server.kind() == Inside {
		return []tool.Effect{{Kind: tool.Read, Path: call.Env.Root}}, nil
	}
	if server.kind() != Stdio {
		host := ""
		if u, err := url.Parse(server.URL); err == nil && !strings.Contains(u.Host, "$") {
			host = u.Hostname()
		}
		return []tool.Effect{{Kind: tool.Network, Text: host}}, nil
	}
	out := []tool.Effect{{Kind: tool.Read, Path: call.Env.Root}}
	for _, host := range server.Hosts {
		out = append(out, tool.Effect{Kind: tool.Network, Text: host})
	}
	return out, nil
}

// current waits for the connection to use. The tool's definition must be the one that was offered, and still be
// approved.
func (c *caller) current(ctx context.Context) (*client, error) {
	m, s := c.manager, c.slot
	ctx, cancel := context.WithTimeout(ctx, m.patience())
	defer cancel()
	for {
		m.mu.Lock()
		m.wake(s)
		now, news, coming := s.client, m.news, s.kept && !m.closed
		why := s.why
		free := m.freed(s, &c.definition)
		m.mu.Unlock()
		switch {
		case now != nil && !free:
			return nil, fmt.Errorf("%s was not called: the MCP server %s has changed or removed it, and the person has not approved that yet",
				c.spec.Name, s.server.Name)
		case now != nil:
			return now, nil
		case !coming || ctx.Err() != nil:
			return nil, fmt.Errorf("%s was not called: the MCP server %s is not connected %s", c.spec.Name, s.server.Name, words.OneLine(why, 500))
		}
		select {
		case <-news:
		case <-ctx.Done():
		}
	}
}

func (c caller) run(ctx context.Context, call *tool.Call) (out tool.Result, _ error) {
	conn, err := c.current(ctx)
	if err != nil {
		return tool.Result{}, err
	}
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	p := conn.begin(call, c.slot.server.Timeout, cancel)
	defer func() { out.Cost = conn.over(p) }()
	bound, stop := conn.bound(limited)
	defer stop()
	params := &sdk.CallToolParams{Name: c.name, Arguments: arguments(call.Args)}
	var told atomic.Int32
	tell := func(text string) {
		if told.Add(1) <= maxProgress && call.Progress != nil {
			call.Progress(text)
		}
	}
	token, unwatch := conn.watch(tell)
	defer unwatch()
	params.SetProgressToken(token)
	if call.Traceparent != "" {
		params.Meta["traceparent"] = call.Traceparent
	}
	began := time.Now()
	res, err := c.send(bound, conn, p, params, tell)
	c.manager.took(c.slot, time.Since(began))
	switch {
	case ctx.Err() != nil:
		return tool.Result{}, fmt.Errorf("%s was interrupted; its effects until then are unknown: %w", c.spec.Name, ctx.Err())
	case limited.Err() != nil:
		return tool.Result{}, fmt.Errorf("%s did not answer within %v; the server was told to stop, and its effects until then are unknown",
			c.spec.Name, p.whole)
	case err != nil:
		return tool.Result{Untrusted: true}, c.failure(conn, err)
	}
	out = tool.Result{Parts: parts(res), Untrusted: true}
	if res.IsError {
		return out, fmt.Errorf("%s failed", c.spec.Name)
	}
	return out, nil
}

// send sends the call and returns its result, even if the server returns it as a task.
func (c caller) send(ctx context.Context, conn *client, by *patience,
	params *sdk.CallToolParams, tell func(string),
) (*sdk.CallToolResult, error) {
	if c.task {
		return c.asTask(ctx, conn, by, params, tell)
	}
	res, err := conn.session.CallTool(ctx, params)
	if err != nil {
		return nil, err
	}
	return c.follow(ctx, conn, by, res, tell)
}

func arguments(args json.RawMessage) json.RawMessage {
	if len(args) == 0 {
		return json.RawMessage("{}")
	}
	return args
}

// failure tells an error response from a missing response.
func (c caller) failure(conn *client, err error) error {
	var answer *jsonrpc.Error
	var ended *taskError
	var login *loginError
	if errors.As(err, &ended) {
		return fmt.Errorf("%s %w", c.spec.Name, ended)
	}
	if errors.As(context.Cause(conn.life), &login) {
		return fmt.Errorf("%s was not called: %w", c.spec.Name, login)
	}
	if errors.As(err, &answer) && answer.Code != notSent && conn.life.Err() == nil {
		return fmt.Errorf("%s was refused by its server: %s", c.spec.Name, text.Cut(text.Printed(answer.Message), 4000))
	}
	return fmt.Errorf("%s got no answer, so its effects are unknown: %w", c.spec.Name, conn.ending(err))
}

// took records the duration of a call.
func (m *Manager) took(s *slot, d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.took = append(s.took, d); len(s.took) > keptTimes {
		s.took = slices.Delete(s.took, 0, 1)
	}
}

// Package mcptool makes tools of servers of the Model Context Protocol, for programs
// that embed an agent. A server may be a program, an address, or a part of the same
// program.
//
// What servers say is untrusted: it is bounded, cleaned of hidden characters, and counts
// as seen by the session. Their tools are called mcp__SERVER__TOOL, and each call has
// the effect [tool.External], so that it asks unless a rule lets it.
//
// Don't use it for functions of your own program: [tool.New] makes a tool of one without a server. The agent
// of package coding connects the servers of its options itself.
//
// # Compatibility
//
// The names mcp__SERVER__TOOL stay, since rules and logs hold them.
package mcptool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/inspan/inspan/internal/extend/mcp"
	"github.com/inspan/inspan/tool"
)

// Server is one server. Exactly one of Command, URL and Dial is set.
type Server struct {
	Name    string            // letters, digits, _ and -, at most 40
	Command []string          // a program and its arguments, run in the walls of the workspace
	Env     map[string]string // of the program, beside what every command has
	Hosts   []string          // that it may reach
	URL     string            // http, https, ws or wss
	Headers map[string]string // of each request
	// Dial connects to a server in this process, such as over one end of a [net.Pipe]:
	// it speaks JSON-RPC in lines. It is called again when the connection has ended.
	Dial func(ctx context.Context) (io.ReadWriteCloser, error)
	// Timeout bounds one call; 0: 2 minutes.
	Timeout time.Duration
}

// Set is the connections to some servers. Safe for concurrent use.
type Set struct{ m *mcp.Manager }

// Open begins to connect to servers and returns at once. Env is the world that programs
// run in, as [inspan.Agent] has it; client reaches addresses, and nil none. A server
// that ends is started again, with rests. The caller closes the set.
func Open(env tool.Env, client *http.Client, servers ...Server) *Set {
	m := &mcp.Manager{Env: env}
	if client != nil {
		m.HTTP = func(mcp.Server) *http.Client { return client }
	}
	for _, s := range servers {
		m.Servers = append(m.Servers, mcp.Given(s).From(mcp.User))
	}
	m.Start()
	return &Set{m}
}

// Wait returns when each server is connected, or has failed once, or ctx is done. The
// error says which are not there, and why.
func (s *Set) Wait(ctx context.Context) error {
	s.m.Settle(ctx)
	var errs []error
	for _, st := range s.m.Status() {
		if st.State != mcp.Ready {
			errs = append(errs, fmt.Errorf("the MCP server %s is %s: %s", st.Name, st.State, st.Why))
		}
	}
	return errors.Join(errs...)
}

// Tools are those of the servers that are connected now, by name. They come and go, so
// they are best given to an agent as its Extra.
func (s *Set) Tools() []tool.Tool { return s.m.Tools() }

// Close ends the connections and programs, and returns when they are gone. Calls that
// go on fail.
func (s *Set) Close() { s.m.Close() }

// Package mcptool makes tools from servers of the Model Context Protocol, for programs that embed an agent. A
// server may be a program, an address, or a part of the same program.
//
// Text from servers is untrusted: it is bounded, cleaned of hidden characters, and marks the session as having
// seen text by strangers. Tools are called mcp__SERVER__TOOL, and each call has the effect [tool.External], so
// it asks unless a rule allows it.
//
// Don't use it for functions of your own program: [tool.New] makes a tool from one without a server. The agent
// of package coding connects to the servers in its options itself.
//
// # Compatibility
//
// The names mcp__SERVER__TOOL stay, since rules and logs contain them.
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

// Server is one server. Set exactly one of Command, URL and Dial.
type Server struct {
	Name    string            // letters, digits, _ and -, at most 40
	Command []string          // a program and its arguments, run in the sandbox of the workspace
	Env     map[string]string // additional environment variables of the program
	Hosts   []string          // hosts that it may reach
	URL     string            // http, https, ws or wss
	Headers map[string]string // of each request
	// Dial connects to a server in this process, for example over one end of a [net.Pipe]. The connection
	// carries JSON-RPC in lines. Dial is called again when the connection has ended.
	Dial func(ctx context.Context) (io.ReadWriteCloser, error)
	// Timeout bounds one call; 0 means 2 minutes.
	Timeout time.Duration
}

// Set holds the connections to some servers. It is safe for concurrent use.
type Set struct{ m *mcp.Manager }

// Open begins to connect to servers and returns at once. Env is the world in which programs run, see
// [inspan.Agent]; client connects to addresses; with nil none can be reached. A server that ends is started again,
// after growing pauses. The caller must close the set.
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

// Wait returns when each server is connected or has failed once, or when ctx ends. The error says which are
// missing, and why.
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

// Tools returns the tools of the servers that are connected now, sorted by name. Since they come and go, return
// them from Tools of [inspan.Dynamic].
func (s *Set) Tools() []tool.Tool { return s.m.Tools() }

// Close ends the connections and programs, and returns when they are gone. Calls in progress fail.
func (s *Set) Close() { s.m.Close() }

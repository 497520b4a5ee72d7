package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/base/text"
)

// Kinds of servers.
const (
	Stdio     = "stdio"
	HTTP      = "http" // streamable
	SSE       = "sse"  // the older way over HTTP
	WebSocket = "ws"
	Inside    = "in-process"
)

// Server says how a server is reached: by a program, or at an address. Texts in Command, Env, Dir, Read, Write,
// URL and Headers may contain variables: ${NAME}, or ${NAME:-default}.
type Server struct {
	Name string // [A-Za-z0-9_-]{1,40}

	Command []string          // a program, looked up in PATH, and its arguments
	Env     map[string]string // in addition to what every command finds in its environment
	Dir     string            // working directory, from the workspace; empty means the workspace
	Hosts   []string          // that the program may reach, as in [tool.Box]
	Read    []string          // absolute paths that it may read in addition to the workspace, such as where it is installed
	Write   []string          // absolute paths that it may change too, such as where it keeps what it knows

	URL     string            // http, https, ws or wss
	Kind    string            // one of the kinds; empty means told by Command or URL
	Headers map[string]string // of each request
	// Auth has tokens for this server alone, instead of the manager's. May be nil.
	Auth Authorizer

	// Dial connects to a server in this process, which speaks JSON-RPC in lines. It is called again when the
	// connection has ended.
	Dial func(ctx context.Context) (io.ReadWriteCloser, error)

	Source string // User, Project, Client, or "plugin NAME"
	// Unpinned accepts the server's tools as they are and stores nothing about them: no one is present to approve
	// them, and other sessions may use the name for another server.
	Unpinned bool
	// Trust says that the server's claims about its tools are believed. It only counts for the user's own
	// servers.
	Trust bool
	// Bare lets the program run without a sandbox. It only counts for the user's own servers.
	Bare    bool
	Timeout time.Duration // of one call; 0 means 2 minutes
	Only    []string      // its tools that are used; none: all
	Without []string      // its tools that are not used
	Off     bool
}

// Given is a server configured by a program that embeds an agent.
type Given struct {
	Name    string
	Command []string
	Env     map[string]string
	Hosts   []string
	URL     string
	Headers map[string]string
	Dial    func(ctx context.Context) (io.ReadWriteCloser, error)
	Timeout time.Duration
}

// From returns the server with its source.
func (g Given) From(source string) Server {
	return Server{
		Name: g.Name, Command: g.Command, Env: g.Env, Hosts: g.Hosts, URL: g.URL, Headers: g.Headers, Dial: g.Dial, Timeout: g.Timeout,
		Source: source,
	}
}

func (s Server) kind() string {
	switch {
	case s.Kind != "":
		return s.Kind
	case s.Dial != nil:
		return Inside
	case s.URL == "":
		return Stdio
	case strings.HasPrefix(s.URL, "ws://"), strings.HasPrefix(s.URL, "wss://"):
		return WebSocket
	case strings.HasSuffix(strings.TrimRight(s.URL, "/"), "/sse"):
		return SSE
	}
	return HTTP
}

// Sources of servers, except plugins.
const (
	User    = "user"    // the person's settings
	Project = "project" // files of the workspace whose content they trust
	Client  = "client"  // the program that inspan works in, such as an editor

	CommandLine = "command line" // a flag
)

// Own reports whether the server comes from the person, and not from files of a workspace or a plugin.
func (s Server) Own() bool { return slices.Contains([]string{User, Client, CommandLine}, s.Source) }

func (s Server) believed() bool { return s.Trust && s.Source == User }

func (s Server) clone() Server {
	s.Command, s.Hosts, s.Read, s.Write = slices.Clone(s.Command), slices.Clone(s.Hosts), slices.Clone(s.Read), slices.Clone(s.Write)
	s.Env, s.Headers = maps.Clone(s.Env), maps.Clone(s.Headers)
	return s
}

// uses reports whether a tool of the server is used.
func (s Server) uses(name string) bool {
	return (len(s.Only) == 0 || slices.Contains(s.Only, name)) && !slices.Contains(s.Without, name)
}

// finalError is an error that can't be solved by trying again.
type finalError struct{ error }

func (e *finalError) Unwrap() error { return e.error }

func final(format string, args ...any) error { return &finalError{fmt.Errorf(format, args...)} }

// Check returns the fault of a server's configuration.
func (s Server) Check() error {
	if s.Name == "" || len(s.Name) > 40 || strings.Trim(s.Name, letters) != "" {
		return fmt.Errorf("%q is not a valid name of a server; use 1 to 40 letters, digits, _ and -", text.Cut(s.Name, 60))
	}
	if strings.Contains(s.Name, "__") || strings.HasSuffix(s.Name, "_") { // rules for another server would hold for it
		return fmt.Errorf("%q is not a valid name of a server: it has __ in it, or _ at its end", s.Name)
	}
	switch s.kind() {
	case Stdio:
		if len(s.Command) == 0 || s.Command[0] == "" {
			return errors.New("it has no command")
		}
	case HTTP, SSE, WebSocket:
		if s.URL == "" {
			return errors.New("it has no url")
		}
		if !strings.Contains(s.URL, "${") { // else it is looked at when that is filled in
			if _, err := s.address(); err != nil {
				return err
			}
		}
	case Inside:
		if s.Dial == nil {
			return errors.New("it can't be dialled")
		}
	default:
		return fmt.Errorf("unknown kind of server %q; use stdio, http, sse or ws", text.Cut(s.Kind, 60))
	}
	if len(s.Command) > 0 && s.URL != "" {
		return errors.New("it has both a command and a url; remove one")
	}
	for name := range s.Env {
		if strings.Trim(name, letters) != "" || strings.Contains(name, "-") || name == "" || name[0] >= '0' && name[0] <= '9' {
			return fmt.Errorf("%q is not the name of a variable", text.Cut(name, 60))
		}
	}
	return nil
}

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"

// address parses the URL of a server. Web sockets begin as HTTP requests.
func (s Server) address() (*url.URL, error) {
	u, err := url.Parse(s.URL)
	if err == nil && s.kind() == WebSocket {
		u.Scheme = strings.Replace(u.Scheme, "ws", "http", 1)
	}
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
		return nil, final("its url must be http, https, ws or wss, without a user: %q", text.Cut(text.Address(s.URL), 100))
	}
	return u, nil
}

// Variables lists the variables in a server's configuration, sorted: the server gets their values.
func (s Server) Variables() []string {
	var out []string
	_, _ = s.expanded(func(name string) string {
		out = append(out, name)
		return "x"
	})
	slices.Sort(out)
	return slices.Compact(out)
}

// expanded returns the server with its variables filled in. The error names one without a value.
func (s Server) expanded(value func(name string) string) (Server, error) {
	e := expander{value: value, pattern: regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}`)}
	s = s.clone()
	s.URL, s.Dir = e.text(s.URL), e.text(s.Dir)
	for _, texts := range [][]string{s.Command, s.Read, s.Write} {
		for i := range texts {
			texts[i] = e.text(texts[i])
		}
	}
	for _, texts := range []map[string]string{s.Env, s.Headers} {
		for name := range texts {
			texts[name] = e.text(texts[name])
		}
	}
	if e.missing != nil {
		slices.Sort(e.missing)
		return s, final("%w", &missingError{slices.Compact(e.missing)})
	}
	return s, nil
}

// missingError names variables without a value.
type missingError struct{ names []string }

func (e *missingError) Error() string {
	if len(e.names) > 1 {
		return "it needs " + strings.Join(e.names, " and ") + ", which are not set"
	}
	return "it needs " + e.names[0] + ", which is not set"
}

type expander struct {
	value   func(name string) string
	pattern *regexp.Regexp
	missing []string
}

// text fills in variables once: values are not expanded again.
func (e *expander) text(s string) string {
	return e.pattern.ReplaceAllStringFunc(s, func(match string) string {
		parts := e.pattern.FindStringSubmatch(match)
		v := ""
		if e.value != nil {
			v = e.value(parts[1])
		}
		if v == "" && parts[2] == "" {
			e.missing = append(e.missing, parts[1])
		}
		if v == "" {
			return parts[3]
		}
		return v
	})
}

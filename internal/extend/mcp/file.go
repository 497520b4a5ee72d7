package mcp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/safety/foreign"
)

// ReadFile reads servers from a configuration file of Claude Code (.mcp.json), Claude Desktop, Cursor,
// Windsurf, Antigravity, VS Code, Gemini CLI or opencode. They differ only in the names of fields, so one
// reader accepts them all:
//
//	{"mcpServers": {"NAME": {                   or "servers", "mcp", or "servers" in "mcp"
//	  "command": "npx", "args": ["-y", "some-server"],      the command can be the list of both
//	  "env": {"KEY": "${KEY}"}, "cwd": "sub",   or "environment"
//	  "hosts": ["registry.npmjs.org"],          that the program may reach
//	  "read": ["/opt/some-server"],             paths outside of the workspace that it may read
//	  "write": ["/home/me/notes"],              and that it may change
//	  "type": "http",                           or "transport"; local and remote are told by the rest
//	  "url": "https://example.com/mcp",         or "serverUrl", or "httpUrl"
//	  "headers": {"Authorization": "Bearer ${TOKEN}"},
//	  "timeout": 60000,                         milliseconds of one call
//	  "includeTools": ["a"],                    or "enabledTools": the only tools of it that are used
//	  "excludeTools": ["b"],                    or "disabledTools": tools that are not used
//	  "disabled": true                          or "enabled": false
//	}}}
//
// The JSON may have the extensions that [foreign.Plain] removes. Servers are ordered by name. Variables are
// converted to inspan's syntax and not expanded. The path is for messages, root is the workspace. Servers that
// can't be understood are left out with a warning, and fields without a meaning here get a warning. The error
// says that the file has no readable servers. The caller sets Source and Trust.
func ReadFile(path, root string, data []byte) (servers []Server, warnings []string, err error) {
	servers, ignored, warnings, err := readFile(path, root, data)
	for _, broken := range ignored {
		warnings = append(warnings, broken.Error())
	}
	return servers, warnings, err
}

// ReadGiven is [ReadFile] for servers that a person names for one run: a server that can't be understood is an
// error. Their source is [CommandLine].
func ReadGiven(path, root string, data []byte) (servers []Server, warnings []string, err error) {
	servers, ignored, warnings, err := readFile(path, root, data)
	for i := range servers {
		servers[i].Source = CommandLine
	}
	return servers, warnings, errors.Join(append(ignored, err)...)
}

func readFile(path, root string, data []byte) (servers []Server, ignored []error, warnings []string, err error) {
	data, err = foreign.Plain(data)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	list, err := table(data)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, name := range slices.Sorted(maps.Keys(list)) {
		s, unknown, err := readServer(name, list[name])
		if err == nil {
			s = s.spelled(root)
			err = s.Check()
		}
		if err != nil {
			ignored = append(ignored, fmt.Errorf("%s: the MCP server %q is ignored: %w", path, text.Cut(name, 60), err))
			continue
		}
		for _, field := range unknown {
			warnings = append(warnings, fmt.Sprintf("%[1]s: inspan ignores the field %[3]q of the MCP server %[2]s",
				path, name, text.Cut(field, 60)))
		}
		servers = append(servers, s)
	}
	return servers, ignored, warnings, nil
}

// table finds the servers in a file.
func table(data []byte) (map[string]json.RawMessage, error) {
	top, err := object(data)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"mcpServers", "servers", "mcp"} {
		inner, there := top[name]
		if !there {
			continue
		}
		list, err := object(inner)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if deeper, there := list["servers"]; there && name == "mcp" {
			if list, err = object(deeper); err != nil {
				return nil, fmt.Errorf("mcp.servers: %w", err)
			}
		}
		return list, nil
	}
	return nil, errors.New("it has no \"mcpServers\"")
}

// line is a text, or a list of texts.
type line []string

// UnmarshalJSON implements [json.Unmarshaler].
func (l *line) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*l = line{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(l))
}

// readServer reads one server. Field names are case-sensitive.
func readServer(name string, data []byte) (s Server, unknown []string, err error) {
	fields, err := object(data)
	if err != nil {
		return s, nil, err
	}
	var command line
	var kind, transport, serverURL, httpURL string
	var args, only, without []string
	var env map[string]string
	var millis float64
	on := true
	known := map[string]any{
		"command": &command, "args": &args, "cwd": &s.Dir, "hosts": &s.Hosts, "read": &s.Read, "write": &s.Write,
		"url": &s.URL, "serverUrl": &serverURL, "httpUrl": &httpURL, "type": &kind, "transport": &transport,
		"timeout": &millis, "disabled": &s.Off, "enabled": &on, "env": &s.Env, "environment": &env, "headers": &s.Headers,
		"includeTools": &s.Only, "enabledTools": &only, "excludeTools": &s.Without, "disabledTools": &without,
	}
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		into, is := known[field]
		if !is {
			unknown = append(unknown, field)
			continue
		}
		if raw := fields[field]; (field == "env" || field == "environment" || field == "headers") && string(raw) != "null" {
			_, err = object(raw) // nothing twice
		}
		if err == nil {
			err = json.Unmarshal(fields[field], into)
		}
		if err != nil {
			return s, nil, fmt.Errorf("%s: %w", field, err)
		}
	}
	if millis < 0 || millis > float64(24*time.Hour/time.Millisecond) {
		return s, nil, errors.New("timeout: it must be milliseconds, at most a day")
	}
	if s.Env != nil && env != nil {
		return s, nil, errors.New("it has both env and environment")
	}
	addresses := slices.DeleteFunc([]string{s.URL, serverURL, httpURL}, func(at string) bool { return at == "" })
	if len(slices.Compact(addresses)) > 1 {
		return s, nil, errors.New("it has more than one of url, serverUrl and httpUrl")
	}
	if s.Only != nil && only != nil {
		return s, nil, errors.New("it has both includeTools and enabledTools")
	}
	if s.Without = append(s.Without, without...); only != nil {
		s.Only = only
	}
	if s.Only != nil && len(s.Only) == 0 { // none is wanted
		s.Only, s.Off = nil, true
	}
	s.Name, s.Timeout, s.Off = name, time.Duration(millis)*time.Millisecond, s.Off || !on
	s.URL = cmp.Or(s.URL, serverURL, httpURL)
	if s.Env == nil {
		s.Env = env
	}
	if len(command) > 0 && command[0] != "" {
		s.Command = slices.Concat(command, args)
	}
	s.Kind = kindOf(cmp.Or(kind, transport))
	if s.Kind == "" && httpURL != "" {
		s.Kind = HTTP
	}
	return s, unknown, nil
}

// kindOf reads the spellings of a kind.
func kindOf(text string) string {
	switch text {
	case "streamable-http", "streamableHttp", "streamable_http", "streamable":
		return HTTP
	case "websocket":
		return WebSocket
	case "local", "remote": // the command or the address tells
		return ""
	}
	return text
}

// spelled converts the variables of other programs to inspan's syntax.
func (s Server) spelled(root string) Server {
	switch s.Dir {
	case "${workspaceFolder}":
		s.Dir = ""
	case "":
		root = "." // where it is started
	}
	fixed := strings.NewReplacer("${workspaceFolder}", root, "${userHome}", "${HOME}", "${pathSeparator}", "/", "${/}", "/")
	others := regexp.MustCompile(`\$?\{(env|input):([^{}]*)\}`)
	ours := func(text string) string {
		return others.ReplaceAllStringFunc(fixed.Replace(text), func(match string) string {
			parts := others.FindStringSubmatch(match)
			switch {
			case match[0] != '$' && parts[1] == "input":
				return match
			case parts[1] == "input":
				parts[2] = strings.ToUpper(regexp.MustCompile(`[^A-Za-z0-9_]+`).ReplaceAllString(parts[2], "_"))
			}
			return "${" + parts[2] + "}"
		})
	}
	s = s.clone()
	s.URL, s.Dir = ours(s.URL), ours(s.Dir)
	for _, texts := range [][]string{s.Command, s.Read, s.Write} {
		for i := range texts {
			texts[i] = ours(texts[i])
		}
	}
	for _, texts := range []map[string]string{s.Env, s.Headers} {
		for name := range texts {
			texts[name] = ours(texts[name])
		}
	}
	return s
}

// object reads one JSON object and rejects duplicate fields, which encoding/json would accept.
func object(data []byte) (map[string]json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("want a JSON object")
	}
	out := map[string]json.RawMessage{}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, fmt.Errorf("the JSON is broken: %w", err)
		}
		name, _ := t.(string) // all that can stand here
		if _, twice := out[name]; twice {
			return nil, fmt.Errorf("%q is there twice", text.Cut(name, 60))
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, fmt.Errorf("the JSON is broken: %w", err)
		}
		out[name] = value
	}
	if _, err := dec.Token(); err != nil {
		return nil, fmt.Errorf("the JSON is broken: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the JSON object")
	}
	return out, nil
}

package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/inspan/inspan/internal/text"
)

// ReadFile reads servers from the text of a file of the usual form, that of
// .mcp.json and claude_desktop_config.json:
//
//	{"mcpServers": {"NAME": {
//	  "command": "npx", "args": ["-y", "some-server"], "env": {"KEY": "${KEY}"}, "cwd": "sub",
//	  "hosts": ["registry.npmjs.org"],          that the program may reach
//	  "read": ["/opt/some-server"],             what it may read beside the workspace
//	  "write": ["/home/me/notes"],              what it may change too
//	  "type": "http", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"},
//	  "timeout": 60000,                         milliseconds of one call
//	  "disabled": true
//	}}}
//
// Servers are ordered by name. Variables stay as they are written. The path is
// for messages. Servers that can't be understood are left out, and a warning says
// why; so it does of fields that mean nothing here. The error is that of a file
// that has no servers to read. Source and Trust are for the caller to set.
func ReadFile(path string, data []byte) (servers []Server, warnings []string, err error) {
	top, err := object(data)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	inner, there := top["mcpServers"]
	if !there {
		return nil, nil, fmt.Errorf("%s: there is no \"mcpServers\" in it", path)
	}
	list, err := object(inner)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: mcpServers: %w", path, err)
	}
	for _, name := range slices.Sorted(maps.Keys(list)) {
		s, unknown, err := readServer(name, list[name])
		if err == nil {
			err = s.Check()
		}
		if err != nil {
			warnings = append(warnings, fmt.Sprintf("%s: the MCP server %q is left out: %v", path, text.Cut(name, 60), err))
			continue
		}
		for _, field := range unknown {
			warnings = append(warnings, fmt.Sprintf("%s: the MCP server %s has the field %q, which means nothing here",
				path, name, text.Cut(field, 60)))
		}
		servers = append(servers, s)
	}
	return servers, warnings, nil
}

// readServer reads one server. Names of fields count exactly as they are written.
func readServer(name string, data []byte) (s Server, unknown []string, err error) {
	fields, err := object(data)
	if err != nil {
		return s, nil, err
	}
	var command, kind, transport string
	var args []string
	var millis float64
	known := map[string]any{
		"command": &command, "args": &args, "cwd": &s.Dir, "hosts": &s.Hosts, "read": &s.Read, "write": &s.Write, "url": &s.URL, "type": &kind,
		"transport": &transport,
		"timeout":   &millis, "disabled": &s.Off, "env": &s.Env, "headers": &s.Headers,
	}
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		into, is := known[field]
		if !is {
			unknown = append(unknown, field)
			continue
		}
		if field == "env" || field == "headers" {
			_, err = object(fields[field]) // nothing twice
		}
		if err == nil {
			err = json.Unmarshal(fields[field], into)
		}
		if err != nil {
			return s, nil, fmt.Errorf("%s: %w", field, err)
		}
	}
	if millis < 0 || millis > float64(24*time.Hour/time.Millisecond) {
		return s, nil, errors.New("timeout: want milliseconds, at most a day")
	}
	s.Name, s.Timeout = name, time.Duration(millis)*time.Millisecond
	if command != "" {
		s.Command = append([]string{command}, args...)
	}
	if kind == "" {
		kind = transport
	}
	s.Kind = kindOf(kind)
	return s, unknown, nil
}

// kindOf reads the ways to write a kind.
func kindOf(text string) string {
	switch text {
	case "streamable-http", "streamableHttp", "streamable_http":
		return HTTP
	case "websocket":
		return WebSocket
	}
	return text
}

// object reads one JSON object with no field twice, which encoding/json alone
// would not see.
func object(data []byte) (map[string]json.RawMessage, error) {
	if !utf8.Valid(data) {
		return nil, errors.New("it is not UTF-8")
	}
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

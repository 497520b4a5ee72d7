package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/BurntSushi/toml"
)

// AddServer appends the table of a server to a settings file, which is created if necessary. The rest of the
// file is unchanged. A name in use is an error. Several processes may edit a file concurrently.
func AddServer(path, name string, s MCPServer) error {
	fields := map[string]any{}
	for key, v := range map[string]any{
		"command": s.Command, "env": s.Env, "dir": s.Dir, "hosts": s.Hosts, "read": s.Read, "write": s.Write,
		"no_sandbox": s.Bare, "url": s.URL, "kind": s.Kind, "headers": s.Headers,
	} {
		if text := fmt.Sprint(v); text != "[]" && text != "map[]" && text != "" && text != "false" {
			fields[key] = v
		}
	}
	if s.Timeout != 0 {
		fields["timeout"] = s.Timeout.String()
	}
	if s.Off {
		fields["off"] = true
	}
	var table bytes.Buffer
	enc := toml.NewEncoder(&table)
	enc.Indent = ""
	if err := enc.Encode(map[string]any{"mcp": map[string]any{"servers": map[string]any{name: fields}}}); err != nil {
		return err
	}
	return edit(path, func(path, old string) (string, error) {
		if before, _ := Load(path); before.MCP.Servers != nil { // code that uses the settings reports faults
			if _, taken := before.MCP.Servers[name]; taken {
				return "", fmt.Errorf("%s already has a server %q", path, name)
			}
		}
		if old != "" {
			old = ended(old) + "\n"
		}
		for line := range strings.Lines(table.String()) {
			if line != "[mcp]\n" && line != "[mcp.servers]\n" { // the file may already contain them
				old += line
			}
		}
		return old, nil
	})
}

// RemoveServer removes the tables of a server from a settings file, with the comments in them. A server in
// another notation is an error.
func RemoveServer(path, name string) error {
	header := regexp.MustCompile(`^\s*\[\[?\s*([^\]]+?)\s*\]`)
	prefix := "mcp.servers." + name
	return edit(path, func(path, old string) (string, error) {
		var out []string
		inside, found := false, false
		for _, line := range strings.SplitAfter(old, "\n") {
			if m := header.FindStringSubmatch(line); m != nil {
				inside = m[1] == prefix || strings.HasPrefix(m[1], prefix+".")
				found = found || inside
			}
			if !inside {
				out = append(out, line)
			}
		}
		if !found {
			return "", fmt.Errorf("%s has no table [%s]", path, prefix)
		}
		return strings.TrimRight(strings.Join(out, ""), "\n") + "\n", nil
	})
}

// edit replaces the text of a settings file by the result of f, if that adds no fault to it.
func edit(path string, f func(path, old string) (string, error)) error {
	path = followed(path)
	unlock, err := lock(path)
	if err != nil {
		return err
	}
	defer unlock()
	old, _, err := parsed(path)
	if err != nil {
		return err
	}
	text, err := f(path, string(old))
	if err != nil {
		return err
	}
	_, before := Load(path)
	return replaceChecked(path, []byte(text), func(path string) error {
		_, now := Load(path)
		return worse(Faults(before), now)
	})
}

// replaceChecked replaces a settings file if the new one passes the check. The caller holds its lock.
func replaceChecked(path string, data []byte, check func(path string) error) error {
	mode := fs.FileMode(0o600)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*.toml")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // already renamed on success
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := check(f.Name()); err != nil {
		if fault, ok := errors.AsType[Fault](err); ok {
			err = fault.Err // the path is that of a temporary file
		}
		return fmt.Errorf("nothing was changed, because the result would be invalid: %w", err)
	}
	return os.Rename(f.Name(), path)
}

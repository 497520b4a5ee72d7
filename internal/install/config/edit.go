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
	if before, _ := Load(path); before.MCP.Servers != nil { // code that uses the settings reports faults
		if _, taken := before.MCP.Servers[name]; taken {
			return fmt.Errorf("%s already has a server %q", path, name)
		}
	}
	var b bytes.Buffer
	b.Write(old)
	if len(old) > 0 {
		if old[len(old)-1] != '\n' {
			b.WriteByte('\n')
		}
		b.WriteByte('\n')
	}
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
	for line := range strings.Lines(table.String()) {
		if line != "[mcp]\n" && line != "[mcp.servers]\n" { // the file may already contain them
			b.WriteString(line)
		}
	}
	return replace(path, b.Bytes())
}

// RemoveServer removes the tables of a server from a settings file, with the comments in them. A server in
// another notation is an error.
func RemoveServer(path, name string) error {
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
	header := regexp.MustCompile(`^\s*\[\[?\s*([^\]]+?)\s*\]`)
	prefix := "mcp.servers." + name
	var out []string
	inside, found := false, false
	for _, line := range strings.SplitAfter(string(old), "\n") {
		if m := header.FindStringSubmatch(line); m != nil {
			inside = m[1] == prefix || strings.HasPrefix(m[1], prefix+".")
			found = found || inside
		}
		if !inside {
			out = append(out, line)
		}
	}
	if !found {
		return fmt.Errorf("%s has no table [%s]", path, prefix)
	}
	return replace(path, []byte(strings.TrimRight(strings.Join(out, ""), "\n")+"\n"))
}

// replace replaces a settings file if that adds no fault to it. The caller holds its lock.
func replace(path string, data []byte) error {
	_, before := Load(path)
	return replaceChecked(path, data, func(path string) error {
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

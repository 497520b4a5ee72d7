package plugin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/safety/foreign"
	"github.com/inspan/inspan/internal/view/words"
)

const (
	maxManifest = 256 << 10 // bytes
	maxListed   = 100       // paths of one field
	maxName     = 64
)

const nameForm = `^[a-z0-9]+(-[a-z0-9]+)*$`

func validName(name string) bool { return len(name) <= maxName && matches(nameForm, name) }

// manifest is a plugin's own description. The zero value is empty.
type manifest struct {
	name, version, description, author, homepage, license string

	commands, agents, skills, tools []string // clean paths, with slashes
	hooks, servers                  []part
	notes                           []string
}

// part is a file that a manifest names, or inline content instead.
type part struct {
	path   string
	inline json.RawMessage
}

// manifests lists the possible paths of a manifest; the first that exists counts.
func manifests() []string {
	return []string{".inspan-plugin/plugin.json", ".claude-plugin/plugin.json", "plugin.json"}
}

// usual lists what makes a folder without a manifest a plugin.
func usual() []string {
	return []string{"commands", "agents", "skills", "tools", "workflows", "hooks/hooks.json", ".mcp.json"}
}

// readManifest reads the manifest of a folder. A folder without one gets the fallback as its name, if it has
// any part of a plugin.
func readManifest(root *os.Root, fallback string) (manifest, error) {
	for _, at := range manifests() {
		data, err := readFile(root, at, maxManifest)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var m manifest
		if err == nil {
			m, err = parseManifest(data)
		}
		if err != nil {
			return manifest{}, fmt.Errorf("%s: %w", at, err)
		}
		return m, nil
	}
	if !slices.ContainsFunc(usual(), func(at string) bool { _, err := root.Lstat(at); return err == nil }) {
		return manifest{}, errors.New("it is not a plugin: it has no .claude-plugin/plugin.json, and no folder that a plugin has")
	}
	if !validName(fallback) {
		return manifest{}, fmt.Errorf("it has no .claude-plugin/plugin.json, and %q can't be the name of a plugin: a-z, 0-9 and - between",
			fallback)
	}
	return manifest{name: fallback}, nil
}

// parseManifest reads a plugin.json.
func parseManifest(data []byte) (manifest, error) {
	var fields map[string]json.RawMessage
	if err := foreign.Unmarshal(data, &fields); err != nil {
		return manifest{}, fmt.Errorf("it is not understood: %w", err)
	}
	m := manifest{}
	texts := map[string]*string{
		"name": &m.name, "version": &m.version,
		"description": &m.description, "homepage": &m.homepage, "license": &m.license,
	}
	lists := map[string]*[]string{"commands": &m.commands, "agents": &m.agents, "skills": &m.skills, "tools": &m.tools}
	parts := map[string]*[]part{"hooks": &m.hooks, "mcpServers": &m.servers}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		raw, err := fields[key], error(nil)
		switch {
		case string(raw) == "null":
		case texts[key] != nil:
			*texts[key], err = line(raw)
		case lists[key] != nil:
			*lists[key], err = paths(raw)
		case parts[key] != nil:
			*parts[key], err = inlined(raw)
		case key == "author":
			m.author, err = author(raw)
		case !slices.Contains([]string{"$schema", "keywords", "repository", "displayName", "category", "tags"}, key):
			m.notes = append(m.notes, words.OneLine(key, 60)+" of its plugin.json means nothing here")
		}
		if err != nil {
			return manifest{}, fmt.Errorf("%s: %w", key, err)
		}
	}
	if !validName(m.name) {
		return manifest{}, fmt.Errorf("name: %.80q is invalid; use 1 to %d of a-z and 0-9, with - between", m.name, maxName)
	}
	return m, nil
}

// line returns a text as one line without hidden characters.
func line(raw json.RawMessage) (string, error) {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return "", errors.New("it is not text")
	}
	return words.OneLine(text, 1000), nil
}

func author(raw json.RawMessage) (string, error) {
	if text, err := line(raw); err == nil {
		return text, nil
	}
	var who map[string]json.RawMessage
	if err := json.Unmarshal(raw, &who); err != nil {
		return "", errors.New("it is not a text or an object with a name")
	}
	if who["name"] == nil {
		return "", nil
	}
	return line(who["name"])
}

// paths reads one path or a list of them.
func paths(raw json.RawMessage) ([]string, error) {
	var list []string
	if raw[0] == '"' {
		raw = slices.Concat([]byte("["), raw, []byte("]"))
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, errors.New("it is not a path or a list of paths")
	}
	if len(list) > maxListed {
		return nil, fmt.Errorf("it has more than %d paths", maxListed)
	}
	for i, text := range list {
		at, err := inside(text)
		if err != nil {
			return nil, err
		}
		list[i] = at
	}
	return list, nil
}

// inside returns a path that does not leave the folder of the plugin, cleaned.
func inside(s string) (string, error) {
	at := path.Clean(s)
	if s == "" || !fs.ValidPath(at) || strings.ContainsAny(s, `\:`) || strings.ContainsFunc(s, text.Hidden.Has) {
		return "", fmt.Errorf("%q is not a path below the folder of the plugin", words.OneLine(s, 200))
	}
	return at, nil
}

// inlined reads a path, an object, or a list of both.
func inlined(raw json.RawMessage) (out []part, err error) {
	list := []json.RawMessage{raw}
	if raw[0] == '[' {
		list = nil
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, err
		}
	}
	if len(list) > maxListed {
		return nil, fmt.Errorf("it has more than %d entries", maxListed)
	}
	for _, raw := range list {
		if raw[0] == '{' {
			out = append(out, part{inline: raw})
			continue
		}
		at, err := paths(raw)
		if err != nil || raw[0] != '"' {
			return nil, errors.New("it is not a path below the folder of the plugin, an object, or a list of them")
		}
		out = append(out, part{path: at[0]})
	}
	return out, nil
}

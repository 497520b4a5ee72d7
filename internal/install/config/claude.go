package config

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/inspan/inspan/internal/safety/foreign"
)

// ClaudeFiles returns the settings files of Claude Code in a workspace.
func ClaudeFiles() []string { return []string{".claude/settings.json", ".claude/settings.local.json"} }

// Claude is the permissions part of a Claude Code settings file.
type Claude struct {
	File string // of [ClaudeFiles]
	foreign.Permissions
	Err error // why it can't be read
}

// Claudes reads the Claude Code settings files of a workspace that exist.
func Claudes(root string) (out []Claude) {
	for _, file := range ClaudeFiles() {
		data, err := ReadFile(filepath.Join(root, filepath.FromSlash(file)))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		c := Claude{File: file, Err: err}
		if err == nil {
			c.Permissions, c.Err = foreign.ReadPermissions(data, file)
		}
		out = append(out, c)
	}
	return out
}

package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inspan/inspan/internal/base/keep"
)

// maxPin is the most bytes of a file of pins: definitions as JSON, which take a
// little more than they did on the wire.
const maxPin = 4 * maxDefined

// Pins keeps how each tool of servers was defined when the person agreed to it:
// on first sight, as they have agreed to the server, or by [Manager.Agree]. So tools
// can also be offered before a server is connected. The zero value keeps nothing.
//
// There is a file for each server, mode 0600, replaced as a whole. Several processes
// may use one folder.
type Pins struct {
	Dir string
}

// pin is the content of a file.
type pin struct {
	Server string      `json:"server"`
	Source string      `json:"source"`
	Root   string      `json:"root,omitempty"`
	Tools  []*sdk.Tool `json:"tools"`
}

// of is where the pin of a server is. The servers of a project have one for each
// workspace.
func (p Pins) of(s Server, root string) (path string, content pin) {
	content = pin{Server: s.Name, Source: s.Source}
	if s.Source == Project {
		content.Root = root
	}
	sum := sha256.Sum256([]byte(content.Source + "\x00" + content.Root + "\x00" + content.Server))
	return filepath.Join(p.Dir, hex.EncodeToString(sum[:12])+".json"), content
}

// load returns the tools of a server that were agreed to, nil if none were. What
// can't be read counts as agreed to by nobody, which the error says.
func (p Pins) load(s Server, root string) (*toolset, error) {
	path, want := p.of(s, root)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // there is none
	}
	var data []byte
	switch {
	case err != nil:
	case info.Size() > maxPin:
		err = errors.New("it is too big")
	default:
		data, err = keep.Read(path)
	}
	var got pin
	if err == nil {
		err = json.Unmarshal(data, &got)
	}
	if err == nil && (got.Server != want.Server || got.Source != want.Source || got.Root != want.Root) {
		err = errors.New("it is about another server")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return define(s, got.Tools)
}

// patienceLasts is for how long a server that did not answer is not waited for.
const patienceLasts = 24 * time.Hour

// silent reports whether a server was lately waited for in vain, as it is now.
func (p Pins) silent(s Server, root string) bool {
	path, mark := p.silence(s, root)
	info, err := os.Stat(path)
	if p.Dir == "" || err != nil || info.Size() != int64(len(mark)) || time.Since(info.ModTime()) > patienceLasts {
		return false
	}
	data, err := keep.Read(path)
	return err == nil && string(data) == mark
}

// silence is the file that says that a server did not answer, and what is in it: another
// command or address counts as another server.
func (p Pins) silence(s Server, root string) (path, mark string) {
	path, _ = p.of(s, root)
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", []any{s.Command, s.Dir, s.Hosts, s.Read, s.Write, s.URL, s.Kind, s.Bare}))
	return strings.TrimSuffix(path, ".json") + ".silent", hex.EncodeToString(sum[:])
}

// note keeps whether a server answers. That it can't be kept costs only time.
func (p Pins) note(s Server, root string, silent bool) {
	path, mark := p.silence(s, root)
	switch {
	case p.Dir == "":
	case !silent:
		_ = os.Remove(path)
	case keep.MakeDir(p.Dir) == nil:
		_ = keep.Write(path, []byte(mark))
	}
}

// store keeps the tools of a server as agreed to.
func (p Pins) store(s Server, root string, tools *toolset) error {
	path, content := p.of(s, root)
	data, err := json.Marshal(struct {
		pin
		Tools json.RawMessage `json:"tools"`
	}{content, tools.raw})
	if err != nil {
		return err
	}
	if err := keep.MakeDir(p.Dir); err != nil {
		return err
	}
	return keep.Write(path, data)
}

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

// maxPin is the maximum size of a pin file: definitions as JSON, which take a little more space than on the
// wire.
const maxPin = 4 * maxDefined

// Pins stores each tool's definition at its approval: at the first connection, because the person has approved the
// server, or by [Manager.Agree], so tools can also be offered before a server is connected. The zero value stores
// nothing.
//
// There is a file for each server, mode 0600, replaced as a whole. Several processes may use one folder.
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

// of returns the place of a server's pin. Project servers have one for each workspace.
func (p Pins) of(s Server, root string) (path string, content pin) {
	content = pin{Server: s.Name, Source: s.Source}
	if s.Source == Project {
		content.Root = root
	}
	sum := sha256.Sum256([]byte(content.Source + "\x00" + content.Root + "\x00" + content.Server))
	return filepath.Join(p.Dir, hex.EncodeToString(sum[:12])+".json"), content
}

// load returns the approved tools of a server, nil if there are none. An unreadable file counts as no approval,
// which the error reports.
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

// silent reports whether this server was recently waited for in vain.
func (p Pins) silent(s Server, root string) bool {
	path, mark := p.silence(s, root)
	info, err := os.Stat(path)
	if p.Dir == "" || err != nil || info.Size() != int64(len(mark)) || time.Since(info.ModTime()) > patienceLasts {
		return false
	}
	data, err := keep.Read(path)
	return err == nil && string(data) == mark
}

// silence returns the file that records that a server did not answer, and its content: the same name with
// another command or address counts as another server.
func (p Pins) silence(s Server, root string) (path, mark string) {
	path, _ = p.of(s, root)
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", []any{s.Command, s.Dir, s.Hosts, s.Read, s.Write, s.URL, s.Kind, s.Bare}))
	return strings.TrimSuffix(path, ".json") + ".silent", hex.EncodeToString(sum[:])
}

// note records whether a server answers. A failure to store it costs only time.
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

// store stores the tools of a server as approved.
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

package acp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	wire "github.com/coder/acp-go-sdk"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/internal/base/jsonrpc"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/tool"
)

// buffers are the files of a session whose client may have them open, perhaps with unsaved text. Its rules:
//
//   - The client is asked for text files of the workspace that exist on the disk, by whole files. Folders,
//     other files, the inside of a repository and everything elsewhere come from the disk.
//   - Restrictions for files on the disk also apply to the client's: the disk is asked first, each time.
//   - If the client fails, the call fails. The content of the disk never replaces what the person sees, unless
//     the client says that it has no such file.
//   - Text written by the client is on the disk afterwards, so that commands find it.
type buffers struct {
	tool.Files // the disk
	conn       *jsonrpc.Conn
	session    string
	cwd, root  string // the workspace in the client's form, and without links
	reads      bool   // the client can read files for us
	writes     bool   // the client can write files for us

	changing sync.Mutex // makes Change.IfDigest and the change one step for the calls of this session
}

// maxText is the largest file, in bytes, that the client is asked for.
const maxText = 10 << 20

// shareFiles lets the tools of an agent work with the files that the client has open. Searches look at the disk: a
// client would open each file that they read.
func (st *session) shareFiles(agent *inspan.Agent, id string) {
	client, _ := st.agent.capabilities()
	disk := agent.Env.Files
	if disk == nil || !client.Fs.ReadTextFile && !client.Fs.WriteTextFile {
		return
	}
	agent.Env.Files = &buffers{
		Files: disk, conn: st.agent.conn, session: id, cwd: st.cwd, root: st.root, reads: client.Fs.ReadTextFile, writes: client.Fs.WriteTextFile,
	}
	agent.Tools = slices.Clone(agent.Tools)
	for i, t := range agent.Tools {
		if !slices.Contains([]string{"search_files", "find_files", "list_files"}, t.Name) {
			continue
		}
		run := t.Run
		agent.Tools[i].Run = func(ctx context.Context, c *tool.Call) (tool.Result, error) {
			here := *c
			here.Env.Files = disk
			return run(ctx, &here)
		}
	}
}

// clientPath returns the path of a file in the client's form, and whether the client may have the file.
func (b *buffers) clientPath(path string) (string, bool) {
	rel, err := filepath.Rel(b.root, path)
	if err != nil || !text.Inside(b.root, path) || slices.Contains(strings.Split(filepath.ToSlash(rel), "/"), ".git") {
		return "", false
	}
	return filepath.Join(b.cwd, rel), true
}

// Open implements [tool.Files].
func (b *buffers) Open(ctx context.Context, path string) (fs.File, error) {
	f, err := b.Files.Open(ctx, path)
	if !b.reads || err != nil { // for a missing file, some clients would create one
		return f, err
	}
	real, err := b.Resolve(ctx, path)
	name, mayHave := b.clientPath(real)
	if err != nil || !mayHave {
		return f, nil //nolint:nilerr // use the disk
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxText {
		return b.Files.Open(ctx, path)
	}
	disk, err := io.ReadAll(io.LimitReader(f, maxText+1))
	if err != nil {
		return nil, err
	}
	if !isText(disk) {
		return readFile(real, disk, info), nil
	}
	text, err := b.clientText(ctx, name, disk)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return readFile(real, text, info), nil
}

// clientText returns the client's text of a file with this text on the disk. If they only differ in line ends,
// which clients normalise, it returns the disk's.
func (b *buffers) clientText(ctx context.Context, name string, disk []byte) ([]byte, error) {
	text, err := b.ask(ctx, name)
	var refused *jsonrpc.Error
	switch {
	case errors.As(err, &refused) && refused.Code == codeMissing:
		return disk, nil
	case err != nil:
		return nil, fmt.Errorf("the editor did not return the file: %w", err)
	case text == strings.ReplaceAll(string(disk), "\r\n", "\n"):
		return disk, nil
	}
	return []byte(text), nil
}

func (b *buffers) ask(ctx context.Context, name string) (string, error) {
	var answer wire.ReadTextFileResponse
	err := b.conn.Call(ctx, wire.ClientMethodFsReadTextFile, wire.ReadTextFileRequest{SessionId: wire.SessionId(b.session), Path: name},
		&answer)
	return answer.Content, err
}

func isText(data []byte) bool { return utf8.Valid(data) && !bytes.ContainsRune(data, 0) }

// Change implements [tool.Files].
func (b *buffers) Change(ctx context.Context, c tool.Change) error {
	real, err := b.Resolve(ctx, c.Path)
	if err != nil {
		return err
	}
	name, mayHave := b.clientPath(real)
	b.changing.Lock()
	defer b.changing.Unlock()
	before, state := b.disk(ctx, real)
	switch {
	case !b.writes || !mayHave || c.Remove || c.Exec != nil || !isText(c.Data) || len(c.Data) > maxText:
		return b.Files.Change(ctx, c)
	case state == isNew, state == isOther:
		return b.Files.Change(ctx, c) // with its folders and its mode; the editor sees it appear
	case c.Exact && real != filepath.Clean(c.Path):
		return &fs.PathError{Op: "change", Path: c.Path, Err: tool.ErrChanged}
	}
	if b.reads {
		if before, err = b.clientText(ctx, name, before); err != nil {
			return &fs.PathError{Op: "change", Path: c.Path, Err: err}
		}
	}
	if c.IfDigest != "" && c.IfDigest != tool.Digest(before) {
		return &fs.PathError{Op: "change", Path: c.Path, Err: tool.ErrChanged}
	}
	return b.write(ctx, real, name, c)
}

// write gives the client the new text, and makes sure that it is on the disk too.
func (b *buffers) write(ctx context.Context, real, name string, c tool.Change) error {
	// If the disk refuses the change, the client is not asked. No file has this digest, so this changes
	// nothing.
	if err := b.Files.Change(ctx, tool.Change{Path: real, Data: c.Data, Exact: true, IfDigest: "unwritten"}); !errors.Is(err, tool.ErrChanged) {
		return err
	}
	request := wire.WriteTextFileRequest{SessionId: wire.SessionId(b.session), Path: name, Content: string(c.Data)}
	if err := b.conn.Call(ctx, wire.ClientMethodFsWriteTextFile, request, nil); err != nil {
		return &fs.PathError{Op: "change", Path: c.Path, Err: fmt.Errorf("the editor did not save the file: %w", err)}
	}
	after, _ := b.disk(ctx, real)
	if bytes.Equal(after, c.Data) {
		return nil
	}
	c.IfDigest = ""
	return b.Files.Change(ctx, c)
}

// diskState describes the file on the disk at a path.
type diskState int

const (
	isReadable diskState = iota
	isNew
	isOther // a folder, not text, or unreadable
)

func (b *buffers) disk(ctx context.Context, path string) ([]byte, diskState) {
	f, err := b.Files.Open(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, isNew
	}
	if err != nil {
		return nil, isOther
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxText {
		return nil, isOther
	}
	data, err := io.ReadAll(io.LimitReader(f, maxText+1))
	if err != nil || !isText(data) {
		return nil, isOther
	}
	return data, isReadable
}

// readFile returns a file that was read.
func readFile(path string, data []byte, on fs.FileInfo) fs.File {
	return &buffer{Reader: bytes.NewReader(data), info: bufferInfo{on, filepath.Base(path), int64(len(data))}}
}

type buffer struct {
	*bytes.Reader
	info bufferInfo
}

// Stat implements [fs.File].
func (b *buffer) Stat() (fs.FileInfo, error) { return b.info, nil }

// Close implements [fs.File].
func (b *buffer) Close() error { return nil }

// bufferInfo describes a file like the disk does, except for its size.
type bufferInfo struct {
	fs.FileInfo
	name string
	size int64
}

func (i bufferInfo) Name() string { return i.name }
func (i bufferInfo) Size() int64  { return i.size }

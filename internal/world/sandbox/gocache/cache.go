// Package gocache serves the go command a build cache of two layers, as a GOCACHEPROG program.
package gocache

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
)

// Cache is a Go build cache in two layers: an upper one that is written, and a read-only one below. It serves
// the go command as a GOCACHEPROG program, with the protocol of cmd/go/internal/cacheprog (Go 1.24). Both
// layers have the format of the go command's own cache, so that it can use either directly.
type Cache struct {
	Top   string // the upper layer, which need not exist
	Below string // the lower layer; empty means none
}

// request and response are lines of the protocol. Identifiers are bytes, in base64.
type request struct {
	ID       int64
	Command  string
	ActionID []byte
	OutputID []byte
	BodySize int64
}

type response struct {
	ID            int64
	Err           string     `json:",omitempty"`
	KnownCommands []string   `json:",omitempty"`
	Miss          bool       `json:",omitempty"`
	OutputID      []byte     `json:",omitempty"`
	Size          int64      `json:",omitempty"`
	Time          *time.Time `json:",omitempty"`
	DiskPath      string     `json:",omitempty"`
}

const (
	commandGet   = "get"
	commandPut   = "put"
	commandClose = "close"
)

// idSize is the length of an identifier, a SHA-256.
const idSize = 32

// maxLine bounds a request without its body.
const maxLine = 64 << 10

// Serve serves the go command until it sends close or closes the connection. The failure of one request is
// reported in its response; an error concerns the connection.
func (c Cache) Serve(in io.Reader, out io.Writer) error {
	r := bufio.NewReaderSize(in, maxLine)
	answers := json.NewEncoder(out)
	if err := answers.Encode(response{KnownCommands: []string{commandGet, commandPut, commandClose}}); err != nil {
		return err
	}
	for {
		ask, err := nextRequest(r)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		said, err := c.answer(ask, r)
		if err != nil {
			return err
		}
		said.ID = ask.ID
		if err := answers.Encode(said); err != nil {
			return err
		}
		if ask.Command == commandClose {
			return c.trim(time.Now())
		}
	}
}

// nextRequest reads a request, skipping empty lines.
func nextRequest(r *bufio.Reader) (ask request, err error) {
	for {
		line, err := r.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF) && len(line) > 0:
			return ask, fmt.Errorf("read a request of the go command: %w", io.ErrUnexpectedEOF)
		case err != nil:
			return ask, err
		case len(line) > 1:
			if err := json.Unmarshal(line, &ask); err != nil {
				return ask, fmt.Errorf("read a request of the go command: %w", err)
			}
			return ask, nil
		}
	}
}

// answer executes a request. An error means that the connection is unusable.
func (c Cache) answer(ask request, r *bufio.Reader) (response, error) {
	switch ask.Command {
	case commandClose:
		return response{}, nil
	case commandGet:
		return c.get(ask.ActionID), nil
	case commandPut:
		if ask.BodySize < 0 {
			return response{}, errBody
		}
		b := &body{r: r, left: ask.BodySize}
		said := c.put(ask, b)
		return said, b.finish()
	}
	return response{Err: fmt.Sprintf("unknown command %q", ask.Command)}, nil
}

// get looks in both layers.
func (c Cache) get(action []byte) response {
	if len(action) != idSize {
		return response{Err: "the identifier is no SHA-256"}
	}
	for _, dir := range []string{c.Top, c.Below} {
		if dir == "" {
			continue
		}
		said, ok := readEntry(dir, action)
		if !ok {
			continue
		}
		if dir == c.Top {
			markUsed(outputFile(dir, action, "a"))
			markUsed(said.DiskPath)
		}
		return said
	}
	return response{Miss: true}
}

// outputFile returns the path of an entry in a layer: an action ("a") or an output ("d").
func outputFile(dir string, id []byte, kind string) string {
	name := hex.EncodeToString(id)
	return filepath.Join(dir, name[:2], name+"-"+kind)
}

// The record of an action in the go command's format: a version, the identifiers of the action and of its
// output, the output's size, and the time in nanoseconds since 1970.
const (
	recordFormat = "v1 %x %x %20d %20d\n"
	recordSize   = len("v1 ") + 2*(2*idSize+1) + 21 + 21
)

// readEntry reads the record of an action. It returns false if it or its output is missing.
func readEntry(dir string, action []byte) (said response, ok bool) {
	data, err := keep.Read(outputFile(dir, action, "a"))
	if err != nil || len(data) != recordSize {
		return said, false
	}
	fields := strings.Fields(string(data))
	if len(fields) != 5 || fields[0] != "v1" || fields[1] != hex.EncodeToString(action) {
		return said, false
	}
	output, err := hex.DecodeString(fields[2])
	if err != nil || len(output) != idSize {
		return said, false
	}
	size, err1 := strconv.ParseInt(fields[3], 10, 64)
	nanos, err2 := strconv.ParseInt(fields[4], 10, 64)
	path := outputFile(dir, output, "d")
	info, err := os.Stat(path)
	if err != nil || err1 != nil || err2 != nil || !info.Mode().IsRegular() || info.Size() != size {
		return said, false
	}
	at := time.Unix(0, nanos)
	return response{OutputID: output, Size: size, Time: &at, DiskPath: path}, true
}

// put stores an output, and the record that refers to it.
func (c Cache) put(ask request, b *body) response {
	if len(ask.ActionID) != idSize || len(ask.OutputID) != idSize {
		return response{Err: "an identifier is no SHA-256"}
	}
	path := outputFile(c.Top, ask.OutputID, "d")
	err := writeWhole(path, b)
	if err == nil {
		record := fmt.Sprintf(recordFormat, ask.ActionID, ask.OutputID, ask.BodySize, time.Now().UnixNano())
		err = writeWhole(outputFile(c.Top, ask.ActionID, "a"), strings.NewReader(record))
	}
	if err != nil {
		return response{Err: err.Error()}
	}
	return response{DiskPath: path}
}

// writeWhole replaces a file atomically, so that other users of the folder never see a partial one.
func writeWhole(path string, from io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

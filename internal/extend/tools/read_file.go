package tools

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

//go:embed read_file.md
var readFileDoc string

const (
	defaultLines = 2000      // lines of one read
	maxRead      = 100 << 10 // bytes of one read
	maxPlain     = 500 << 10 // the same for a program
	maxLine      = 2000      // bytes of one line
	maxImage     = 5 << 20   // bytes of an image
)

type readArgs struct {
	Path   string `json:"path" jsonschema:"file, or blob:NAME"`
	Offset int    `json:"offset,omitempty" jsonschema:"first line to read, from 1"`
	Limit  int    `json:"limit,omitempty" jsonschema:"most lines"`
}

func readFile() tool.Tool {
	t := tool.New("read_file", readFileDoc, runRead)
	effects := pathEffect(tool.Read, func(in readArgs) string { return in.Path })
	t.Effects = func(ctx context.Context, c *tool.Call) ([]tool.Effect, error) {
		if in, err := tool.Args[readArgs](c); err == nil && strings.HasPrefix(in.Path, blobPrefix) {
			return []tool.Effect{}, nil
		}
		return effects(ctx, c)
	}
	return t
}

func runRead(ctx context.Context, c *tool.Call, in readArgs) (tool.Result, error) {
	if in.Offset < 0 || in.Limit < 0 {
		return tool.Result{}, errors.New("offset and limit count from 1")
	}
	if name, ok := strings.CutPrefix(in.Path, blobPrefix); ok {
		return readBlob(ctx, c, name, in)
	}
	path, err := Resolve(ctx, c, in.Path)
	if err != nil {
		return tool.Result{}, err
	}
	data, err := readWhole(ctx, c, path)
	if errors.Is(err, errTooBig) {
		return readLong(ctx, c, path, in)
	}
	if err != nil {
		return tool.Result{}, err
	}
	files := []tool.File{{Path: path, Digest: tool.Digest(data)}}
	if media := llm.ImageType(data); media != "" {
		r, err := imageResult(Shown(c, path), media, data)
		r.Files = files
		return r, err
	}
	if isPDF(data) {
		return readPDF(ctx, c, path, data, in)
	}
	text, enc, ok := decode(data)
	if !ok {
		return tool.Result{}, errBinary(Shown(c, path), data)
	}
	w := newWindow(c, in)
	_, _ = io.WriteString(w, unix(text)) // a window accepts everything
	out, err := w.result()
	if err != nil {
		return tool.Result{}, err
	}
	if c.Parent == "" {
		out += textNote(text, enc)
	}
	r := tool.Text(out)
	r.Files = files
	return r, nil
}

// textNote describes what the numbered lines cannot show.
func textNote(text string, enc encoding) string {
	var notes []string
	if enc != plainUTF8 {
		notes = append(notes, "encoding "+enc.String())
	}
	if endsInCRLF(text) {
		notes = append(notes, "CRLF line ends")
	}
	if notes == nil {
		return ""
	}
	return fmt.Sprintf("\n[%s; edits keep that]", strings.Join(notes, ", "))
}

// readLong shows a file while reading it, because it is too large for memory. It can't be edited, so nothing is
// recorded about its content.
func readLong(ctx context.Context, c *tool.Call, path string, in readArgs) (tool.Result, error) {
	f, err := c.Env.Files.Open(ctx, path)
	if err != nil {
		return tool.Result{}, err
	}
	defer f.Close()
	return readStream(c, f, Shown(c, path), in)
}

// readBlob shows a blob while reading it, as blobs may be too large for memory.
func readBlob(ctx context.Context, c *tool.Call, name string, in readArgs) (tool.Result, error) {
	r, err := openBlob(ctx, c, name)
	if err != nil {
		return tool.Result{}, err
	}
	defer r.Close()
	return readStream(c, r, name, in)
}

func readStream(c *tool.Call, r io.Reader, name string, in readArgs) (tool.Result, error) {
	src := bufio.NewReaderSize(r, sniffed)
	head, err := src.Peek(sniffed)
	if err != nil && !errors.Is(err, io.EOF) {
		return tool.Result{}, err
	}
	if media := llm.ImageType(head); media != "" {
		data, err := io.ReadAll(io.LimitReader(src, maxImage+1))
		if err != nil {
			return tool.Result{}, err
		}
		return imageResult(name, media, data)
	}
	if looksBinary(head) {
		return tool.Result{}, errBinary(name, head)
	}
	w := newWindow(c, in)
	if _, err := io.Copy(w, src); err != nil {
		return tool.Result{}, err
	}
	out, err := w.result()
	return tool.Text(strings.ToValidUTF8(out, "\ufffd")), err
}

func imageResult(name, media string, data []byte) (tool.Result, error) {
	if len(data) > maxImage {
		return tool.Result{}, fmt.Errorf("%s is an image larger than %s; make it smaller first", name, size(maxImage))
	}
	text := fmt.Sprintf("%s: %s, %s", name, media, size(int64(len(data))))
	return tool.Result{Parts: llm.Parts{llm.Text{Text: text}, llm.Image{MediaType: media, Data: data}}}, nil
}

package tools

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/tool"
)

//go:embed write_file.md
var writeFileDoc string

const maxReplaced = 4 << 10 // bytes shown of a file that was replaced unread

type writeArgs struct {
	Path    string  `json:"path" jsonschema:"file"`
	Content *string `json:"content,omitempty" jsonschema:"the whole text"`
	Blob    string  `json:"blob,omitempty" jsonschema:"stored blob to write, instead of content"`
}

func writeFile() tool.Tool {
	t := tool.New("write_file", writeFileDoc, runWrite)
	t.HiddenFields = []string{"blob"} // results that mention a blob say how to use it
	t.Effects = pathEffect(tool.Write, func(in writeArgs) string { return in.Path })
	t.Preview = withArgs(func(ctx context.Context, c *tool.Call, in writeArgs) (string, error) {
		d, err := draftWrite(ctx, c, in)
		return d.preview(c, err)
	})
	return t
}

func runWrite(ctx context.Context, c *tool.Call, in writeArgs) (tool.Result, error) {
	d, err := draftWrite(ctx, c, in)
	if err != nil {
		return tool.Result{}, err
	}
	unread := ""
	if d.partlyRead {
		if unread, err = replaced(ctx, c, d); err != nil {
			return tool.Result{}, err
		}
		d.partlyRead = false // the session has written all of it
	}
	verb := "created"
	if d.exists {
		verb = "replaced"
	}
	s := fmt.Sprintf("%s %s: %s", verb, Shown(c, d.path), size(int64(len(d.after))))
	if d.new != "" {
		s += ", " + text.Count(lines(d.new), "line")
	}
	s += unread
	for _, note := range d.notes {
		s += "\n" + note
	}
	return d.made(ctx, c, s)
}

// replaced describes the content of a file that is about to be replaced unread. All of it is stored in a blob,
// if there are blobs.
func replaced(ctx context.Context, c *tool.Call, d draft) (string, error) {
	said := "\nThis session had not read it. It held " + size(int64(len(d.before)))
	if c.Env.Blobs != nil {
		blob, err := c.Env.Blobs.Put(ctx, bytes.NewReader(d.before))
		if err != nil {
			return "", fmt.Errorf("keep what would be replaced: %w; nothing was written", err)
		}
		said += fmt.Sprintf(" (to bring that back: write_file with path %s and blob %s)", Shown(c, d.path), blob)
	}
	if d.old == "" {
		return said, nil
	}
	head, tail, dropped := text.CutMiddle(d.old, maxReplaced)
	if dropped > 0 {
		head += fmt.Sprintf("… %s left out …\n", size(int64(dropped)))
	}
	return said + ":\n" + head + tail, nil
}

// draftWrite begins with the current file, which must not have changed since the session read it.
func draftWrite(ctx context.Context, c *tool.Call, in writeArgs) (draft, error) {
	if (in.Content == nil) == (in.Blob == "") {
		return draft{}, errors.New("give either content or blob")
	}
	d, err := open(ctx, c, in.Path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return draft{}, err
	}
	if _, seen := c.Seen.Digest(d.path); seen && d.partlyRead {
		return draft{}, changed(c, d.path)
	}
	if in.Blob != "" {
		return d.fill(ctx, c, in.Blob)
	}
	return d.rewrite(*in.Content)
}

// fill sets the content from a blob, byte for byte.
func (d draft) fill(ctx context.Context, c *tool.Call, blob string) (draft, error) {
	r, err := openBlob(ctx, c, blob)
	if err != nil {
		return draft{}, err
	}
	defer r.Close()
	d.after, err = io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return draft{}, err
	}
	if len(d.after) > maxFile {
		return draft{}, fmt.Errorf("the blob is larger than %s", size(maxFile))
	}
	d.old, _, _ = decode(d.before)
	d.new, _, _ = decode(d.after)
	return d, nil
}

// rewrite sets new text. It keeps the file's encoding and line ends, which a model does not reproduce.
func (d draft) rewrite(text string) (draft, error) {
	old, enc, ok := decode(d.before)
	if !ok {
		old, enc = "", plainUTF8
	}
	if endsInCRLF(old) && strings.Contains(text, "\n") && !strings.Contains(text, "\r\n") {
		text = dos(text)
		d.notes = append(d.notes, "the file has CRLF line ends; they were kept")
	}
	if enc != plainUTF8 {
		text = strings.TrimPrefix(text, "\ufeff")
		d.notes = append(d.notes, "the file is "+enc.String()+"; that was kept")
	}
	var err error
	d.after, err = enc.encode(text)
	d.old, d.new = old, text
	return d, err
}

// lines counts lines; the last one may lack a line end.
func lines(text string) int {
	n := strings.Count(text, "\n")
	if text != "" && !strings.HasSuffix(text, "\n") {
		n++
	}
	return n
}

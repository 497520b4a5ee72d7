package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/tool"
)

// pdfFor is the time limit for the text of a PDF.
const pdfFor = time.Minute

func isPDF(data []byte) bool { return bytes.HasPrefix(data, []byte("%PDF-")) }

// readPDF shows the text of a PDF, as extracted by pdftotext (poppler). The file may come from an attacker, so
// pdftotext runs in a sandbox where it can only read.
func readPDF(ctx context.Context, c *tool.Call, path string, data []byte, in readArgs) (tool.Result, error) {
	unread := errBinary(Shown(c, path), data)
	box := tool.Box{Level: tool.BoxRead}
	if !text.Inside(c.Env.Root, path) {
		box.Read = []string{path}
	}
	if !c.Env.Walls.Read {
		box = tool.Box{Level: tool.BoxNone}
	}
	if c.Env.Procs == nil || !c.Env.Walls.Read && c.Mode != tool.ModeYolo {
		return tool.Result{}, unread
	}
	ctx, cancel := context.WithTimeout(ctx, pdfFor)
	defer cancel()
	w := newWindow(c, in)
	p, err := c.Env.Procs.Start(ctx, tool.Command{
		Args: []string{"pdftotext", "-q", "-layout", path, "-"},
		Dir:  c.Env.Root, Output: w, Box: box,
	})
	if err != nil {
		return tool.Result{}, unread
	}
	code, err := p.Wait()
	switch {
	case ctx.Err() != nil:
		return tool.Result{}, errors.Join(fmt.Errorf("pdftotext took more than %v", pdfFor), unread)
	case err != nil || code != 0:
		return tool.Result{}, fmt.Errorf("pdftotext ended with exit code %d: %w", code, unread)
	}
	out, err := w.result()
	if err != nil {
		return tool.Result{}, err
	}
	return tool.Text(strings.ToValidUTF8(strings.ReplaceAll(out, "\f", ""), "\ufffd") +
		"\n[the text of a PDF, as pdftotext tells it; pdftoppm -png in bash makes images of its pages]"), nil
}

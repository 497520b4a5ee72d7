package markdown

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/png"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// Limits of a picture that is drawn in a terminal.
const (
	pictureColumns = 120
	pictureRows    = 60
	pictureBytes   = 64 << 10 // of base64
	picturePixels  = 1 << 20  // of the image, before it is shrunk
)

// picture is a paragraph that is only an image with its data in its address. The parser never sees the data,
// because it is slow for long text.
type picture struct {
	ast.BaseBlock
	name  string // its replacement text
	title string // more about it
	media string // such as "image/png"
	data  string // base64; empty means it is broken
}

// Kind is that of text.
func (*picture) Kind() ast.NodeKind { return ast.KindTextBlock }

// IsRaw keeps the parser from reading it.
func (*picture) IsRaw() bool { return true }

// Dump shows it to people who debug the parser.
func (n *picture) Dump(source []byte, level int) { ast.DumpHelper(n, source, level, nil, nil) }

// pictures makes pictures of paragraphs.
type pictures struct{}

// Transform looks at paragraphs of one line only.
func (pictures) Transform(n *ast.Paragraph, r text.Reader, _ parser.Context) {
	if n.Lines().Len() != 1 {
		return
	}
	line := n.Lines().At(0)
	p := readPicture(strings.TrimSpace(string(line.Value(r.Source()))))
	if p == nil {
		return
	}
	p.SetBlankPreviousLines(n.HasBlankPreviousLines())
	n.Parent().InsertBefore(n.Parent(), n, p)
	n.Parent().RemoveChild(n.Parent(), n)
}

// readPicture parses ![name](data:image/...;base64,...), with or without a title; nil means the line is something
// else. An incomplete one is broken.
func readPicture(line string) *picture {
	rest, ok := strings.CutPrefix(line, "![")
	name, rest, found := strings.Cut(rest, "](data:image/")
	if !ok || !found || strings.ContainsAny(name, "[]") {
		return nil
	}
	p := &picture{name: strings.TrimRight("[image: "+unescape(name), ": ") + "]"}
	rest, closed := strings.CutSuffix(rest, ")")
	address, title, _ := strings.Cut(rest, " ")
	kind, data, found := strings.Cut(address, ";base64,")
	switch {
	case strings.Contains(address, ")"), strings.Contains(title, ")") && !strings.HasPrefix(title, `"`): // the image ends before the line
		return nil
	case closed && found && slices.Contains([]string{"png", "jpeg", "gif"}, kind) && isBase64(data):
		p.media, p.data = "image/"+kind, data
	}
	p.title = strings.Trim(strings.TrimSpace(title), `"'`)
	return p
}

// named returns the picture in words: its name and title, or else its type and size.
func (n *picture) named() string {
	about := n.title
	if about == "" && n.media != "" {
		about = n.about()
	}
	if about == "" {
		return Plain(n.name)
	}
	return Plain(strings.TrimSuffix(n.name, "]") + ", " + about + "]")
}

// about returns the type and the size of the data.
func (n *picture) about() string {
	about := strings.ToUpper(strings.TrimPrefix(n.media, "image/"))
	raw := base64.NewDecoder(base64.StdEncoding, strings.NewReader(n.data))
	if size, err := png.DecodeConfig(raw); err == nil {
		about += fmt.Sprintf(", %d x %d", size.Width, size.Height)
	}
	return about + fmt.Sprintf(", %d bytes", base64.StdEncoding.DecodedLen(len(n.data))-strings.Count(n.data, "="))
}

func isBase64(text string) bool {
	for i := range len(text) {
		switch c := text[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '+', c == '/', c == '=':
		default:
			return false
		}
	}
	return text != ""
}

// picture draws a PNG with half blocks, if there are colours; all others, and broken or too big ones, are
// named.
func (p *painter) picture(n *picture, width int) []line {
	if !p.style.NoColor && !p.style.Named {
		if img := n.decode(); img != nil {
			return halves(img, min(width, pictureColumns))
		}
	}
	return wrap([]span{{n.named(), look{}}}, width)
}

func (n *picture) decode() image.Image {
	if n.media != "image/png" || len(n.data) > pictureBytes {
		return nil
	}
	raw, err := base64.StdEncoding.DecodeString(n.data)
	if err != nil {
		return nil
	}
	size, err := png.DecodeConfig(bytes.NewReader(raw))
	if err != nil || size.Width < 1 || size.Height < 1 || size.Width > picturePixels/size.Height {
		return nil
	}
	img, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		return nil
	}
	return img
}

// halves draws an image in at most the given columns. Each cell shows two pixels, one above the other.
func halves(img image.Image, columns int) []line {
	b := img.Bounds()
	w, h := sizeWithin(b, columns, 2*pictureRows)
	at := func(x, y int) string {
		if y >= h {
			return ""
		}
		return nearest(Mean(img, Cell(b, x, y, w, h)).RGBA())
	}
	var out []line
	for y := 0; y < h; y += 2 {
		l := make(line, 0, w)
		for x := range w {
			l = append(l, half(at(x, y), at(x, y+1)))
		}
		out = append(out, l)
	}
	return out
}

// half returns a cell of two colours; an empty one is the background's.
func half(upper, lower string) span {
	switch {
	case upper == "" && lower == "":
		return span{" ", look{}}
	case upper == "":
		return span{"▄", look{color: "38;5;" + lower}}
	case lower == "":
		return span{"▀", look{color: "38;5;" + upper}}
	case upper == lower:
		return span{"█", look{color: "38;5;" + upper}}
	}
	return span{"▀", look{color: "38;5;" + upper + ";48;5;" + lower}}
}

// withoutData removes the data from the addresses in text that is shown as it is.
func withoutData(text string) string {
	var d dataless
	out := d.write(text)
	return out + d.rest()
}

// dataless is withoutData for text in pieces.
type dataless struct {
	held   string // possible beginning of an address with data
	within bool   // the text is data
}

// dataStart is the beginning of an address with data.
const dataStart = "](data:"

func (d *dataless) write(text string) string {
	var b strings.Builder
	for text = d.rest() + text; ; {
		if d.within {
			end := strings.IndexFunc(text, func(r rune) bool { return r <= ' ' || r == ')' })
			if end < 0 {
				return b.String()
			}
			text, d.within = text[end:], false
		}
		before, rest, found := strings.Cut(text, dataStart)
		if !found {
			break
		}
		b.WriteString(before + dataStart + "…")
		text, d.within = rest, true
	}
	n := min(len(text), len(dataStart)-1)
	for !strings.HasSuffix(text, dataStart[:n]) {
		n--
	}
	text, d.held = text[:len(text)-n], text[len(text)-n:]
	return b.String() + text
}

// rest returns the held text.
func (d *dataless) rest() string {
	held := d.held
	d.held = ""
	return held
}

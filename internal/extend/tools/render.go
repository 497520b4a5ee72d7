package tools

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"html"
	"image/png"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/markdown"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

//go:embed render.md
var renderDoc string

const (
	imageCells = 60       // width of an image on a terminal
	maxShown   = 64 << 10 // bytes of the shown content
)

type renderArgs struct {
	Title    string       `json:"title" jsonschema:"what it shows, in a few words"`
	Markdown string       `json:"markdown,omitempty" jsonschema:"text to show"`
	Table    *renderTable `json:"table,omitempty" jsonschema:"a table to show"`
	Chart    *renderChart `json:"chart,omitempty" jsonschema:"a chart to draw"`
	Image    string       `json:"image,omitempty" jsonschema:"an image file to show: PNG, JPEG or GIF"`
	SaveTo   string       `json:"save_to,omitempty" jsonschema:"also write it as one HTML page to this file"`
}

type renderTable struct {
	Head []string   `json:"head"`
	Rows [][]string `json:"rows"`
}

type renderChart struct {
	Kind   string         `json:"kind" enum:"bar,line,scatter,histogram" jsonschema:"of a scatter the first series is x"`
	X      string         `json:"x,omitempty" jsonschema:"what the horizontal axis shows"`
	Y      string         `json:"y,omitempty" jsonschema:"what the vertical axis shows"`
	Labels []string       `json:"labels,omitempty" jsonschema:"of the values, in order"`
	Series []renderSeries `json:"series"`
}

type renderSeries struct {
	Name   string    `json:"name,omitempty"`
	Values []float64 `json:"values"`
}

func render() tool.Tool {
	t := tool.New("render", renderDoc, runRender)
	t.Effects = withArgs(func(ctx context.Context, c *tool.Call, in renderArgs) ([]tool.Effect, error) {
		var effects []tool.Effect
		for _, e := range []tool.Effect{{Kind: tool.Read, Path: in.Image}, {Kind: tool.Write, Path: in.SaveTo}} {
			if e.Path == "" {
				continue
			}
			path, err := Resolve(ctx, c, e.Path)
			if err != nil {
				return nil, err
			}
			effects = append(effects, tool.Effect{Kind: e.Kind, Path: path})
		}
		return effects, nil
	})
	return t
}

func runRender(ctx context.Context, c *tool.Call, in renderArgs) (tool.Result, error) {
	p, err := drawn(ctx, c, in)
	if err != nil {
		return tool.Result{}, err
	}
	if len(p.show) > maxShown {
		return tool.Result{}, fmt.Errorf("that is %s to show, more than %s; show less, or write a file", size(int64(len(p.show))), size(maxShown))
	}
	r := tool.Text("The person sees it: " + strings.Join(p.parts, ", ") + ".")
	if in.SaveTo != "" {
		d, err := load(ctx, c, in.SaveTo)
		if err != nil && d.path == "" {
			return tool.Result{}, err
		}
		if d, err = d.rewrite(markdown.Page(in.Title, append([]string{"<h1>" + html.EscapeString(text.Line(in.Title)) + "</h1>"},
			p.page...)...)); err != nil {
			return tool.Result{}, err
		}
		file, err := d.commit(ctx, c)
		if err != nil {
			return tool.Result{}, err
		}
		r = tool.Text("The person sees it: " + strings.Join(p.parts, ", ") + ". It is also in " + Shown(c, d.path) + ".")
		file.Diff = "" // of a page, which is not read as text
		r.Files = []tool.File{file}
		p.show += "\n*" + Shown(c, d.path) + "*\n"
	}
	r.Show = "**" + text.Line(in.Title) + "**\n\n" + p.show
	return r, nil
}

// picture is the shown content, as markdown and as pieces of a page.
type picture struct {
	show  string
	page  []string
	parts []string // its contents, for the model
}

func (p *picture) add(what, show string, page ...string) {
	p.parts, p.page = append(p.parts, what), append(p.page, page...)
	p.show += strings.TrimRight(show, "\n") + "\n\n"
}

// drawn draws everything given, in the order of the arguments.
func drawn(ctx context.Context, c *tool.Call, in renderArgs) (p picture, err error) {
	if in.Markdown != "" {
		p.add("text", in.Markdown, markdown.HTML(in.Markdown, nil))
	}
	if t := in.Table; t != nil {
		if len(t.Head)+len(t.Rows) == 0 {
			return p, errors.New("the table is empty")
		}
		table := markdown.Table{Head: t.Head, Rows: t.Rows}
		p.add("a table of "+text.Count(len(t.Rows), "row"), table.Markdown(), table.HTML())
	}
	if in.Chart != nil {
		chart := markdown.Chart{Kind: in.Chart.Kind, X: in.Chart.X, Y: in.Chart.Y, Labels: in.Chart.Labels}
		for _, s := range in.Chart.Series {
			chart.Series = append(chart.Series, markdown.Series{Name: s.Name, Values: s.Values})
		}
		if err := chart.Check(); err != nil {
			return p, err
		}
		p.add("a "+chart.Kind+" chart", chart.Markdown(), chart.SVG())
	}
	if in.Image != "" {
		if err := p.image(ctx, c, in.Image); err != nil {
			return p, err
		}
	}
	if len(p.parts) == 0 {
		return p, errors.New("there is nothing to show: give markdown, table, chart or image")
	}
	return p, nil
}

// image adds an image file: small for the terminal, whole for the page.
func (p *picture) image(ctx context.Context, c *tool.Call, file string) error {
	path, err := Resolve(ctx, c, file)
	if err != nil {
		return err
	}
	data, err := readWhole(ctx, c, path)
	if err != nil {
		return err
	}
	media := llm.ImageType(data)
	at, err := sizeOf(media, data)
	switch {
	case err != nil:
		return fmt.Errorf("%s can't be shown: PNG, JPEG and GIF can", Shown(c, path))
	case at.X*at.Y > maxPixels:
		return fmt.Errorf("%s is too large to be shown: %d x %d pixels", Shown(c, path), at.X, at.Y)
	}
	img, err := decodeImage(media, data)
	if err != nil {
		return fmt.Errorf("%s: %w", Shown(c, path), err)
	}
	small := markdown.Thumbnail(img, imageCells)
	if _, err := png.DecodeConfig(bytes.NewReader(small)); err != nil {
		return fmt.Errorf("%s has nothing to show", Shown(c, path))
	}
	name := html.EscapeString(Shown(c, path))
	about := fmt.Sprintf("%s, %d x %d, %s", strings.ToUpper(strings.TrimPrefix(media, "image/")), at.X, at.Y, size(int64(len(data))))
	p.add("an image", "!["+strings.NewReplacer("[", "(", "]", ")", "\n", " ").Replace(Shown(c, path))+"](data:image/png;base64,"+
		base64.StdEncoding.EncodeToString(small)+` "`+about+`")`,
		`<p><img alt="`+name+`" src="data:`+media+`;base64,`+base64.StdEncoding.EncodeToString(data)+`"></p>`)
	return nil
}

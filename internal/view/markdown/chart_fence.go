package markdown

import (
	"encoding/json"
	"strings"
)

const (
	fenceWord  = "chart" // the language of a block with a chart
	fenceWidth = 72      // cells of the drawing in it, which fits into 80
	mostWidth  = 100     // largest width of a chart, however wide the terminal is
)

// Markdown returns the chart as a block of code: a drawing of 72 cells for readers of plain markdown, and the
// data in the line of its fence, from which Drawn makes a fitting one.
func (c Chart) Markdown() string {
	data, err := json.Marshal(c)
	if err != nil { // Check has refused it
		data = nil
	}
	info := strings.ReplaceAll(string(data), "`", `\u0060`)
	return "```" + fenceWord + " " + info + "\n" + c.Text(fenceWidth) + "\n```\n"
}

// Drawn redraws a block of code from the text after its fence, in at most the given width. It is empty if the block
// is not a chart of Markdown.
func Drawn(info string, width int) string {
	data, ok := strings.CutPrefix(info, fenceWord+" ")
	var c Chart
	if !ok || width < 1 || json.Unmarshal([]byte(data), &c) != nil || c.Check() != nil {
		return ""
	}
	return c.Text(min(width, mostWidth))
}

package markdown

import (
	"encoding/json"
	"strings"
)

const (
	fenceWord  = "chart" // the language of a block that holds a chart
	fenceWidth = 72      // cells of the drawing in it, which fits where 80 do
	mostWidth  = 100     // that a chart is drawn in, however wide the terminal is
)

// Markdown is the chart as a block of code: a drawing of 72 cells for whoever knows no
// more than markdown, and in the line of its fence the data, from which Drawn makes one
// that fits.
func (c Chart) Markdown() string {
	data, err := json.Marshal(c)
	if err != nil { // Check has refused it
		data = nil
	}
	info := strings.ReplaceAll(string(data), "`", `\u0060`)
	return "```" + fenceWord + " " + info + "\n" + c.Text(fenceWidth) + "\n```\n"
}

// Drawn draws a block of code anew from what stands behind its fence, in at most so many
// cells. It is empty if the block is not a chart of Markdown.
func Drawn(info string, width int) string {
	data, ok := strings.CutPrefix(info, fenceWord+" ")
	var c Chart
	if !ok || width < 1 || json.Unmarshal([]byte(data), &c) != nil || c.Check() != nil {
		return ""
	}
	return c.Text(min(width, mostWidth))
}

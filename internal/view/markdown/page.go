package markdown

import (
	_ "embed"
	escaper "html"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
)

//go:embed page.css
var pageStyle string

// Page returns one self-contained HTML page: no scripts, nothing external, and a policy that tells browsers so.
// The title is text. Each piece of the body is inserted unchanged, so it must be harmless: the results of
// Chart.SVG, Table.HTML and markdown.HTML are.
func Page(title string, body ...string) string {
	title = escaper.EscapeString(text.Line(title))
	var b strings.Builder
	b.WriteString("<!doctype html>\n<html>\n<head>\n<meta charset=\"utf-8\">\n" +
		`<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">` + "\n" +
		`<meta name="viewport" content="width=device-width, initial-scale=1">` + "\n" +
		`<meta name="referrer" content="no-referrer">` + "\n<title>" + title + "</title>\n<style>\n" + pageStyle + "</style>\n</head>\n<body>\n")
	for _, piece := range body {
		b.WriteString(strings.TrimRight(piece, "\n") + "\n")
	}
	b.WriteString("</body>\n</html>\n")
	return b.String()
}

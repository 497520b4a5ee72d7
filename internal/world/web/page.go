package web

import (
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
)

// A Page is the content of an address, for a model.
type Page struct {
	Title  string // one line; may be empty
	Byline string // the author, if given
	Date   string // date of publication, if given
	Text   string // Markdown for HTML, otherwise unchanged; UTF-8
	Cut    bool   // the page is longer than the part that was read
	Note   string // a note for a model; may be empty
}

// Read converts the body of a response with its Content-Type, which may be empty, to a page. Links are made
// absolute from base, which may be nil. If a body can't be read as text, the error gives the reason and an
// alternative, for a model.
func Read(body []byte, contentType string, base *url.URL) (Page, error) {
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil && kind == "" || kind == "application/octet-stream" || !strings.Contains(kind, "/") {
		kind, _, _ = mime.ParseMediaType(http.DetectContentType(body))
	}
	if !textual(kind) {
		return Page{}, notText(kind, len(body))
	}
	isHTML := kind == "text/html" || kind == "application/xhtml+xml"
	s, err := decode(body, params["charset"], isHTML)
	if err != nil {
		return Page{}, err
	}
	if strings.IndexByte(s[:min(len(s), 8<<10)], 0) >= 0 {
		return Page{}, notText("binary data that says it is "+kind, len(body))
	}
	p := Page{Text: s}
	switch {
	case isHTML:
		p = readHTML([]byte(s), base)
	case isJSON(kind):
		p.Text = indented(s)
	default:
		p.Text = text.Page(strings.ReplaceAll(s, "\r\n", "\n"))
	}
	if len(p.Text) > maxBody*2 {
		p.Text, p.Cut = text.Head(p.Text, maxBody*2), true
	}
	return p, nil
}

func isJSON(kind string) bool { return kind == "application/json" || strings.HasSuffix(kind, "+json") }

// textual reports media types that are text.
func textual(kind string) bool {
	if strings.HasPrefix(kind, "image/") {
		return false
	}
	switch kind {
	case "application/javascript", "application/ecmascript", "application/xml", "application/xhtml+xml", "application/x-ndjson",
		"application/jsonl", "application/yaml", "application/x-yaml", "application/toml", "application/x-sh", "application/sql",
		"application/graphql", "application/x-www-form-urlencoded", "application/x-httpd-php", "application/rtf", "application/x-tex", "application/x-latex":
		return true
	}
	return strings.HasPrefix(kind, "text/") || isJSON(kind) || strings.HasSuffix(kind, "+xml")
}

func notText(kind string, size int) error {
	what := kind + ", " + fmt.Sprint(size) + " bytes"
	if strings.HasPrefix(kind, "image/") {
		return fmt.Errorf("it is an image (%s); save it with http_request and save_to, then look at it with read_file", what)
	}
	if kind == "application/pdf" {
		return fmt.Errorf("it is a PDF (%s); look for the same as a web page, or save it with http_request and save_to and read it with bash "+
			"and pdftotext", what)
	}
	return fmt.Errorf("it is not text (%s); save it with http_request and save_to, or with bash and curl -o", what)
}

// indented indents JSON, unless it becomes much longer.
func indented(s string) string {
	const most = 64
	size, depth := 0, 0
	quoted := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > most {
				return text.Page(s)
			}
			size += 1 + 2*depth
		case c == '}' || c == ']' || c == ',':
			if c != ',' {
				depth = max(0, depth-1)
			}
			size += 1 + 2*depth
		}
	}
	if size > 2*len(s)+64<<10 {
		return text.Page(s)
	}
	return text.Page(reindent(s))
}

package server

import (
	"embed"
	"net/http"
	"path"
	"strings"

	"github.com/inspan/inspan/tool"
)

// pageFiles is the web page. Its files hold no data, so everyone may load them: all data that the page shows
// comes from the endpoints (api.go), with the token of the visitor. Each address of the page gets the same
// document.
//
//go:embed page
var pageFiles embed.FS

// pagePaths returns the addresses of the page and its files. A part that is * matches any name.
func pagePaths() []string {
	return []string{
		"/", "/inbox", "/search", "/new", "/s/*", "/s/*/trace", "/s/*/cost", "/s/*/team", "/compare/*/*", "/eval/*",
		"/page/*", "/page/lit/*", "/page/lit/directives/*",
	}
}

// pagePattern returns such an address in the form of a mux.
func pagePattern(at string) string {
	pattern, n := "", 0
	for part := range strings.SplitSeq(strings.TrimPrefix(at, "/"), "/") {
		switch part {
		case "":
			part = "{$}"
		case "*":
			n++
			part = "{part" + strings.Repeat("_", n) + "}"
		}
		pattern += "/" + part
	}
	return pattern
}

// pagePolicy makes the page load and reach nothing but this server, and run no script but its own files.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types lit-html"

// pageTypes returns the media types of its files by extension. The machine's own table may differ.
func pageTypes() map[string]string {
	return map[string]string{
		".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
		"": "text/plain; charset=utf-8",
	}
}

// servePage serves the page and its files.
func (s *Server) servePage() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, isFile := strings.CutPrefix(r.URL.Path, "/page/")
		if !isFile {
			name = "index.html"
			s.codes.visit(w)
		}
		sendFile(w, r, name, http.StatusOK)
	})
}

// strays reports whether a person has opened an address in a browser that is no address of the page, nor of the API.
func strays(r *http.Request) bool {
	return r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" &&
		!strings.HasPrefix(r.URL.Path, "/api/") && !strings.HasPrefix(r.URL.Path, "/v1/")
}

// sendFile sends a file of the page.
func sendFile(w http.ResponseWriter, r *http.Request, name string, status int) {
	data, err := pageFiles.ReadFile("page/" + name)
	if err != nil {
		RefuseWith(w, Missing("file", name))
		return
	}
	h := w.Header()
	h.Set("Content-Security-Policy", pagePolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Content-Type", pageTypes()[path.Ext(name)])
	h.Set("Cache-Control", "no-cache") // the browser checks each time whether the file has changed
	tag := `"` + tool.Digest(data) + `"`
	h.Set("ETag", tag)
	if status == http.StatusOK && r.Header.Get("If-None-Match") == tag {
		status, data = http.StatusNotModified, nil
	}
	w.WriteHeader(status)
	_, _ = w.Write(data) // the client may have disconnected
}

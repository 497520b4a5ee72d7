package netguard

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Registries returns the well-known public hosts of package managers.
func Registries() Hosts {
	return append(Unseen(),
		"registry.npmjs.org", "registry.yarnpkg.com", "nodejs.org", "jsr.io", "npm.jsr.io", "deno.land", // JavaScript
		"pypi.org", "files.pythonhosted.org", // Python
		"proxy.golang.org", "sum.golang.org", "go.dev", // Go
		"index.crates.io", "static.crates.io", "crates.io", "static.rust-lang.org", // Rust
		"rubygems.org", "index.rubygems.org", // Ruby
		"api.nuget.org", "www.nuget.org", // .NET
		"repo.packagist.org",                                                                             // PHP
		"hex.pm", "repo.hex.pm", "builds.hex.pm", "hackage.haskell.org", "pub.dev", "cran.r-project.org", // others
		"deb.debian.org", "security.debian.org", "archive.ubuntu.com", "security.ubuntu.com", "ports.ubuntu.com", // systems
		"dl-cdn.alpinelinux.org", "mirrors.fedoraproject.org", "dl.fedoraproject.org", "conda.anaconda.org", "repo.anaconda.com")
}

// Unseen returns Java's registries. Its programs ignore certificates from variables, so their encrypted
// requests can't be inspected. These hosts accept no publishing.
func Unseen() Hosts {
	return Hosts{"repo.maven.apache.org", "repo1.maven.org", "plugins.gradle.org", "plugins-artifacts.gradle.org", "services.gradle.org"}
}

// mostAddress bounds the path and the query of a fetch, in bytes. The longest of package managers have some
// 300.
const mostAddress = 512

// unfetched returns the reason why a request is not a package manager's fetch for an installation; empty means it
// is one.
func unfetched(r *http.Request, u *url.URL) string {
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return "only GET and HEAD are open there, not " + shown(r.Method)
	case len(u.RequestURI()) > mostAddress:
		return fmt.Sprintf("an address there may have %d bytes behind the host, not %d", mostAddress, len(u.RequestURI()))
	}
	return ""
}

// A request to a registry reveals only what it requests: of the headers of package managers only these forms
// are passed on, and the rest is removed.
var (
	fetchAgent  = regexp.MustCompile(`^[A-Za-z][A-Za-z-]{0,19}/v?[0-9]{1,4}(?:\.[0-9]{1,4}){0,2}`)
	fetchRange  = regexp.MustCompile(`^bytes=[0-9]{1,12}-[0-9]{0,12}$`)
	fetchWeight = regexp.MustCompile(`^q=[01](?:\.[0-9]{1,3})?$`)
)

// fetchWords returns the accepted words of Accept and Accept-Encoding.
func fetchWords() []string {
	return []string{
		"*/*", "text/html", "text/plain", "application/json", "application/xml", "application/xhtml+xml", "application/octet-stream",
		"application/vnd.npm.install-v1+json", "application/vnd.pypi.simple.v1+json", "application/vnd.pypi.simple.v1+html",
		"application/vnd.pypi.simple.latest+json", "application/vnd.pypi.simple.latest+html",
		"gzip", "deflate", "br", "zstd", "identity", "compress", "x-gzip", "*",
	}
}

// fetchHeader returns the headers that are passed on. A registry that the person named may need a login; public
// ones need none for installing.
func fetchHeader(h http.Header, public bool) http.Header {
	out := http.Header{"User-Agent": {"inspan"}}
	if agent := fetchAgent.FindString(h.Get("User-Agent")); agent != "" {
		out.Set("User-Agent", agent)
	}
	for _, name := range []string{"Accept", "Accept-Encoding"} {
		if words := plainWords(h.Get(name)); words != "" {
			out.Set(name, words)
		}
	}
	for _, name := range []string{"If-Modified-Since", "If-Range"} {
		if at, err := http.ParseTime(h.Get(name)); err == nil {
			out.Set(name, at.UTC().Format(http.TimeFormat))
		}
	}
	// A part of a possibly changed file is useless.
	if r := h.Get("Range"); fetchRange.MatchString(r) && (h.Get("If-Range") == "") == (out.Get("If-Range") == "") {
		out.Set("Range", r)
	}
	if login := h.Get("Authorization"); login != "" && !public {
		out.Set("Authorization", login)
	}
	return out
}

// plainWords returns the known words of a list, with their weights.
func plainWords(list string) string {
	var out []string
	for item := range strings.SplitSeq(list, ",") {
		word, weight, weighed := strings.Cut(strings.ToLower(strings.ReplaceAll(item, " ", "")), ";")
		switch {
		case !slices.Contains(fetchWords(), word) || slices.ContainsFunc(out, func(o string) bool { return o == word || strings.HasPrefix(o, word+";") }):
		case weighed && fetchWeight.MatchString(weight):
			out = append(out, word+";"+weight)
		default:
			out = append(out, word)
		}
	}
	return strings.Join(out, ", ")
}

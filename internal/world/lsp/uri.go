package lsp

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
)

// uri returns the URI of a file. The path is absolute.
func uri(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // C:/a becomes /C:/a
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}

// pathOf returns the file of a URI.
func pathOf(name string) (string, error) {
	u, err := url.Parse(name)
	if err != nil || u.Scheme != "file" || u.Host != "" && u.Host != "localhost" || strings.ContainsRune(u.Path, 0) {
		return "", fmt.Errorf("%.200q is no file", name)
	}
	path := u.Path
	if len(path) > 2 && path[2] == ':' && filepath.Separator == '\\' {
		path = path[1:]
	}
	path = filepath.Clean(filepath.FromSlash(path))
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("%.200q is no file", name)
	}
	return path, nil
}

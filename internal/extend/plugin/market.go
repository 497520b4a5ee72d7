package plugin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/safety/foreign"
	"github.com/inspan/inspan/internal/view/words"
)

// marketFile lists the plugins that a repository offers.
const marketFile = ".claude-plugin/marketplace.json"

// maxOffered is how many plugins of a marketplace are listed.
const maxOffered = 100

// offered is a plugin in a marketplace.
type offered struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Source      json.RawMessage `json:"source"`
}

// market returns the error for a folder that is a marketplace and not a plugin, which lists the plugins that can be
// installed from it; nil means it is not a marketplace, or is a plugin as well.
func market(root *os.Root, src source) error {
	for _, at := range manifests() {
		if _, err := root.Lstat(at); err == nil {
			return nil
		}
	}
	data, err := readFile(root, marketFile, maxMarket)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var file struct {
		Plugins  []offered
		Metadata struct {
			Root string `json:"pluginRoot"`
		}
	}
	if err == nil {
		err = foreign.Unmarshal(data, &file)
	}
	if err != nil {
		return fmt.Errorf("it is a marketplace, not a plugin, and its %s can't be read: %w", marketFile, err)
	}
	if len(file.Plugins) == 0 {
		return errors.New("it is a marketplace, not a plugin, and offers no plugins")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "it is a marketplace, not a plugin; it offers %s:", text.Count(len(file.Plugins), "plugin"))
	for _, o := range file.Plugins[:min(len(file.Plugins), maxOffered)] {
		fmt.Fprintf(&b, "\n  %s", words.OneLine(o.Name, maxName))
		if o.Description != "" {
			fmt.Fprintf(&b, ": %s", words.OneLine(o.Description, 100))
		}
		if from, why := o.from(src, file.Metadata.Root); why != "" {
			fmt.Fprintf(&b, "\n    can't be installed: %s", why)
		} else {
			fmt.Fprintf(&b, "\n    inspan plugin install %s", text.ShellQuote(words.OneLine(from, maxSource)))
		}
	}
	if n := len(file.Plugins) - maxOffered; n > 0 {
		fmt.Fprintf(&b, "\n  and %d more, which %s names", n, marketFile)
	}
	return errors.New(b.String())
}

const maxMarket = 4 << 20 // bytes of a marketplace

// from returns the source for installing a plugin of a marketplace, or why there is none.
func (o offered) from(market source, below string) (from, why string) {
	var rel string
	if json.Unmarshal(o.Source, &rel) == nil {
		sub, err := inside(path.Join(below, rel))
		switch {
		case err != nil:
			return "", err.Error()
		case sub == ".":
			return "", "it is the whole repository, which lacks a .claude-plugin/plugin.json"
		case market.folder != "":
			return filepath.Join(market.folder, filepath.FromSlash(sub)), ""
		}
		return market.url + "#" + market.ref + ":" + path.Join(market.sub, sub), ""
	}
	var at struct {
		Source, Repo, URL, Path, Ref, SHA string
	}
	if err := json.Unmarshal(o.Source, &at); err != nil {
		return "", "its source is not a path or an object"
	}
	switch at.Source {
	case "github":
		at.URL = "https://github.com/" + at.Repo
	case "url", "git", "git-subdir":
		if !strings.Contains(at.URL, ":") && strings.Count(at.URL, "/") == 1 {
			at.URL = "https://github.com/" + at.URL
		}
	default:
		return "", fmt.Sprintf("it comes from %s, and inspan installs folders and git repositories", words.OneLine(at.Source, 40))
	}
	if at.SHA != "" { // the commit that was inspected, as a branch may move
		at.Ref = at.SHA
	}
	from = at.URL
	if at.Path != "" {
		from += "#" + at.Ref + ":" + path.Clean(at.Path)
	} else if at.Ref != "" {
		from += "#" + at.Ref
	}
	if _, err := parseSource(from); err != nil {
		return "", err.Error()
	}
	return from, ""
}

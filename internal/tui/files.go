package tui

import (
	"context"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/inspan/inspan/internal/gitignore"
	"github.com/inspan/inspan/internal/words"
	"github.com/inspan/inspan/llm"
)

// Bounds of the list of files: names, and how long looking for them may take.
const (
	maxFiles  = 20_000
	filesTime = 3 * time.Second
	maxIgnore = 1 << 20 // bytes of an ignore file
	maxImage  = 5 << 20 // bytes of a picture
)

// filesBelow lists the files below root that git does not ignore, slash-separated
// and relative, as many as there is time for. Links are not followed.
func filesBelow(ctx context.Context, root string) []string {
	ctx, cancel := context.WithTimeout(ctx, filesTime)
	defer cancel()
	var out []string
	rules := (*gitignore.Rules)(nil).Add("", ignoreFile(filepath.Join(root, ".git", "info", "exclude")))
	type folder struct {
		rel   string
		rules *gitignore.Rules
	}
	queue := []folder{{"", rules}}
	for len(queue) > 0 && len(out) < maxFiles && ctx.Err() == nil {
		f := queue[0]
		queue = queue[1:]
		entries, err := os.ReadDir(filepath.Join(root, f.rel))
		if err != nil {
			continue // what can't be read is not offered
		}
		if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == ".gitignore" }) {
			f.rules = f.rules.Add(f.rel, ignoreFile(filepath.Join(root, f.rel, ".gitignore")))
		}
		for _, e := range entries {
			rel := strings.TrimPrefix(f.rel+"/"+e.Name(), "/")
			switch {
			case e.Name() == ".git" || f.rules.Ignored(rel, e.IsDir()):
			case e.IsDir():
				queue = append(queue, folder{rel, f.rules})
			default:
				out = append(out, rel)
			}
		}
	}
	return out[:min(len(out), maxFiles)]
}

// ignoreFile reads an ignore file; one that can't be read ignores nothing.
func ignoreFile(path string) []byte {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	data, err := io.ReadAll(io.LimitReader(f, maxIgnore))
	if err != nil {
		return nil
	}
	return data
}

// fuzzy ranks the names that hold the letters of what in order, the best first,
// at most limit. Case counts only for letters that are written large.
func fuzzy(names []string, what string, limit int) []string {
	type hit struct {
		name  string
		score int
	}
	var hits []hit
	for _, name := range names {
		if score, ok := match(name, what); ok {
			hits = append(hits, hit{name, score})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return b.score - a.score })
	var out []string
	for _, h := range hits[:min(limit, len(hits))] {
		out = append(out, h.name)
	}
	return out
}

// match scores a name: letters that follow each other, begin words and lie in the
// last element count more, long names less.
func match(name, what string) (score int, ok bool) {
	base := strings.LastIndexByte(strings.TrimSuffix(name, "/"), '/') + 1
	if i := strings.Index(strings.ToLower(name[base:]), strings.ToLower(what)); what != "" && i >= 0 {
		score += 100 - min(i, 50)
	}
	at, last := 0, -2
	for i := 0; i < len(what); i++ {
		c := what[i]
		for at < len(name) && name[at] != c && (c >= 'A' && c <= 'Z' || lower(name[at]) != c) {
			at++
		}
		if at == len(name) {
			return 0, false
		}
		if at == last+1 {
			score += 5
		}
		if at == 0 || strings.IndexByte("/_-. ", name[at-1]) >= 0 {
			score += 8
		}
		if at >= base {
			score += 2
		}
		last = at
		at++
	}
	return score - len(name)/8, true
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// imagePath returns the path of a picture if that is all that was pasted, as a
// terminal writes a file that is dropped on it.
func imagePath(text string) string {
	text = strings.TrimSpace(text)
	if strings.Contains(text, "\n") || len(text) > 4096 {
		return ""
	}
	if n := len(text); n > 1 && (text[0] == '\'' || text[0] == '"') && text[n-1] == text[0] {
		text = text[1 : n-1]
	} else if u, err := url.Parse(text); err == nil && u.Scheme == "file" {
		text = u.Path
	} else {
		text = strings.ReplaceAll(text, `\ `, " ")
	}
	if mediaType(text) == "" || !filepath.IsAbs(text) {
		return ""
	}
	if info, err := os.Stat(text); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	return text
}

func mediaType(path string) string {
	return map[string]string{
		".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp",
	}[strings.ToLower(filepath.Ext(path))]
}

// readImage reads a picture into the prompt; one that can't be is text.
func readImage(path, text string) tea.Msg {
	data, err := readAtMost(path, maxImage)
	return later(func(m *model) tea.Cmd {
		if err != nil {
			m.warn("the picture is not attached: " + err.Error())
			m.insert(text)
			return nil
		}
		name := words.OneLine(filepath.Base(path), 40)
		m.prompt.insert(atom{shown: "[image " + name + "]", image: llm.Image{MediaType: mediaType(path), Data: data}}, atom{shown: " "})
		return nil
	})
}

func readAtMost(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = &fs.PathError{Op: "attach", Path: path, Err: fs.ErrInvalid}
	}
	return data, err
}

// scratch writes text to a new file for an editor; unscratch reads it back and
// removes it.
func scratch(text string) (path string, err error) {
	f, err := os.CreateTemp("", "inspan-*.md")
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(text)
	return f.Name(), firstError(err, f.Close())
}

func unscratch(path string) (string, error) {
	defer os.Remove(path)
	data, err := os.ReadFile(path)
	return string(data), err
}

package tui

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/llm"
)

const (
	maxImage      = 5 << 20         // bytes of a picture
	maxDropped    = 16 << 10        // bytes of pasted text that may be paths
	clipboardTime = 5 * time.Second // for reading the clipboard
)

// imagePaths returns the paths of pictures if nothing else was pasted, in the forms in which terminals paste
// dropped files: as they are, or as words of a shell. Otherwise it returns nil.
func imagePaths(text string) []string {
	if text = strings.TrimSpace(text); len(text) > maxDropped {
		return nil
	}
	if isImage(text) {
		return []string{text}
	}
	paths := shellWords(text)
	for i, p := range paths {
		if u, err := url.Parse(p); err == nil && u.Scheme == "file" {
			paths[i] = u.Path
		}
	}
	if slices.ContainsFunc(paths, func(p string) bool { return !isImage(p) }) {
		return nil
	}
	return paths
}

// isImage reports whether a path leads to a file with the name of a picture.
func isImage(path string) bool {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".png", ".jpg", ".jpeg", ".gif", ".webp":
	default:
		return false
	}
	if !filepath.IsAbs(path) || strings.Contains(path, "\n") {
		return false
	}
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// shellWords splits text into words and removes quotes and backslashes like a shell; nil if a quote is not
// closed.
func shellWords(text string) (out []string) {
	var word strings.Builder
	quote, begun := byte(0), false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\\' && quote != '\'' && i+1 < len(text) && (quote == 0 || strings.IndexByte("\"\\$`", text[i+1]) >= 0):
			i++
			word.WriteByte(text[i])
			begun = true
		case c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote, begun = c, true
		case quote == 0 && strings.IndexByte(" \t\n", c) >= 0:
			if begun {
				out = append(out, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteByte(c)
			begun = true
		}
	}
	if quote != 0 {
		return nil
	}
	if begun {
		out = append(out, word.String())
	}
	return out
}

// Picture is an image with the name of its file.
type Picture struct {
	Name  string
	Image llm.Image
}

// ReadPicture reads an image of a type that models can see.
func ReadPicture(path string) (Picture, error) {
	data, err := readAtMost(path, maxImage)
	media := llm.ImageType(data)
	if err == nil && media == "" {
		err = fmt.Errorf("%s is not a PNG, JPEG, GIF or WebP image", words.OneLine(path, 200))
	}
	return Picture{filepath.Base(path), llm.Image{MediaType: media, Data: data}}, err
}

// attach reads pictures into the prompt. If one can't be read, all stay text. The prompt changes only in the
// returned function.
func (c *composer) attach(paths []string, text string) later {
	var atoms []atom
	for _, path := range paths {
		p, err := ReadPicture(path)
		if err != nil {
			return func() tea.Cmd {
				c.talk.warn("image not attached: " + err.Error())
				c.insert(text)
				return nil
			}
		}
		atoms = append(atoms, p.atoms()...)
	}
	return func() tea.Cmd {
		c.prompt.insert(atoms...)
		return nil
	}
}

// atoms returns the picture as a part of the prompt.
func (p Picture) atoms() []atom {
	return []atom{{shown: "[image " + words.OneLine(p.Name, 40) + "]", image: p.Image}, {shown: " "}}
}

// pasteImage attaches the picture in the clipboard.
func (c *composer) pasteImage() tea.Cmd {
	parent, read := c.talk.ctx, c.talk.tui.Clipboard
	if read == nil {
		read = clipboard
	}
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(parent, clipboardTime)
		defer cancel()
		data, err := read(ctx)
		return later(func() tea.Cmd {
			switch media := llm.ImageType(data); {
			case err != nil:
				c.talk.warn("the clipboard can't be read: " + err.Error())
			case media == "":
				c.hints.say("no image in the clipboard; you can paste the path of a file")
			case len(data) > maxImage:
				c.talk.warn(fmt.Sprintf("the image in the clipboard is not attached: it is larger than %d MB", maxImage>>20))
			default:
				c.touched()
				c.prompt.insert(Picture{"from the clipboard", llm.Image{MediaType: media, Data: data}}.atoms()...)
			}
			return nil
		})
	}
}

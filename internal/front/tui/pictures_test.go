package tui

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/google/go-cmp/cmp"
)

const pngHead = "\x89PNG\r\n\x1a\n"

func writePicture(t *testing.T, path, data string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestImagePaths(t *testing.T) {
	dir := t.TempDir()
	path := writePicture(t, filepath.Join(dir, "a b.PNG"), "")
	odd := writePicture(t, filepath.Join(dir, `it's (1) $x.jpg`), "")
	plain := writePicture(t, filepath.Join(dir, "c.webp"), "")
	escaped := strings.NewReplacer(" ", `\ `, "'", `\'`, "(", `\(`, ")", `\)`, "$", `\$`)
	for text, want := range map[string][]string{
		path:                  {path},
		escaped.Replace(path): {path},
		"'" + path + "'":      {path},
		`"` + path + `"`:      {path},
		"file://" + strings.ReplaceAll(path, " ", "%20"): {path},
		path + "\n":          {path},
		"  " + plain + " ":   {plain},
		odd:                  {odd},
		escaped.Replace(odd): {odd},
		"'" + strings.ReplaceAll(odd, "'", `'\''`) + "'": {odd},
		`"` + strings.ReplaceAll(odd, "$", `\$`) + `"`:   {odd},
		plain + " '" + path + "'":                        {plain, path},
		plain + "\n" + escaped.Replace(odd):              {plain, odd},
	} {
		if diff := cmp.Diff(want, imagePaths(text)); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
	for _, text := range []string{
		"", " ", "a b.PNG", path + "\nmore", "see " + plain, filepath.Join(dir, "none.png"), "'", "'" + path, dir, `\`, "http://a.b/c.png",
		plain + strings.Repeat(" ", maxDropped) + plain,
	} {
		if got := imagePaths(text); got != nil {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// comes runs a command, and the messages that it leads to.
func comes(m *model, cmd tea.Cmd) {
	for queue := []tea.Cmd{cmd}; len(queue) > 0; queue = queue[1:] {
		if queue[0] == nil {
			continue
		}
		switch msg := queue[0]().(type) {
		case tea.BatchMsg:
			queue = append(queue, msg...)
		case later:
			m.Update(msg)
		}
	}
}

func TestDroppedPictures(t *testing.T) {
	dir := t.TempDir()
	one, two := writePicture(t, filepath.Join(dir, "one.png"), pngHead), writePicture(t, filepath.Join(dir, "two.png"), "\xff\xd8\xff\xe0")
	fake := writePicture(t, filepath.Join(dir, "fake.png"), "no picture")
	big := writePicture(t, filepath.Join(dir, "big.gif"), "GIF89a"+strings.Repeat("x", maxImage))
	m := still(t, 80, 24, look{noColor: true}, nil)
	comes(m, m.paste(one+" '"+two+"'"))
	atoms := m.composer.prompt.atoms
	if m.composer.prompt.text() != "[image one.png] [image two.png] " ||
		atoms[0].image.MediaType != "image/png" || atoms[2].image.MediaType != "image/jpeg" {
		t.Fatalf("%q %v", m.composer.prompt.text(), atoms)
	}
	for path, why := range map[string]string{fake: "is not a PNG, JPEG, GIF or WebP", big: big + " is larger than 5 MB"} {
		m := still(t, 400, 24, look{noColor: true}, nil)
		comes(m, m.paste(path))
		if got := drawn(m); m.composer.prompt.text() != path || !strings.Contains(got, "image not attached: ") ||
			!strings.Contains(got, why) {
			t.Errorf("%q\n%s", m.composer.prompt.text(), got)
		}
	}
}

// TestPicturesComeWithTheFirstMessage checks that the pictures of the command line are in the first message, or in the
// prompt if there is none.
func TestPicturesComeWithTheFirstMessage(t *testing.T) {
	p, err := ReadPicture(writePicture(t, filepath.Join(t.TempDir(), "one.png"), pngHead))
	if err != nil {
		t.Fatal(err)
	}
	m := still(t, 80, 24, look{noColor: true}, nil)
	m.Pictures = []Picture{p}
	m.Init()
	if m.composer.prompt.text() != "[image one.png] " {
		t.Errorf("the prompt has %q", m.composer.prompt.text())
	}
	m = still(t, 80, 24, look{noColor: true}, nil)
	m.Pictures, m.Say = []Picture{p}, "look"
	m.Init()
	if lines := m.composer.history.lines; m.composer.prompt.text() != "" || len(lines) != 1 || lines[0] != "look [image one.png] " {
		t.Errorf("the prompt has %q, and %q was sent", m.composer.prompt.text(), lines)
	}
}

func TestPasteFromTheClipboard(t *testing.T) {
	ctrlV := tea.KeyPressMsg{Code: 'v', Mod: tea.ModCtrl}
	for name, tc := range map[string]struct {
		png    []byte
		err    error
		shows  string
		prompt string
	}{
		"an image":      {[]byte(pngHead + "..."), nil, "›", "a [image from the clipboard] "},
		"nothing":       {nil, nil, "no image in the clipboard", "a "},
		"something":     {[]byte("text"), nil, "no image in the clipboard", "a "},
		"a big one":     {append([]byte(pngHead), bytes.Repeat([]byte{1}, maxImage)...), nil, "larger than 5 MB", "a "},
		"a failed read": {nil, errors.New("wl-paste \x1b[2Jfailed"), "! the clipboard can't be read: wl-paste", "a "},
	} {
		t.Run(name, func(t *testing.T) {
			m := still(t, 80, 24, look{noColor: true}, nil)
			m.Clipboard = func(ctx context.Context) ([]byte, error) {
				if _, ends := ctx.Deadline(); !ends {
					t.Error("it may take for ever")
				}
				return tc.png, tc.err
			}
			presses(m, letter('a'), letter(' '))
			_, cmd := m.Update(ctrlV)
			comes(m, cmd)
			if got := drawn(m); !strings.Contains(got, tc.shows) || strings.Contains(got, "\x1b") || m.composer.prompt.text() != tc.prompt {
				t.Errorf("the prompt has %q\n%s", m.composer.prompt.text(), got)
			}
			attached := slices.ContainsFunc(m.composer.prompt.atoms, func(a atom) bool {
				return a.image.MediaType == "image/png" &&
					bytes.Equal(a.image.Data, tc.png)
			})
			if attached != (name == "an image") {
				t.Errorf("attached: %v", attached)
			}
		})
	}
}

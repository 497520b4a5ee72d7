package knowledge

// The system prompt: a short static part, then the instruction files of the project, then facts about the
// session. The most stable text comes first, so that the prefix of every request stays cached. This file is
// pure; files are read through a function that is passed in.

import (
	_ "embed"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
)

//go:embed system.md
var static string

// MaxInstructions bounds all instruction files together, in bytes. The farthest files are left out first, and
// the prompt says so.
const MaxInstructions = 32 * 1024

// Input holds the parts of the system prompt.
type Input struct {
	Replace string   // replaces the static part, if not empty
	Style   string   // says how to answer; may be empty
	Append  string   // added after everything else, if not empty
	Files   []File   // instruction files, outermost first
	Memory  string   // from earlier sessions; may be empty
	Claimed bool     // some of Memory comes from unverified content
	Skills  string   // list of skills; may be empty
	Facts   []string // about the surroundings, one per line
}

// File is an instruction file.
type File struct {
	Path string
	Text string
}

// Blocks returns the blocks of the system prompt and warnings for the person.
func Blocks(in Input) (blocks []event.Added, warnings []string) {
	first := event.Added{Source: "inspan", Text: strings.TrimSpace(static)}
	if in.Replace != "" {
		first = event.Added{Source: "--system", Text: in.Replace}
	}
	blocks = append(blocks, first)
	files, warnings := fit(in.Files)
	for _, f := range files {
		blocks = append(blocks, f.block())
	}
	for _, b := range []event.Added{
		{Source: "output style", Text: in.Style},
		{Source: "skills", Text: in.Skills},
		{Source: "memory", Text: in.Memory, Taint: event.Taint{Untrusted: in.Claimed}},
	} {
		if b.Text != "" {
			blocks = append(blocks, b)
		}
	}
	if len(in.Facts) > 0 {
		blocks = append(blocks, event.Added{Source: "environment", Text: "Environment:\n- " + strings.Join(in.Facts, "\n- ")})
	}
	if in.Append != "" {
		blocks = append(blocks, event.Added{Source: "--append-system", Text: in.Append})
	}
	return blocks, warnings
}

func (f File) block() event.Added {
	return event.Added{
		Source: f.Path, Text: "Instructions from " + f.Path + ":\n\n" + f.Text,
		Taint: event.Taint{Untrusted: strings.Contains(f.Text, unconfirmed)},
	}
}

// nested returns the blocks of instruction files for a part of the workspace, added when the agent first
// touches it.
func nested(files []File) []event.Added {
	var out []event.Added
	files, _ = fit(files)
	for _, f := range files {
		b := f.block()
		b.Where = event.PlaceTail
		out = append(out, b)
	}
	return out
}

// fit cuts the files to MaxInstructions. The nearest files matter most, so they get room first.
func fit(files []File) (out []File, warnings []string) {
	out = append(out, files...)
	left := MaxInstructions
	for i := len(out) - 1; i >= 0; i-- {
		f := &out[i]
		if len(f.Text) <= left {
			left -= len(f.Text)
			continue
		}
		warnings = append(warnings, fmt.Sprintf("%s was cut: instruction files may have %d KiB in all, and %d of its %d bytes fit",
			f.Path, MaxInstructions/1024, left, len(f.Text)))
		cut := text.Head(f.Text, left)
		f.Text = cut + fmt.Sprintf("\n[cut: %d of %d bytes shown; read the file for the rest]", len(cut), len(files[i].Text))
		left = 0
	}
	return out, warnings
}

// names returns the names of instruction files, in reading order within a directory.
func names() []string {
	return []string{"AGENTS.md", "agents.md", "CLAUDE.md", "claude.md", ".claude/CLAUDE.md", "CLAUDE.local.md"}
}

// Paths returns where instruction files can be, from the root of the file system down to dir, an absolute path.
func Paths(dir string) []string {
	var dirs []string
	for d := filepath.Clean(dir); ; d = filepath.Dir(d) {
		dirs = append([]string{d}, dirs...)
		if d == filepath.Dir(d) {
			break
		}
	}
	return in(dirs)
}

// downTo lists the folders from root down to dir.
func downTo(root, dir string) (dirs []string) {
	for d := filepath.Clean(dir); d != root && d != filepath.Dir(d); d = filepath.Dir(d) {
		dirs = append([]string{d}, dirs...)
	}
	return dirs
}

func in(dirs []string) (paths []string) {
	for _, d := range dirs {
		for _, name := range names() {
			paths = append(paths, filepath.Join(d, name))
		}
	}
	return paths
}

// Gather returns the instruction files of paths, in order. A text is taken only once, where it comes first, so a
// CLAUDE.md that repeats or imports AGENTS.md, links to it, or differs only in the case of its name costs nothing.
// read returns an error for a file that is missing or must not be used.
func Gather(paths []string, read func(path string) ([]byte, error)) []File {
	return texts{}.gather(paths, read)
}

// texts is the set of instruction texts that were taken.
type texts map[string]bool

// take returns a text as the model gets it, and whether to use it: it is not empty and was not taken before.
func (t texts) take(raw []byte) (string, bool) {
	text := strings.TrimPrefix(strings.ToValidUTF8(string(raw), "\uFFFD"), "\uFEFF")
	text = strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n"))
	fresh := text != "" && !t[text]
	t[text] = true
	return text, fresh
}

func (t texts) gather(paths []string, read func(path string) ([]byte, error)) []File {
	var files []File
	for _, path := range paths {
		raw, err := read(path)
		if err != nil {
			continue
		}
		at := path
		if to := linked(raw, path); to != "" {
			if target, err := read(to); err == nil {
				raw, at = target, to
			}
		}
		if text, fresh := t.take(raw); fresh {
			files = append(files, File{Path: path, Text: t.imported(text, at, read)})
		}
	}
	return files
}

// linked returns the target of a file whose only text is a path, as git writes links if the file system has none;
// empty means not a link.
func linked(raw []byte, path string) string {
	to := strings.TrimSpace(string(raw))
	if to == "" || strings.ContainsAny(to, "\n\x00@") || filepath.IsAbs(to) {
		return ""
	}
	return filepath.Join(filepath.Dir(path), filepath.FromSlash(to))
}

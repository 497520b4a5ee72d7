package bench

import (
	_ "embed"
	"os"
	"path/filepath"
	"strings"

	"github.com/inspan/inspan/internal/base/keep"
)

// harnessTexts describes for each harness how to point it to a server, according to its own documentation. None
// of them asks before it runs a command; inspan-auto runs commands in its sandbox, all others without one.
// Lines are the program, in PATH or with its path; variables; files below the home with their indented content;
// and the arguments of a run, of resuming a killed one, and of a new task in a finished session, which by
// default are those of resume.
//
//go:embed harnesses.txt
var harnessTexts string

const benchModel = "bench-model"

// harness is a program of a bench.
type harness struct {
	name, program, text string
}

// harnesses returns the known harnesses.
func harnesses(self, url string) (list []harness) {
	texts := strings.NewReplacer("$SELF", self, "$URL", url).Replace(harnessTexts)
	for _, text := range strings.Split(texts, "== ")[1:] {
		name, text, _ := strings.Cut(text, "\n")
		h := harness{name: name, text: text}
		h.program = keep.Program(h.says("program"))
		list = append(list, h)
	}
	return list
}

// says returns the rest of the first line that begins with a word; empty means there is none.
func (h *harness) says(word string) string {
	_, rest, _ := strings.Cut("\n"+h.text, "\n"+word+" ")
	line, _, _ := strings.Cut(rest, "\n")
	return line
}

// command returns the program with its arguments for an action; a prompt is one of them.
func (h *harness) command(word, prompt string) []string {
	args := h.says(word)
	if args == "" {
		args = h.says("resume")
	}
	out := []string{h.program}
	for _, arg := range strings.Fields(args) {
		out = append(out, strings.ReplaceAll(arg, "PROMPT", prompt))
	}
	return out
}

// settle makes the home of a harness, and returns the complete environment of its processes, so that they see
// nothing of the person's.
func (h *harness) settle(home string) ([]string, error) {
	vars := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home + "/tmp", "XDG_CONFIG_HOME=" + home + "/.config",
		"XDG_CACHE_HOME=" + home + "/.cache", "XDG_DATA_HOME=" + home + "/.local/share", "XDG_STATE_HOME=" + home + "/.local/state",
		"LANG=C.UTF-8", "TERM=dumb", "NO_COLOR=1", "SHELL=/bin/sh", "BENCH_KEY=bench",
	}
	files, file := map[string]string{"tmp/.here": ""}, ""
	for line := range strings.Lines(strings.ReplaceAll(h.text, "$HOME", home)) {
		switch word, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " "); {
		case word == "var":
			vars = append(vars, rest)
		case word == "file":
			file = rest
		case strings.HasPrefix(line, "\t"):
			files[file] += line[1:]
		}
	}
	for name, text := range files {
		at := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			return nil, err
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	return vars, nil
}

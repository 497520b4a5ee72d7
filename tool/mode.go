package tool

import (
	"fmt"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
)

// Mode is a permission mode: it says which calls of a session run without approval. The empty mode means that
// none was chosen. A text that is not one of [Modes] may come from a log of a later version, and denies
// everything.
type Mode string

// Modes, from the most careful to the least.
const (
	ModePlan Mode = "plan" // reads only
	ModeAsk  Mode = "ask"  // reads run, the rest asks
	ModeEdit Mode = "edit" // changes in the workspace run too
	ModeAuto Mode = "auto" // commands run too, inside the sandbox
	ModeYolo Mode = "yolo" // everything runs, without a sandbox
)

// Modes lists the modes, from the most careful to the least.
func Modes() []Mode { return []Mode{ModePlan, ModeAsk, ModeEdit, ModeAuto, ModeYolo} }

// Doc describes the calls that run without approval in the mode; empty means there is no such mode.
func (m Mode) Doc() string {
	switch m {
	case ModePlan:
		return "reading runs, including commands proven to be read-only; everything else is denied"
	case ModeAsk:
		return "reading runs, including commands proven to be read-only; everything else asks"
	case ModeEdit:
		return "reading and file changes in the workspace run; everything else asks"
	case ModeAuto:
		return "commands run too, in the sandbox; network access, changes outside the workspace and leaving the sandbox ask"
	case ModeYolo:
		return "everything runs without a sandbox or questions, unless your own rules deny it or ask; sensitive files are reported, not blocked"
	}
	return ""
}

// Check returns an error, which names the nearest mode, if there is no such mode. The empty mode is valid.
func (m Mode) Check() error {
	if m == "" || m.Doc() != "" {
		return nil
	}
	var names []string
	for _, mode := range Modes() {
		names = append(names, string(mode))
	}
	hint := ""
	if near := text.Nearest(string(m), names); near != "" {
		hint = fmt.Sprintf("; did you mean %q?", near)
	}
	last := len(names) - 1
	return fmt.Errorf("unknown mode %q; use %s or %s%s", string(m), strings.Join(names[:last], ", "), names[last], hint)
}

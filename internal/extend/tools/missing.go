package tools

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/inspan/inspan/tool"
)

// missing describes variables that were withheld from a failed command and that it, or its output, names. Each
// is reported once in a session.
func (sh *Shell) missing(mode tool.Mode, j *job) string {
	if sh.Withheld == nil || j.end.code == 0 {
		return ""
	}
	output, _, _ := j.out.text(0)
	named := map[string]bool{}
	for _, name := range variable.FindAllString(j.command+"\n"+output, -1) {
		named[name] = true
	}
	text, held := "", sh.Withheld(mode)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(named)) {
		if held[name] == "" || sh.told[name] {
			continue
		}
		if sh.told == nil {
			sh.told = map[string]bool{}
		}
		sh.told[name] = true
		text += fmt.Sprintf("\n[%s is set in the person's environment and was held back as it %s; the setting sandbox.environment passes it on]",
			name, held[name])
	}
	return text
}

// variable matches what can be the name of a variable of the environment.
var variable = regexp.MustCompile(`\b[A-Za-z_][A-Za-z0-9_]*\b`)

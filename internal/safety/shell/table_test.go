package shell

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

var formed = regexp.MustCompile(`^(-[A-Za-z0-9.]+|-#|-[A-Za-z0-9][:?](path|write|script|scriptpath)?|--[a-z0-9-]+([=?](path|write|script|scriptpath)?|:2(path)?)?)$`)

// TestTables checks that the tables are well formed: a slip there is a hole.
func TestTables(t *testing.T) {
	roles := []string{"none", "free", "text", "path", "dir", "text+path", "text+dir", "write", "inout"}
	total := 0
	for name, table := range map[string]string{"programs.txt": programTable, "git.txt": gitTable} {
		seen := map[string]bool{}
		for line := range strings.Lines(table) {
			fields := strings.Fields(line)
			if len(fields) == 0 {
				continue
			}
			total++
			program := strings.TrimSuffix(fields[0], "*")
			if len(fields) < 3 || seen[program] || !slices.Contains(roles, fields[1]) || line != strings.Join(fields, " ")+"\n" {
				t.Errorf("%s: bad line %q", name, line)
				continue
			}
			seen[program] = true
			options := map[string]bool{}
			for _, o := range fields[3:] {
				if !formed.MatchString(o) {
					t.Errorf("%s: %s: bad option %q", name, program, o)
				}
				for _, single := range singles(o) {
					if options[single] {
						t.Errorf("%s: %s: %s is there twice", name, program, single)
					}
					options[single] = true
				}
			}
		}
	}
	t.Logf("%d rows", total)
}

func singles(option string) []string {
	if strings.HasPrefix(option, "--") {
		name, _, _ := strings.Cut(strings.NewReplacer("?", "=", ":", "=").Replace(option), "=")
		return []string{name}
	}
	if len(option) > 2 && (option[2] == ':' || option[2] == '?') {
		return []string{option[:2]}
	}
	var out []string
	for _, letter := range option[1:] {
		out = append(out, "-"+string(letter))
	}
	return out
}

package equipment_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/extend/skill"
	"github.com/inspan/inspan/internal/extend/tools"
	"github.com/inspan/inspan/internal/install/equipment"
	"github.com/inspan/inspan/tool"
)

// TestToolsOfAgents checks that a kind of agent gets no whole tool where its file wants it for some uses only.
func TestToolsOfAgents(t *testing.T) {
	some := equipment.Pick(skill.Role{Tools: []string{"Read", "Bash(git log:*)", "Grep"}, Without: []string{"Grep(x)"}})
	if got := some([]tool.Tool{{Name: "bash"}, {Name: "git"}, {Name: "read_file"}, {Name: "search_files"}}); len(got) != 1 ||
		got[0].Name != "read_file" {
		t.Errorf("%+v", got)
	}
}

// TestToolsTakenAway checks that an agent without a tool of Claude Code has none of ours that does the same, as under a
// permission rule that denies it.
func TestToolsTakenAway(t *testing.T) {
	all := append(tools.Core(&tools.Shell{}, ""), tools.Core(&tools.Shell{}, "lines")...)
	editors := []string{"delete_file", "edit_file", "edit_lines", "notebook_edit", "write_file"}
	for without, want := range map[string][]string{
		"Edit": editors, "Write": editors, "MultiEdit": editors, "Edit(src/**)": editors,
		"NotebookEdit": {"notebook_edit"}, "edit_file": {"edit_file"},
		"Glob": {"find_files", "list_files"}, "Read": {"read_file"}, "Bash": {"bash", "git", "jobs"},
	} {
		var gone []string
		left := equipment.Pick(skill.Role{Without: []string{without}})(all)
		for _, one := range all {
			if !slices.ContainsFunc(left, func(l tool.Tool) bool { return l.Name == one.Name }) {
				gone = append(gone, one.Name)
			}
		}
		slices.Sort(gone)
		if diff := cmp.Diff(want, slices.Compact(gone)); diff != "" {
			t.Errorf("%s: %s", without, diff)
		}
	}
}

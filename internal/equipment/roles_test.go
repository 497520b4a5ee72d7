package equipment_test

import (
	"testing"

	"github.com/inspan/inspan/internal/equipment"
	"github.com/inspan/inspan/internal/skill"
	"github.com/inspan/inspan/tool"
)

// TestToolsOfAgents holds that a kind of agent gets no whole tool where its file wants it for
// some uses only.
func TestToolsOfAgents(t *testing.T) {
	some := equipment.Pick(skill.Role{Tools: []string{"Read", "Bash(git log:*)", "Grep"}, Without: []string{"Grep(x)"}})
	if got := some([]tool.Tool{{Name: "bash"}, {Name: "git"}, {Name: "read_file"}, {Name: "search_files"}}); len(got) != 1 ||
		got[0].Name != "read_file" {
		t.Errorf("%+v", got)
	}
}

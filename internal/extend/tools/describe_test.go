package tools_test

import (
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/extend/tools"
	"github.com/inspan/inspan/tool"
)

// TestTold checks that the description of bash matches its behaviour: a model that reads about a sandbox that is not
// there would ask for things that it has.
func TestTold(t *testing.T) {
	walls := tool.Walls{Read: true, Workspace: true, Hosts: true}
	for _, tt := range []struct {
		name       string
		truth      tools.Truth
		says, lies []string
	}{
		{
			"yolo",
			tools.Truth{Mode: tool.ModeYolo, Walls: walls, GoesOn: true},
			[]string{"What still runs when the session ends goes on"},
			[]string{"sandbox", "approv", "decides", `"network"`, `"outside"`, `"keep"`, "jobs end"},
		},
		{
			"auto",
			tools.Truth{Mode: tool.ModeAuto, Walls: walls, Keeps: true},
			[]string{"in a sandbox", "A person then decides", `"network"`, `"outside"`, `"keep"`, "jobs end, unless they are kept."},
			[]string{"Nobody"},
		},
		{
			"unattended",
			tools.Truth{Mode: tool.ModeAuto, Walls: walls, Unattended: true},
			[]string{"in a sandbox", "Nobody is there", "jobs end."},
			[]string{"A person", "are kept"},
		},
		{
			"plan",
			tools.Truth{Mode: tool.ModePlan, Walls: walls, Keeps: true},
			[]string{"only commands run that are known to read", "jobs end."},
			[]string{"A person", "sandbox", `"network"`, `"outside"`, `"keep"`, "are kept"},
		},
		{
			"plan on a copy",
			tools.Truth{Mode: tool.ModePlan, Walls: tool.Walls{Read: true, Workspace: true, Throwaway: true}, Throwaway: true},
			[]string{"on a copy of the workspace that is thrown away"},
			[]string{"only commands run", `"outside"`},
		},
		{"no walls", tools.Truth{Mode: tool.ModeAsk}, []string{"need approval", `"network"`}, []string{"sandbox", `"outside"`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := ""
			for _, one := range tools.DescribeFor(tools.Core(&tools.Shell{}, ""), tt.truth) {
				if one.Name == "bash" || one.Name == "jobs" {
					spec := one.Spec()
					text += spec.Description + string(spec.Schema)
				}
				if one.Name != "bash" {
					continue
				}
				if _, err := one.Check([]byte(`{"command":"true","network":["example.com"],"outside":true,"keep":true}`)); err != nil {
					t.Errorf("after a change of mode: %v", err)
				}
			}
			says(t, text, tt.says...)
			for _, lie := range tt.lies {
				if strings.Contains(text, lie) {
					t.Errorf("%q is in %s", lie, text)
				}
			}
		})
	}
}

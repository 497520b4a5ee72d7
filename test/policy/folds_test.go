package policy_test

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// TestDoorsFoldNothing checks that services and front ends take calls, questions and agents from the items of the
// transcript: nothing there follows them from event to event by itself.
func TestDoorsFoldNothing(t *testing.T) {
	kinds := []string{
		"event.Judged", "event.Waiting", "event.Wanted", "event.Started", "event.Ended", "event.Raised", "event.Spawned", "event.Returned",
		"event.Checkpoint", "event.Restored",
	}
	apart := []string{
		"internal/service/server/metrics.go", // counts results by tool, whose name only earlier events have
		"internal/service/server/stream.go",  // wakes those who wait for a change, and remembers nothing
	}
	for _, s := range sources(t) {
		if !strings.HasPrefix(s.dir, "internal/service/") && !strings.HasPrefix(s.dir, "internal/front/") || slices.Contains(apart, s.path) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			var types []ast.Expr
			switch n := n.(type) {
			case *ast.CaseClause:
				types = n.List
			case *ast.TypeAssertExpr:
				types = []ast.Expr{n.Type}
			}
			for _, of := range types {
				if of, is := of.(*ast.SelectorExpr); is && slices.Contains(kinds, selected(of)) {
					t.Errorf("%s asks whether an event is %s; the items of internal/view/transcript say what it means", s.path, selected(of))
				}
			}
			return true
		})
	}
}

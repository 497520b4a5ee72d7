package policy_test

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// TestDoorsFoldNothing checks that services, front ends and evaluations take calls, questions and agents from the items of the
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
		room, _, _ := strings.Cut(strings.TrimPrefix(s.dir, "internal/"), "/")
		if !slices.Contains([]string{"service", "front", "lab"}, room) || slices.Contains(apart, s.path) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			var types []ast.Expr
			switch n := n.(type) {
			case *ast.TypeSwitchStmt:
				if of := switchedOn(n); of != nil && of.Sel.Name == "Of" { // it asks what a note of the transcript is about
					return false
				}
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

// switchedOn is the field that a type switch is about, as in "switch b := note.Of.(type)"; nil if it is about
// something else.
func switchedOn(s *ast.TypeSwitchStmt) *ast.SelectorExpr {
	var x ast.Expr
	switch a := s.Assign.(type) {
	case *ast.AssignStmt:
		x = a.Rhs[0]
	case *ast.ExprStmt:
		x = a.X
	}
	of, _ := x.(*ast.TypeAssertExpr).X.(*ast.SelectorExpr)
	return of
}

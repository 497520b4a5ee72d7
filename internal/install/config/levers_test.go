package config_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/install/config"
)

// TestLevers checks that docs/LEVERS.md and 'inspan config show' agree about each lever: its default, and its measured
// effect.
func TestLevers(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/LEVERS.md")
	if err != nil {
		t.Fatal(err)
	}
	list := config.Levers(event.Levers{}, nil)
	for _, s := range list {
		if row := fmt.Sprintf("| `%s` | %s | %s |", strings.TrimPrefix(s.Key, "levers."), s.Plain(), s.Evidence); s.Evidence == "" || !strings.Contains(string(doc), row) {
			t.Errorf("docs/LEVERS.md has no row that begins with %q", row)
		}
	}
	if rows := strings.Count(string(doc), "\n| `"); rows != len(list) {
		t.Errorf("it has %d rows, and there are %d levers", rows, len(list))
	}
}

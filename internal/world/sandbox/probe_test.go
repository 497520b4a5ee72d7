//go:build unix

package sandbox_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/world/sandbox"
)

func TestProbe(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, landlock := range []int{0, 5, -1} {
		proven(t, sandbox.Probe(t.Context(), sandbox.Options{Self: self, Landlock: landlock}))
	}
	for _, c := range sandbox.Probe(t.Context(), sandbox.Options{}) {
		if c.OK || c.Text == "" {
			t.Errorf("without a keeper: %+v", c)
		}
	}
}

// TestChildren checks that the check of children passes here, and finds fault where none can start.
func TestChildren(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range sandbox.Children(t.Context(), sandbox.Options{Self: self}) {
		t.Logf("%v %s: %s", c.OK, c.Name, c.Text)
		if !c.OK && !strings.Contains(c.Text, "can't be started here") {
			t.Errorf("%s: %s", c.Name, c.Text)
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	for _, c := range sandbox.Children(ended, sandbox.Options{Self: self}) {
		if c.OK || c.Text == "" {
			t.Errorf("in no time: %+v", c)
		}
	}
}

func proven(t *testing.T, checks []sandbox.Check) {
	t.Helper()
	if len(checks) < 2 {
		t.Fatalf("checks are %+v", checks)
	}
	for i, c := range checks {
		t.Logf("%v %s: %s", c.OK, c.Name, c.Text)
		if !c.OK && i >= 2 {
			t.Errorf("%s: %s", c.Name, c.Text)
		}
	}
}

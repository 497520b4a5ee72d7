package policy_test

// The tests of this package hold rules of the whole module. They run at its root, so every path in them is
// one from there.

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func TestMain(m *testing.M) {
	if err := toRoot(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// toRoot makes the folder of the first go.mod above this package the current one.
func toRoot() error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return os.Chdir(dir)
		}
		if dir == filepath.Dir(dir) {
			return fmt.Errorf("no go.mod above the tests of the rules")
		}
	}
}

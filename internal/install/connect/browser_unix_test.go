//go:build unix

package connect_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/install/connect"
)

// TestBrowserOfThePerson opens pages with the first program of $BROWSER that works.
func TestBrowserOfThePerson(t *testing.T) {
	dir := t.TempDir()
	program, shown := filepath.Join(dir, "show"), filepath.Join(dir, "shown")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho \"$@\" >>"+shown+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, browser := range []string{"false:" + program, program + " --new %s"} {
		t.Setenv("BROWSER", browser)
		if err := connect.Browse(t.Context(), "https://login.example.com/a?b=c"); err != nil {
			t.Error(err)
		}
	}
	if got, err := os.ReadFile(shown); err != nil ||
		strings.TrimSpace(string(got)) != "https://login.example.com/a?b=c\n--new https://login.example.com/a?b=c" {
		t.Errorf("%q, %v", got, err)
	}
}

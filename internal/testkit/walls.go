package testkit

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Walls copies into the state folder of a new home what a program has found out in an earlier one of these
// tests: which boxes work on this machine. Finding that out takes longer than most tests, which are about other
// things.
func Walls(t testing.TB, program, state string) {
	t.Helper()
	found.Lock()
	defer found.Unlock()
	known := found.of[program]
	for _, earlier := range found.homes[program] {
		if known != nil {
			break
		}
		known, _ = os.ReadFile(filepath.Join(earlier, "walls.json")) // it may not have come so far
	}
	if known == nil {
		found.homes[program] = append(found.homes[program], state)
		return
	}
	found.of[program] = known
	if err := errors.Join(os.MkdirAll(state, 0o700), os.WriteFile(filepath.Join(state, "walls.json"), known, 0o600)); err != nil {
		t.Error(err)
	}
}

// found is what programs have found out, and the state folders in which they may.
var found = struct {
	sync.Mutex
	of    map[string][]byte
	homes map[string][]string
}{of: map[string][]byte{}, homes: map[string][]string{}}

package files_test

import (
	"os"
	"testing"

	"github.com/inspan/inspan/internal/world/sandbox"
)

func TestMain(m *testing.M) {
	if ran, code := sandbox.Keeper(); ran {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

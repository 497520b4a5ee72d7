package keeper_test

import (
	"os"
	"testing"

	"github.com/inspan/inspan/internal/world/sandbox"
)

func TestMain(m *testing.M) {
	if ran, code := sandbox.Keeper(); ran {
		os.Exit(code)
	}
	if os.Getenv("SANDBOX_TEST_PARENT") != "" {
		parent()
	}
	if os.Getenv("SANDBOX_TEST_LEAVER") != "" {
		leaver()
	}
	os.Exit(m.Run())
}

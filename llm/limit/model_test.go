package limit_test

import (
	"path/filepath"
	"testing"

	"github.com/inspan/inspan/harnesstest"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/limit"
)

// TestModel checks that a model that is held to limits is as good as without, as long as they are not reached.
func TestModel(t *testing.T) {
	harnesstest.TestModel(t, harnesstest.ModelParams{
		New:    newFake,
		Errors: []llm.Kind{llm.KindTransient, llm.KindRateLimited, llm.KindOverloaded, llm.KindQuota, llm.KindWindow, llm.KindInvalid},
	})
}

func newFake(t *testing.T, turns ...harnesstest.Turn) harnesstest.Fake {
	dir := t.TempDir()
	pace := &limit.Limit{Path: filepath.Join(dir, "pace"), Requests: 600, Tokens: 1_000_000}
	purse := &limit.Budget{Path: filepath.Join(dir, "spent"), PerDay: 1000}
	fake := harnesstest.Inner(t, turns...)
	fake.Model = purse.Model(pace.Model(fake.Model))
	return fake
}

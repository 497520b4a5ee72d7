package router_test

import (
	"testing"

	"github.com/inspan/inspan/harnesstest"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/router"
)

// after is a router that goes by the name of its only route: the suite wants replies, reasoning and errors to bear
// the name of the model under test, and those of a router bear the name of who answered.
type behind struct {
	llm.Model
	info llm.Info
}

func (b behind) Info() llm.Info { return b.info }

// TestModel checks that a router with one route is as good as the route.
func TestModel(t *testing.T) {
	harnesstest.TestModel(t, harnesstest.ModelParams{
		New: newFake,
		// It wants text first; a router says first who answers.
		Without: []string{"early-stop"},
		Errors:  []llm.Kind{llm.KindTransient, llm.KindRateLimited, llm.KindOverloaded, llm.KindWindow, llm.KindAuth, llm.KindInvalid},
	})
}

func newFake(t *testing.T, turns ...harnesstest.Turn) harnesstest.Fake {
	fake := harnesstest.Inner(t, turns...)
	route := fake.Model
	m := &router.Model{ID: "one", Routes: []router.Route{{Name: "only", Model: route}}}
	fake.Model = behind{m, route.Info()}
	return fake
}

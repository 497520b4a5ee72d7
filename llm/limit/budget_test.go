package limit_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/limit"
)

// dollar is a vendor whose every reply costs one dollar.
func dollar() *vendor {
	return &vendor{info: llm.Info{Provider: "p", Prices: llm.Prices{{Output: 10}}}, usage: llm.Usage{Output: 100_000}}
}

// spend asks until the budget is reached, and returns how often that went well.
func spend(t *testing.T, m llm.Model) int {
	t.Helper()
	for n := range 100 {
		held, failed := ask(t.Context(), m, say("hi"))
		if held != nil {
			t.Errorf("held back %v", held)
		}
		if failed != nil {
			if failed.Kind != llm.KindBudget {
				t.Fatal(failed)
			}
			return n
		}
	}
	t.Fatal("there is no end")
	return 0
}

// TestBudget checks that nothing is sent once the day's money is spent, and that the next day has its own.
func TestBudget(t *testing.T) {
	both(t, func(t *testing.T, path string) {
		v := dollar()
		b := &limit.Budget{Path: path, PerDay: 3}
		time.Sleep(23*time.Hour + 59*time.Minute) // bubbles start at midnight
		if n := spend(t, b.Model(v)); n != 3 || len(v.times()) != 3 {
			t.Errorf("%d requests went well, %d were sent", n, len(v.times()))
		}
		_, failed := ask(t.Context(), b.Model(v), say("hi"))
		if want := "$3.0000 spent today of $3.0000; the day ends at 00:00 UTC"; failed.Message != want || failed.Provider != "p" {
			t.Errorf("got %q by %q, want %q", failed.Message, failed.Provider, want)
		}
		time.Sleep(59 * time.Second)
		if n := spend(t, b.Model(v)); n != 0 {
			t.Errorf("a second before midnight %d requests went well", n)
		}
		time.Sleep(time.Second)
		if n := spend(t, b.Model(v)); n != 3 {
			t.Errorf("at midnight %d requests went well", n)
		}
	})
}

// TestBudgetRouted checks that the price is that of the model that answers.
func TestBudgetRouted(t *testing.T) {
	v := dollar()
	v.routed = &llm.Routed{Info: llm.Info{Prices: llm.Prices{{Output: 20}}}}
	if n := spend(t, (&limit.Budget{PerDay: 3}).Model(v)); n != 2 {
		t.Errorf("%d requests went well, want 2", n)
	}
}

// TestBudgetOfSilentVendors checks that usage is estimated if a vendor does not report it.
func TestBudgetOfSilentVendors(t *testing.T) {
	v := &vendor{info: llm.Info{Prices: llm.Prices{{Input: 10}}}}
	b := &limit.Budget{PerDay: 3}
	for n := range 5 {
		_, failed := ask(t.Context(), b.Model(v), say(strings.Repeat("x", 400_000))) // a dollar
		if failed != nil != (n >= 3) {
			t.Errorf("request %d: %v", n+1, failed)
		}
	}
}

// TestNoBudget checks that no limit means unlimited, and no price means no cost.
func TestNoBudget(t *testing.T) {
	free := dollar()
	free.info.Prices = nil
	for _, m := range []llm.Model{(&limit.Budget{}).Model(dollar()), (&limit.Budget{PerDay: 0.5}).Model(free)} {
		for range 5 {
			if _, failed := ask(t.Context(), m, say("hi")); failed != nil {
				t.Error(failed)
			}
		}
	}
}

// TestSeed checks the spending of a day that has already begun: Seed is asked for it once.
func TestSeed(t *testing.T) {
	both(t, func(t *testing.T, path string) {
		asked := 0
		b := &limit.Budget{Path: path, PerDay: 5, Seed: func(context.Context) (float64, error) { asked++; return 3, nil }}
		if n := spend(t, b.Model(dollar())); n != 2 || asked != 1 {
			t.Errorf("%d requests went well, Seed was asked %d times", n, asked)
		}
		time.Sleep(24 * time.Hour)
		if n := spend(t, b.Model(dollar())); n != 5 || asked != 1 {
			t.Errorf("the next day %d requests went well, Seed was asked %d times", n, asked)
		}
		fails := &limit.Budget{PerDay: 2, Seed: func(context.Context) (float64, error) { return 100, errors.New("no logs") }}
		if n := spend(t, fails.Model(dollar())); n != 2 {
			t.Errorf("when Seed fails %d requests went well", n)
		}
		ctx, cancel := context.WithCancel(t.Context())
		slow := &limit.Budget{PerDay: 2, Seed: func(ctx context.Context) (float64, error) { cancel(); <-ctx.Done(); return 0, ctx.Err() }}
		if _, failed := ask(ctx, slow.Model(dollar()), say("hi")); failed == nil || failed.Kind != llm.KindCancelled {
			t.Errorf("cancelled while Seed ran: %v", failed)
		}
	})
}

// TestDamagedBudget checks that an unreadable file counts as missing.
func TestDamagedBudget(t *testing.T) {
	for name, spoil := range damages() {
		t.Run(name, func(t *testing.T) {
			b := &limit.Budget{Path: filepath.Join(t.TempDir(), "spent"), PerDay: 5, Seed: func(context.Context) (float64, error) { return 3, nil }}
			if n := spend(t, b.Model(dollar())); n != 2 {
				t.Errorf("%d requests went well, want 2", n)
			}
			spoil(t, b.Path)
			if n := spend(t, b.Model(dollar())); n != 2 {
				t.Errorf("after the damage %d requests went well, want 2", n)
			}
			if info, err := os.Stat(b.Path); err != nil || info.Size() != 256 {
				t.Errorf("the file is not whole again: %v, %v", info, err)
			}
		})
	}
}

// TestBudgetClockSetBack checks that spending on a later day does not count for today.
func TestBudgetClockSetBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spent")
	spend(t, (&limit.Budget{Path: path, PerDay: 5}).Model(dollar())) // at the real time
	synctest.Test(t, func(t *testing.T) {
		b := &limit.Budget{Path: path, PerDay: 5, Seed: func(context.Context) (float64, error) { return 4, nil }}
		if n := spend(t, b.Model(dollar())); n != 1 {
			t.Errorf("%d requests went well, want 1", n)
		}
	})
}

// TestBudgetNoFile checks that nothing is sent while the spending is unknown.
func TestBudgetNoFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	v := dollar()
	_, failed := ask(t.Context(), (&limit.Budget{Path: filepath.Join(path, "below a file"), PerDay: 5}).Model(v), say("hi"))
	if failed == nil || failed.Kind != llm.KindBudget || !strings.HasPrefix(failed.Message, "can't tell what was spent today: ") ||
		len(v.times()) != 0 {
		t.Errorf("got %v, sent %d times", failed, len(v.times()))
	}
}

// TestOwed checks that spending that could not be written is not forgotten.
func TestOwed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dir")
	b := &limit.Budget{Path: filepath.Join(dir, "spent"), PerDay: 5}
	v := dollar()
	v.usage.Output = 400_000
	for c, err := range b.Model(v).Stream(t.Context(), say("hi")) {
		if err != nil {
			t.Fatal(err)
		}
		if c.Text == "" {
			continue
		}
		// The folder gives way to a file before the reply has come.
		if err := errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if _, failed := ask(t.Context(), b.Model(v), say("hi")); failed == nil || failed.Kind != llm.KindBudget {
		t.Errorf("got %v", failed)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if n := spend(t, b.Model(dollar())); n != 1 {
		t.Errorf("%d requests of a dollar went well after one of four, want 1", n)
	}
}

// FuzzFile checks that whatever is in the file, a request is sent or refused for its cost, and the file is whole
// afterwards.
func FuzzFile(f *testing.F) {
	path := filepath.Join(f.TempDir(), "spent")
	_, _ = ask(f.Context(), (&limit.Budget{Path: path, PerDay: 5}).Model(dollar()), say("hi"))
	whole, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:17])
	f.Add([]byte("00000000 {}\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(t.TempDir(), "spent")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if n := spend(t, (&limit.Budget{Path: path, PerDay: 5}).Model(dollar())); n > 5 {
			t.Errorf("%d dollars were spent of 5", n)
		}
		if info, err := os.Stat(path); err != nil || info.Size() != 256 {
			t.Errorf("the file is not whole: %v, %v", info, err)
		}
	})
}

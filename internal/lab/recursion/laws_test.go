package recursion_test

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/inspan/inspan/llm"
)

// small is the usual leaf.
func small(seed int, t task) *leaf {
	return &leaf{
		seed: seed, base: 0.02, begins: 16_000, decays: 200_000, window: 272_000, price: llm.Price{Input: 0.25, Output: 2}, does: t.does,
	}
}

// seeds is how many simulations a law is checked with.
func seeds(n int) int {
	if testing.Short() {
		return (n + 1) / 2
	}
	return n
}

// within checks that a sum of draws is inside its 99 % band.
func within(t *testing.T, what string, got, mean, variance float64) {
	t.Helper()
	const z = 2.576
	if band := z*math.Sqrt(variance) + 0.5; math.Abs(got-mean) > band {
		t.Errorf("%s: %.4g, want %.4g ± %.3g", what, got, mean, band)
	}
}

func number(t *testing.T, o outcome) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(strings.TrimSpace(o.answer), 64)
	if err != nil || o.none {
		t.Fatalf("%+v", o)
	}
	return n
}

// TestCountHasItsDistribution checks that a count by parts has the mean and the variance that follow from the error of the
// leaf, and that it makes one request a part.
func TestCountHasItsDistribution(t *testing.T) {
	for _, e := range []float64{0.01, 0.1, 0.2} {
		got, mean, variance := 0.0, 0.0, 0.0
		for seed := range seeds(4) {
			task := linear(seed, 8_000)
			l := small(seed, task)
			l.base = e
			p := mapped(6_000)
			o := play(t, l, task.sources, p.asks, p.code("linear", task))
			list, _, _ := rows(seed, 8_000, 50)
			a, n := float64(counts(list)["a"]), float64(len(list))
			got += number(t, o)
			mean += a*(1-e) + (n-a)*e/5
			variance += a*e*(1-e) + (n-a)*e/5*(1-e/5)
			if chunks := (task.chars + 5_999) / 6_000; o.requests < chunks || o.requests > chunks+2 || o.read < 0.99 {
				t.Errorf("%d requests for %d parts, %.3f read", o.requests, chunks, o.read)
			}
		}
		within(t, fmt.Sprintf("count at error %v", e), got, mean, variance)
	}
}

// TestPairsFollowFromUsers checks that F1 of pairs is what follows from the users that were found, and those from the
// error of the leaf.
func TestPairsFollowFromUsers(t *testing.T) {
	got, mean, variance := 0.0, 0.0, 0.0
	for seed := range seeds(3) {
		task := pairs(seed, 8_000)
		l := small(seed, task)
		l.base = 0.1
		p := mapped(6_000)
		o := play(t, l, task.sources, p.asks, p.code("pairs", task))
		list, _, _ := rows(seed, 8_000, 20)
		kept := 0.0
		truth := usersOf(list)
		found := map[string]bool{}
		for _, pair := range strings.Fields(o.answer) {
			a, b, _ := strings.Cut(pair, "-")
			found[a], found[b] = true, true
		}
		for _, u := range truth {
			if found[strconv.Itoa(u)] {
				kept++
			}
		}
		wrong := float64(len(found)) - kept
		right := kept * (kept - 1) / 2
		all := float64(len(truth)*(len(truth)-1)) / 2
		given := (kept + wrong) * (kept + wrong - 1) / 2
		if want, got := 2*right/(all+given), task.score(o.answer); math.Abs(want-got) > 1e-9 || got == 0 {
			t.Errorf("F1 %v, users give %v", got, want)
		}
		// A user is found if a row of any kind is taken for e or f.
		none := map[int]float64{}
		for _, r := range list {
			miss := 1 - 2*l.base/5
			if r.label == 'e' || r.label == 'f' {
				miss = l.base * 4 / 5
			}
			if _, seen := none[r.user]; !seen {
				none[r.user] = 1
			}
			none[r.user] *= miss
		}
		got += float64(len(found))
		for _, miss := range none {
			mean, variance = mean+1-miss, variance+miss*(1-miss)
		}
	}
	within(t, "users found", got, mean, variance)
}

// TestNeedleIsFoundAsOftenAsTheLeafSees checks the share of needles that a plain call and parts find.
func TestNeedleIsFoundAsOftenAsTheLeafSees(t *testing.T) {
	for _, p := range []policy{direct(), mapped(usualChunk)} {
		found, mean, variance := 0.0, 0.0, 0.0
		for seed := range seeds(50) {
			task := needle(seed, 30_000, float64(seed%5)/4, 3)
			l := small(seed, task)
			l.base = 0.2
			o := play(t, l, task.sources, 100, p.code("needle", task))
			found += task.score(o.answer)
			size := task.chars
			if p.chunk > 0 {
				size = p.chunk
			}
			e := l.errs(size)
			mean, variance = mean+1-e, variance+e*(1-e)
		}
		within(t, p.name, found, mean, variance)
	}
}

// TestMalformedRepliesAreAskedForOnceMore checks that a reply that can't be used is asked for once more, so that a share f of them leaves
// f² failed requests; and that a program fails with them, instead of counting them as answers.
func TestMalformedRepliesAreAskedForOnceMore(t *testing.T) {
	const f = 0.3
	failed, requests, asked := 0.0, 0.0, 0.0
	for seed := range seeds(4) {
		task := linear(seed, 16_000)
		l := small(seed, task)
		l.malformed = f
		p := mapped(1_000)
		p.codes["linear"] = parts + "const said = await Promise.allSettled(parts.map(p => ask(Q({do: 'tally'}), p, {schema: {type: 'object'}}))); answer(String(said.length))"
		o := play(t, l, task.sources, p.asks, p.code("linear", task))
		failed, requests, asked = failed+float64(o.failed), requests+number(t, o), asked+float64(o.requests)
	}
	within(t, "failed", failed, requests*f*f, requests*f*f*(1-f*f))
	within(t, "sent", asked, requests*(1+f), requests*f*(1-f))
	task := linear(1, 16_000)
	l := small(1, task)
	l.malformed = 1
	p := mapped(4_000)
	if o := play(t, l, task.sources, p.asks, p.code("linear", task)); !o.none || !strings.Contains(o.why, "AskError") {
		t.Errorf("%+v", o)
	}
}

// TestVotesHelpIfErrorsAreIndependent checks the error that is left after a vote of three, with independent and with
// correlated errors.
func TestVotesHelpIfErrorsAreIndependent(t *testing.T) {
	const e = 0.2
	for _, correlated := range []bool{false, true} {
		got, mean, variance := 0.0, 0.0, 0.0
		for seed := range seeds(3) {
			task := linear(seed, 8_000)
			l := small(seed, task)
			l.base, l.correlated = e, correlated
			p := voting(4_000, 3)
			got += number(t, play(t, l, task.sources, p.asks, p.code("linear", task)))
			list, _, _ := rows(seed, 8_000, 50)
			a, n := float64(counts(list)["a"]), float64(len(list))
			// A vote without a majority goes to the first one.
			two := 3*e*e*(1-e) + e*e*e // at least two are wrong
			allApart := 3 * e * e * (1 - e) * 4 / 5
			firstRight := allApart / 3 // one right one, and it is the first
			lost, gained := two-firstRight, 0.0
			// A row of another label becomes a if two of three say so, or if all differ and the first says so.
			x := e / 5
			gained = 3*x*x*(1-x) + x*x*x + x*((1-e)*(4*x)*2+(4*x)*(3*x))
			if correlated {
				lost, gained = e, e/5
			}
			mean += a*(1-lost) + (n-a)*gained
			variance += a*lost*(1-lost) + (n-a)*gained*(1-gained)
		}
		within(t, fmt.Sprintf("correlated %t", correlated), got, mean, variance)
	}
}

// TestTreeCostsTheSumOfItsLevels checks the number of requests of a tree.
func TestTreeCostsTheSumOfItsLevels(t *testing.T) {
	task := linear(1, 30_000)
	sum := task.does
	task.does = func(l *leaf, q question, text string) string {
		if q.Do != "sum" {
			return sum(l, q, text)
		}
		n := 0
		for _, one := range strings.Fields(text) {
			k, _ := strconv.Atoi(one)
			n += k
		}
		return strconv.Itoa(n)
	}
	l := small(1, task)
	l.base = 0
	p := twoLevels(4_000, 4)
	o := play(t, l, task.sources, p.asks, p.code("linear", task))
	leaves := mapped(4_000)
	m := small(1, task)
	level := play(t, m, task.sources, leaves.asks, leaves.code("linear", task)).requests
	want := level
	for level > 1 {
		level = (level + 3) / 4
		want += level
	}
	if o.requests != want || o.answer != task.gold {
		t.Errorf("%d requests, want %d; %s, want %s", o.requests, want, o.answer, task.gold)
	}
}

// TestRunawayIsStopped checks that a request for each line stops at the limit, before it has cost more.
func TestRunawayIsStopped(t *testing.T) {
	task := linear(1, 30_000)
	l := small(1, task)
	o := play(t, l, task.sources, 200, lines(200).code("linear", task))
	if !o.none || o.requests > 200 || !strings.Contains(o.why, "at most 200 times") {
		t.Errorf("%+v", o)
	}
}

// TestHopsNeedTheOneBefore checks that a chain over documents is found by asking where a search leads, and neither by
// one retrieval nor by a plain call that it does not fit.
func TestHopsNeedTheOneBefore(t *testing.T) {
	task := hops(3, 400_000, 200, 3)
	for _, tc := range []struct {
		policy policy
		score  float64
		says   string
	}{{mapped(usualChunk), 1, ""}, {retrieval(), 0, ""}, {direct(), 0, "cut the text with chunks"}} {
		l := small(3, task)
		l.base = 0
		o := play(t, l, task.sources, 500, tc.policy.code("hops", task))
		if task.score(o.answer) != tc.score || !strings.Contains(o.why, tc.says) {
			t.Errorf("%s: %+v, want %s", tc.policy.name, o, task.gold)
		}
	}
}

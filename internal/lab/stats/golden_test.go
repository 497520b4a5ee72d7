package stats

import (
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"reflect"
	"testing"
)

// row is a line of the golden numbers: arguments and result.
type row []json.RawMessage

func read[T any](t *testing.T, raw json.RawMessage) (v T) {
	t.Helper()
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func golden(t *testing.T) []byte {
	t.Helper()
	raw, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 1e-8*max(1, math.Abs(want))) {
		t.Errorf("%s is %.12g, not %.12g", what, got, want)
	}
}

// TestAgainstSciPy compares with golden numbers of an independent implementation in another language.
func TestAgainstSciPy(t *testing.T) {
	numbers := read[map[string][]row](t, golden(t))
	number := func(r row, i int) float64 { return read[float64](t, r[i]) }
	whole := func(r row, i int) int { return read[int](t, r[i]) }
	several := func(r row, i int) []float64 { return read[[]float64](t, r[i]) }
	each := func(name string, check func(r row)) {
		if len(numbers[name]) == 0 {
			t.Errorf("there are no golden numbers for %s", name)
		}
		for _, r := range numbers[name] {
			check(r)
		}
	}
	between := func(name string, f func(k, n int, level float64) Interval) {
		each(name, func(r row) {
			got, want := f(whole(r, 0), whole(r, 1), number(r, 2)), several(r, 3)
			near(t, name+" low", got.Low, want[0])
			near(t, name+" high", got.High, want[1])
		})
	}
	between("wilson", Wilson)
	between("clopper_pearson", ClopperPearson)
	each("mcnemar", func(r row) { near(t, "mcnemar", McNemar(whole(r, 0), whole(r, 1)), number(r, 2)) })
	each("flips", func(r row) {
		f, want := NewFlips(several(r, 0)), several(r, 1)
		near(t, "two-sided flips", f.P(), want[0])
		near(t, "flips above", f.Above(), want[1])
		near(t, "flips below", f.Below(), want[2])
	})
	each("expanded", func(r row) { near(t, "expanded", expanded(number(r, 0), whole(r, 1)), number(r, 2)) })
	corrected := func(name string, f func([]float64) []float64) {
		each(name, func(r row) {
			for i, got := range f(several(r, 0)) {
				near(t, name, got, several(r, 1)[i])
			}
		})
	}
	corrected("holm", Holm)
	corrected("false_discoveries", FalseDiscoveries)
	each("kappa", func(r row) {
		kappa, in := Kappa(read[[][]int](t, r[0]), 0.95)
		near(t, "kappa", kappa, number(r, 1))
		near(t, "kappa low", in.Low, max(-1, number(r, 2)))
		near(t, "kappa high", in.High, min(1, number(r, 3)))
	})
	each("power", func(r row) {
		d := Design{Tasks: whole(r, 0), Tries: 1, Disagree: number(r, 1), Alpha: 0.05}
		near(t, "power", d.Power(number(r, 2)), number(r, 3))
	})
	each("rising", func(r row) { near(t, "rising", Rising(whole(r, 0), whole(r, 1), number(r, 2)), number(r, 3)) })
}

// TestGoldenIsWhatTheScriptSays runs the script where Python has the packages.
func TestGoldenIsWhatTheScriptSays(t *testing.T) {
	if err := exec.Command("python3", "-c", "import scipy, statsmodels").Run(); err != nil {
		t.Skip("SKIPPED: python3 has no scipy and statsmodels")
	}
	out, err := exec.Command("python3", "testdata/golden.py").Output()
	if err != nil {
		t.Fatal(err)
	}
	fresh, kept := read[map[string]any](t, out), read[map[string]any](t, golden(t))
	if !alike(fresh, kept) {
		t.Errorf("testdata/golden.json is not what golden.py prints:\n%s", out)
	}
}

// alike compares values of JSON, numbers as far as versions of the packages agree.
func alike(a, b any) bool {
	switch a := a.(type) {
	case float64:
		b, ok := b.(float64)
		return ok && math.Abs(a-b) <= 1e-9*max(1, math.Abs(a))
	case []any:
		b, ok := b.([]any)
		same := ok && len(a) == len(b)
		for i := 0; same && i < len(a); i++ {
			same = alike(a[i], b[i])
		}
		return same
	case map[string]any:
		b, ok := b.(map[string]any)
		same := ok && len(a) == len(b)
		for key, v := range a {
			same = same && alike(v, b[key])
		}
		return same
	}
	return reflect.DeepEqual(a, b)
}

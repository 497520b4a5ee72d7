package consent_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/safety/consent"
)

func store(t testing.TB) *consent.Store {
	return &consent.Store{Dir: filepath.Join(t.TempDir(), "state", "consent")}
}

// folder returns a folder under its canonical name.
func folder(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func always(rule string) consent.Approval {
	return consent.Approval{Rule: rule, Scope: event.ScopeAlways, By: "ann", At: time.Date(2026, 11, 22, 1, 2, 3, 0, time.UTC)}
}

func project(rule, root string) consent.Approval {
	a := always(rule)
	a.Scope, a.Root = event.ScopeProject, root
	return a
}

func approve(t testing.TB, s *consent.Store, approvals ...consent.Approval) {
	t.Helper()
	if err := s.Approve(t.Context(), approvals...); err != nil {
		t.Fatal(err)
	}
}

func wantApprovals(t testing.TB, s *consent.Store, root string, want ...consent.Approval) {
	t.Helper()
	got, err := s.Approvals(root)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, append([]consent.Approval(nil), got...)); diff != "" {
		t.Errorf("approvals in %q (-want +got):\n%s", root, diff)
	}
}

func TestApprovalsHoldWhereTheyWereGiven(t *testing.T) {
	s, one, two := store(t), folder(t), folder(t)
	child := filepath.Join(one, "child")
	if err := os.Mkdir(child, 0o755); err != nil {
		t.Fatal(err)
	}
	wantApprovals(t, s, "")
	a, b, c := always("read(~/docs/**)"), project("bash(go test *)", one), project("bash(make)", two)
	approve(t, s, a, b)
	approve(t, s, c)
	wantApprovals(t, s, "", a, b, c)
	wantApprovals(t, s, one, a, b)
	wantApprovals(t, s, two, a, c)
	wantApprovals(t, s, child, a)
	wantApprovals(t, s, one+"x", a)

	alias := filepath.Join(t.TempDir(), "alias")
	link(t, one, alias)
	wantApprovals(t, s, alias, a, b)
	wantApprovals(t, s, filepath.Join(alias, "child", ".."), a, b)
}

func TestApproveIsIdempotent(t *testing.T) {
	s, root := store(t), folder(t)
	first := []consent.Approval{always("bash(ls)"), project("bash(ls)", root)}
	approve(t, s, first...)
	before := stat(t, s, "approvals.json")
	later := first[0]
	later.At, later.By, later.Rule = later.At.Add(time.Hour), "bob", "  bash(ls)\n"
	approve(t, s, later, first[1], later)
	wantApprovals(t, s, "", first...)
	if !os.SameFile(before, stat(t, s, "approvals.json")) {
		t.Error("the file was written although nothing changed")
	}
	approve(t, s, always("bash(pwd)"))
	if os.SameFile(before, stat(t, s, "approvals.json")) {
		t.Error("the file was changed in place, not replaced")
	}
}

func stat(t testing.TB, s *consent.Store, name string) os.FileInfo {
	t.Helper()
	info, err := os.Stat(filepath.Join(s.Dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func TestTimeIsNowUnlessGiven(t *testing.T) {
	s := store(t)
	approve(t, s, consent.Approval{Rule: "r", Scope: event.ScopeAlways})
	got, err := s.Approvals("")
	if err != nil || len(got) != 1 || time.Since(got[0].At) > time.Minute {
		t.Errorf("%v, %v", got, err)
	}
}

func TestRevoke(t *testing.T) {
	one, two := folder(t), folder(t)
	all := []consent.Approval{always("x"), project("x", one), project("x", two), always("y")}
	for _, tt := range []struct {
		name, rule, root string
		n                int
		left             []consent.Approval
	}{
		{"everywhere", "x", "", 3, all[3:]},
		{"in one root, and so always", "x", one, 2, []consent.Approval{all[2], all[3]}},
		{"unknown rule", "z", "", 0, all},
		{"part of a rule", "", "", 0, all},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := store(t)
			approve(t, s, all...)
			if n, err := s.Revoke(t.Context(), tt.rule, tt.root); n != tt.n || err != nil {
				t.Errorf("%d, %v; want %d", n, err, tt.n)
			}
			wantApprovals(t, s, "", tt.left...)
		})
	}
}

func TestRootThatIsGone(t *testing.T) {
	s, parent := store(t), folder(t)
	root, alias := filepath.Join(parent, "gone"), filepath.Join(t.TempDir(), "alias")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	link(t, parent, alias)
	a := project("x", root)
	approve(t, s, a)
	if err := os.Remove(root); err != nil {
		t.Fatal(err)
	}
	wantApprovals(t, s, filepath.Join(alias, "gone"), a)
	if n, err := s.Revoke(t.Context(), "x", filepath.Join(alias, "gone")); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if err := s.Approve(t.Context(), a); err == nil {
		t.Error("a root that is not there was approved")
	}
}

func TestApproveRefuses(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*consent.Approval)
		want   string
	}{
		"no rule":           {func(a *consent.Approval) { a.Rule = " " }, "no rule"},
		"two lines":         {func(a *consent.Approval) { a.Rule = "x\ny" }, "control characters"},
		"an escape":         {func(a *consent.Approval) { a.By = "\x1b[2J" }, "control characters"},
		"bytes":             {func(a *consent.Approval) { a.Rule = "x\xff" }, "not UTF-8"},
		"a novel":           {func(a *consent.Approval) { a.Rule = strings.Repeat("x", 1<<20) }, "too long"},
		"once":              {func(a *consent.Approval) { a.Scope = event.ScopeOnce }, "does not outlive"},
		"session":           {func(a *consent.Approval) { a.Scope = event.ScopeSession }, "does not outlive"},
		"unknown scope":     {func(a *consent.Approval) { a.Scope = "for ever" }, "does not outlive"},
		"always in a root":  {func(a *consent.Approval) { a.Root = "." }, "has no root"},
		"project, no root":  {func(a *consent.Approval) { a.Scope = event.ScopeProject }, "no root is named"},
		"project elsewhere": {func(a *consent.Approval) { a.Scope, a.Root = event.ScopeProject, "/no/such/folder" }, "find the root"},
	} {
		t.Run(name, func(t *testing.T) {
			s := store(t)
			good, bad := always("good"), always("x")
			approve(t, s, good)
			tt.change(&bad)
			if err := s.Approve(t.Context(), always("also good"), bad); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			wantApprovals(t, s, "", good)
		})
	}
}

func TestNoFolder(t *testing.T) {
	s := &consent.Store{}
	_, err1 := s.Approvals("")
	_, err2 := s.Review(folder(t), nil)
	if err := s.Approve(t.Context(), always("x")); err == nil || err1 == nil || err2 == nil {
		t.Errorf("%v, %v, %v", err, err1, err2)
	}
}

// TestDamage changes a file in every way that disks and people do.
func TestDamage(t *testing.T) {
	good := func(t *testing.T) (*consent.Store, string, []byte) {
		s := store(t)
		approve(t, s, always("bash(go test ./a)"), always("read(~/docs/**)"))
		path := filepath.Join(s.Dir, "approvals.json")
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return s, path, data
	}
	refused := func(t *testing.T, s *consent.Store, path string, data []byte, want string) {
		t.Helper()
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		list, err := s.Approvals("")
		if err == nil || len(list) > 0 || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), want) {
			t.Fatalf("read: %v, %v; want %q", list, err, want)
		}
		_, revoke := s.Revoke(t.Context(), "read(~/docs/**)", "")
		if err := s.Approve(t.Context(), always("x")); err == nil || revoke == nil {
			t.Errorf("written over: %v, %v", err, revoke)
		}
		if after, err := os.ReadFile(path); err != nil || string(after) != string(data) {
			t.Errorf("the damaged file was touched: %v", err)
		}
	}
	for name, tt := range map[string]struct {
		change func(string) string
		want   string
	}{
		"empty":         {func(string) string { return "" }, "damaged (it is empty); put back a copy, or remove"},
		"null":          {func(string) string { return "null" }, "damaged"},
		"object":        {func(string) string { return "{}" }, "damaged"},
		"wider rule":    {func(s string) string { return strings.Replace(s, "./a)", "./*)", 1) }, "sum is wrong"},
		"other scope":   {func(s string) string { return strings.Replace(s, "always", "projec", 1) }, "sum is wrong"},
		"no sum":        {func(s string) string { return strings.Replace(s, "sha256", "sha255", 1) }, "damaged"},
		"later version": {func(s string) string { return strings.Replace(s, `"version": 1`, `"version": 2`, 1) }, "later version of inspan"},
		"twice":         {func(s string) string { return s + s }, "something follows"},
		"zeros":         {func(s string) string { return strings.Repeat("\x00", len(s)) }, "damaged"},
		"huge":          {func(s string) string { return s + strings.Repeat(" ", 17<<20) }, "longer than"},
	} {
		t.Run(name, func(t *testing.T) {
			s, path, data := good(t)
			refused(t, s, path, []byte(tt.change(string(data))), tt.want)
		})
	}
	t.Run("cut anywhere", func(t *testing.T) {
		s, path, data := good(t)
		for n := range len(data) - 2 { // the last two: the end of the line, and then the last bracket
			if err := os.WriteFile(path, data[:n], 0o600); err != nil {
				t.Fatal(err)
			}
			if list, err := s.Approvals(""); err == nil {
				t.Fatalf("cut to %d bytes: %v", n, list)
			}
		}
	})
	t.Run("bits", func(t *testing.T) {
		s, path, data := good(t)
		want, err := s.Approvals("")
		if err != nil {
			t.Fatal(err)
		}
		for bit := 0; bit < len(data)*8; bit += 5 {
			data[bit/8] ^= 1 << (bit % 8)
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			if list, err := s.Approvals(""); err == nil && !cmp.Equal(list, want) {
				t.Fatalf("bit %d: %v", bit, list)
			}
			data[bit/8] ^= 1 << (bit % 8)
		}
	})
}

func TestModes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no modes")
	}
	mode := func(t *testing.T, path string) os.FileMode {
		t.Helper()
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode().Perm()
	}
	s := store(t)
	a := always("x")
	approve(t, s, a)
	file := filepath.Join(s.Dir, "approvals.json")
	if d, f, l := mode(t, s.Dir), mode(t, file), mode(t, filepath.Join(s.Dir, "lock")); d != 0o700 || f != 0o600 || l != 0o600 {
		t.Errorf("made with %o, %o, %o", d, f, l)
	}
	for _, tt := range []struct {
		path       string
		wide, want os.FileMode
	}{{s.Dir, 0o755, 0o700}, {file, 0o644, 0o600}} {
		chmod(t, tt.path, tt.wide)
		wantApprovals(t, s, "", a)
		if got := mode(t, tt.path); got != tt.want {
			t.Errorf("%s stays readable for others: %o", tt.path, got)
		}
	}
	for _, tt := range []struct {
		path       string
		wide, back os.FileMode
	}{{s.Dir, 0o770, 0o700}, {s.Dir, 0o702, 0o700}, {file, 0o620, 0o600}, {file, 0o606, 0o600}} {
		chmod(t, tt.path, tt.wide)
		list, err := s.Approvals("")
		if err == nil || len(list) > 0 || !strings.Contains(err.Error(), tt.path) || !strings.Contains(err.Error(), "chmod") {
			t.Errorf("%s with %o: %v, %v", tt.path, tt.wide, list, err)
		}
		if err := s.Approve(t.Context(), always("y")); err == nil {
			t.Errorf("%s with %o was written", tt.path, tt.wide)
		}
		chmod(t, tt.path, tt.back)
		wantApprovals(t, s, "", a)
	}
}

func TestWrongTypes(t *testing.T) {
	elsewhere := store(t)
	approve(t, elsewhere, always("planted"))
	for _, name := range []string{"approvals.json", "lock"} {
		s := store(t)
		if err := os.MkdirAll(s.Dir, 0o700); err != nil {
			t.Fatal(err)
		}
		link(t, filepath.Join(elsewhere.Dir, name), filepath.Join(s.Dir, name))
		if err := s.Approve(t.Context(), always("x")); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s is a link: %v", name, err)
		}
	}
	s := store(t)
	if err := os.MkdirAll(filepath.Join(s.Dir, "approvals.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	if list, err := s.Approvals(""); err == nil {
		t.Errorf("the file is a folder: %v", list)
	}
	if err := (&consent.Store{Dir: filepath.Join(elsewhere.Dir, "approvals.json")}).Approve(t.Context(), always("x")); err == nil {
		t.Error("the folder is a file")
	}
}

func TestLeftoversAreSwept(t *testing.T) {
	s := store(t)
	approve(t, s, always("x"))
	write(t, s.Dir, "approvals.json.new-ABC", "half")
	write(t, s.Dir, "kept", "not ours")
	approve(t, s, always("y"))
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if diff := cmp.Diff([]string{"approvals.json", "kept", "lock"}, names); diff != "" {
		t.Error(diff)
	}
}

func TestCancelled(t *testing.T) {
	s := store(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Approve(ctx, always("x")); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	wantApprovals(t, s, "")
}

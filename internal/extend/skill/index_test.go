package skill_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/inspan/inspan/internal/extend/skill"
	"github.com/inspan/inspan/llm"
)

func TestIndex(t *testing.T) {
	long, middle := strings.Repeat("ä", 200), strings.Repeat("m", 60)
	skills := []skill.Skill{
		{Name: "a", Description: long},
		{Name: "b", Description: "short one"},
		{Name: "m", Description: "x", Manual: true},
		{Name: "c", Description: middle},
		{Name: "d"},
		{Name: "e", Description: long, Hidden: true},
	}
	whole := "- a: " + long + "\n- b: short one\n- c: " + middle + "\n- d\n- e: " + long + "\n"
	for _, most := range []int{0, -1, len(whole), len(whole) + 1} {
		if got := skill.Index(skills, most); got != whole {
			t.Errorf("%d: %q", most, got)
		}
	}
	if got, want := skill.Index(skills, 400), 360; len(got) > 400 || len(got) < want ||
		!strings.Contains(got, "- b: short one\n- c: "+middle+"\n- d\n- e: ä") ||
		!strings.HasSuffix(got, "ä…\n(2 descriptions are cut short here.)\n") {
		t.Errorf("%d %q", len(got), got)
	}
	if got := skill.Index(skills, 220); len(got) > 220 || !strings.Contains(got, "(3 descriptions are cut short here.)") ||
		!strings.Contains(got, "short one\n") {
		t.Errorf("%d %q", len(got), got)
	}
	if got, want := skill.Index(skills, 70), "- a\n- b\n- c\n- d\n- e\n(All descriptions are left out here.)\n"; got != want {
		t.Errorf("%q", got)
	}
	if got, want := skill.Index(skills, 57), "- a\n(All descriptions are left out here, and 4 skills.)\n"; got != want {
		t.Errorf("%q", got)
	}
	if got := skill.Index(skills, 20); got != "" {
		t.Errorf("%q", got)
	}
	if got := skill.Index(skills[2:3], 0) + skill.Index(nil, 0) + skill.Index(nil, 10); got != "" {
		t.Errorf("%q", got)
	}
}

func FuzzIndex(f *testing.F) {
	f.Add(100, 5, "aä語 b", 7)
	f.Fuzz(func(t *testing.T, most, n int, text string, step int) {
		n, step = max(0, min(n, 50)), max(0, min(step, 100))
		var skills []skill.Skill
		for i := range n {
			skills = append(skills, skill.Skill{
				Name:        fmt.Sprint("skill", i),
				Description: strings.ToValidUTF8(strings.ReplaceAll(strings.Repeat(text, i*step/10), "\n", " "), ""),
			})
		}
		got := skill.Index(skills, most)
		if most > 0 && len(got) > most || !utf8.ValidString(got) || most <= 0 && strings.Count(got, "\n") != n {
			t.Errorf("%d for %d: %q", len(got), most, got)
		}
	})
}

func TestCost(t *testing.T) {
	l, _ := library(t, map[string]string{
		"a/SKILL.md": "---\nname: a\ndescription: Does it.\n---\n" + strings.Repeat("word ", 100), "a/references/x.md": strings.Repeat("x", 700),
		"a/y.md": "y", "a/image.png": "\x00\x01\x02",
		"m/SKILL.md": "---\nname: m\ndescription: Does it.\ndisable-model-invocation: true\n---\nx",
	})
	got, err := l.Cost("a")
	text, _, _ := l.Invoke("a", "")
	tokens := func(s string) int { return llm.Message{Parts: llm.Say(s)}.Tokens() }
	want := skill.Levels{
		Index: skill.Size{Bytes: 14, Tokens: 7}, Text: skill.Size{Bytes: len(text), Tokens: tokens(text)},
		Files: skill.Size{Bytes: 701, Tokens: 209}, Count: 2,
	}
	if got != want || err != nil || got.Text.Tokens < 140 {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	if got, err := l.Cost("m"); got.Index != (skill.Size{}) || got.Text.Bytes == 0 || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := l.Cost("none"); err == nil {
		t.Error("no error for a skill that is not there")
	}
}

// fiveHundred makes a folder with 500 skills of usual size. One in ten has front matter that is not YAML, and one in
// ten a folded description.
func fiveHundred(tb testing.TB) skill.Folder {
	tb.Helper()
	dir := tb.TempDir()
	body := strings.Repeat("Read the file, then change it. Check that it works.\n", 100)
	old := time.Now().Add(-time.Hour)
	for i := range 500 {
		name := fmt.Sprintf("skill-%03d", i)
		head := "description: Does this and that with files of kind " + name + ". Use when asked for it, or when such files change.\n"
		switch i % 10 {
		case 0:
			head = "description: Does this: and that. Use when: asked for it.\nargument-hint: [file] [depth]\n"
		case 1:
			head = "description: >\n  Does this and that.\n  Use when asked for it.\nmetadata:\n  author: someone\n"
		}
		path := filepath.Join(dir, name, "SKILL.md")
		if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("---\nname: "+name+"\n"+head+"license: MIT\nallowed-tools: Read Grep\n---\n"+body),
			0o644); err != nil {
			tb.Fatal(err)
		}
		if err := os.Chtimes(path, old, old); err != nil {
			tb.Fatal(err)
		}
	}
	return skill.Folder{Path: dir, Source: "user"}
}

func BenchmarkList500(b *testing.B) {
	folder := fiveHundred(b)
	list := func(b *testing.B, l *skill.Library) {
		if skills, warnings := l.List(); len(skills) != 500 || warnings != nil {
			b.Fatal(len(skills), warnings)
		}
	}
	b.Run("cold", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			list(b, &skill.Library{Folders: []skill.Folder{folder}})
		}
	})
	b.Run("unchanged", func(b *testing.B) {
		b.ReportAllocs()
		l := &skill.Library{Folders: []skill.Folder{folder}}
		for b.Loop() {
			list(b, l)
		}
	})
}

func BenchmarkIndex500(b *testing.B) {
	l := &skill.Library{Folders: []skill.Folder{fiveHundred(b)}}
	skills, _ := l.List()
	for b.Loop() {
		if text := skill.Index(skills, 20_000); len(text) > 20_000 || len(text) < 19_000 {
			b.Fatal(len(text))
		}
	}
}

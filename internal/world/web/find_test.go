package web_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/inspan/inspan/internal/world/web"
)

func TestFind(t *testing.T) {
	text := "# Guide\n\nAn intro.\n\n## Retries\n\nSet Max to three.\n\n```go\nMax: 3,\n\nWait: 1,\n```\n\n## Limits\n\n" +
		"The max wait is an hour.\n"
	for _, tt := range []struct {
		words string
		want  []string
		not   []string
	}{
		{"MAX wait", []string{"[at 51, under Retries]", "Max: 3,\n\nWait: 1,", "The max wait"}, []string{"An intro", "Set Max"}},
		{"retries three", []string{"under Retries]\nSet Max to three."}, []string{"hour"}},
		{"intro nothere", []string{"[no passage has all of the words; these have 1 of 2]", "An intro."}, []string{"hour"}},
	} {
		got, ok := web.Find(text, tt.words)
		for _, w := range tt.want {
			if !ok || !strings.Contains(got, w) {
				t.Errorf("%s: %q is not in\n%s", tt.words, w, got)
			}
		}
		for _, w := range tt.not {
			if strings.Contains(got, w) {
				t.Errorf("%s: %q is in\n%s", tt.words, w, got)
			}
		}
	}
	for _, words := range []string{"nothere", "", "  "} {
		if got, ok := web.Find(text, words); ok {
			t.Errorf("%q was found: %s", words, got)
		}
	}
	many := strings.Repeat("heron\n\n", 30)
	if got, _ := web.Find(many, "heron"); strings.Count(got, "[at ") != 20 || !strings.Contains(got, "[10 more passages") {
		t.Errorf("many passages: %s", got)
	}
	long := strings.Repeat("é", 3000) + " heron " + strings.Repeat("ü", 3000)
	if got, _ := web.Find(long, "heron"); len(got) > 1400 || !strings.Contains(got, "… ") || !strings.Contains(got, "heron") {
		t.Errorf("long passage: %d bytes", len(got))
	}
}

func TestCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c web.Cache
		put := func(address string, size int) {
			c.Put(address, web.Fetched{Page: web.Page{Text: strings.Repeat("x", size)}, At: time.Now()})
		}
		has := func(address string, want bool) {
			t.Helper()
			if _, ok := c.Get(address); ok != want {
				t.Errorf("%s is there: %v", address, ok)
			}
		}
		put("a", 1)
		time.Sleep(14 * time.Minute)
		has("a", true)
		put("b", 1)
		time.Sleep(time.Minute)
		has("a", false)
		has("b", true)
		for i := range 64 {
			put(fmt.Sprint(i), 1)
			has("b", true) // used last, so it stays
		}
		has("0", false)
		has("1", true)
		put("big", 9<<20)
		has("big", false)
		for i := range 4 {
			put(fmt.Sprint("m", i), 5<<20)
		}
		has("m0", false)
		has("m1", true)
		has("b", false)
		put("m1", 1)
		put("m4", 5<<20)
		has("m2", true)
	})
	var none *web.Cache
	none.Put("a", web.Fetched{})
	if _, ok := none.Get("a"); ok {
		t.Error("the nil cache keeps something")
	}
}

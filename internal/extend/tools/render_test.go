package tools_test

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRender checks that rendered content is for the person alone, that a page stands for itself, and that text in a
// figure stays text.
func TestRender(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	img := image.NewRGBA(image.Rect(0, 0, 8, 8))
	img.Set(3, 3, color.RGBA{R: 255, A: 255})
	var buf bytes.Buffer
	if err := png.Encode(&buf, img); err != nil {
		t.Fatal(err)
	}
	s.put("p.png", buf.String())
	s.put("a.txt", "text")
	evil := "<script>alert(1)</script>"
	res, err := s.try(t.Context(), "render", args{
		"title": evil, "markdown": "All of *it*. " + evil, "table": args{"head": []string{"name"}, "rows": [][]string{{evil}, {"a|b"}}},
		"chart": args{"kind": "line", "labels": []string{evil, "x"}, "series": []args{{"name": evil, "values": []int{1, 2}}}}, "image": "p.png",
		"save_to": "out/r.html",
	})
	if err != nil {
		t.Fatal(err)
	}
	if text := res.Parts.Text(); len(res.Parts) != 1 || len(text) > 200 || strings.Contains(text, evil) {
		t.Errorf("the model gets %d parts and %q", len(res.Parts), text)
	}
	for _, want := range []string{"All of *it*.", "| name |", "a\\|b", "```chart {", "![p.png](data:image/png;base64,iVBOR", `"PNG, 8 x 8, 83 B")`} {
		if !strings.Contains(res.Show, want) {
			t.Errorf("%q is not shown:\n%s", want, res.Show)
		}
	}
	raw, err := os.ReadFile(filepath.Join(s.env.Root, "out/r.html"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(raw)
	for _, want := range []string{"default-src 'none'", "<em>it</em>", "<svg", "<table", `src="data:image/png;base64,`, "a|b"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	if strings.Contains(page, "<script") {
		t.Error("a script is in the page")
	}
	for want, a := range map[string]args{
		"nothing to show":  {"title": "x"},
		"no values":        {"title": "x", "chart": args{"kind": "bar", "series": []args{}}},
		"PNG, JPEG":        {"title": "x", "image": "a.txt"},
		"table is empty":   {"title": "x", "table": args{"head": []string{}, "rows": [][]string{}}},
		"show less":        {"title": "x", "markdown": strings.Repeat("word ", 20_000)},
		"read it first":    {"title": "x", "markdown": "y", "save_to": "a.txt"},
		`"pie" is none of`: {"title": "x", "chart": args{"kind": "pie", "series": []args{{"values": []int{1}}}}},
	} {
		s.fails("render", a, want)
	}
	if left, err := os.ReadFile(filepath.Join(s.env.Root, "a.txt")); err != nil || string(left) != "text" {
		t.Errorf("a file that was not read is now %q, %v", left, err)
	}
}

package web_test

import (
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/world/web"
)

var update = flag.Bool("update", false, "write the golden files")

func base(t testing.TB) *url.URL {
	t.Helper()
	u, err := url.Parse("https://heron.test/docs/guides/retries")
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func page(t testing.TB, html string) web.Page {
	t.Helper()
	p, err := web.Read([]byte(html), "text/html; charset=utf-8", base(t))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPages reads the pages in testdata. After an intended change, go test -update writes the results.
func TestPages(t *testing.T) {
	files, err := filepath.Glob("testdata/*.html")
	if err != nil || len(files) == 0 {
		t.Fatal("no pages", err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		p := page(t, string(raw))
		got := strings.Join([]string{"title: " + p.Title, "byline: " + p.Byline, "date: " + p.Date, "note: " + p.Note, "", p.Text, ""}, "\n")
		golden := strings.TrimSuffix(file, ".html") + ".md"
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
		if strings.Contains(got, "SECRET") {
			t.Errorf("%s: what is hidden came through", file)
		}
	}
}

// TestHiddenDeep checks that nesting does not reveal hidden text.
func TestHiddenDeep(t *testing.T) {
	for name, html := range map[string]string{
		"in deep elements":   strings.Repeat("<div>", 1000) + "<div hidden><i>SECRET</i></div>seen",
		"around them":        "<div hidden>" + strings.Repeat("<div>", 1000) + "SECRET" + strings.Repeat("</div>", 1001) + "seen",
		"in deep hidden":     strings.Repeat("<div>", 1000) + "<div hidden><div><div>SECRET</div></div>SECRET</div>seen",
		"unclosed":           "seen<div hidden>" + strings.Repeat("<b>", 1000) + "SECRET",
		"cell":               "<table><tr><td hidden><div>SECRET</td><td>seen</td></tr></table>",
		"end tags within":    "seen<span hidden><table><tr><td></span>SECRET</td></tr></table></span>",
		"same colour":        "seen<p style='color: #000; background-color: black'>SECRET</p>",
		"important":          "seen<p style='display:none!important;display:block'>SECRET</p>",
		"body class":         "<style>html body .a.b#c{visibility:hidden}</style>seen<p class='b a' id=c>SECRET</p>",
		"two rules":          "<style>.k{display:none} .k{margin:0}</style>seen<p class=k>SECRET</p>",
		"image":              "seen<p><b hidden></p><img src=a alt=SECRET></b>",
		"entities in styles": "seen<p style='display&colon;n&#111;ne'>SECRET</p>",
	} {
		if p := page(t, html); strings.Contains(p.Text, "SECRET") || !strings.Contains(p.Text, "seen") {
			t.Errorf("%s: %q", name, p.Text)
		}
	}
	if p := page(t, "<style>.a.b{display:none} .x .y{display:none} @media print{p{display:none}}</style><p class=a>one<p "+
		"class=y>two"); p.Text != "one\n\ntwo" {
		t.Errorf("what is not hidden: %q", p.Text)
	}
}

// TestShapes has cases that the pages in testdata lack.
func TestShapes(t *testing.T) {
	prose := strings.Repeat("Herons stand still for a long time. ", 20)
	for _, tt := range []struct{ name, html, want string }{
		{"link around paragraphs", "<a href=/x><p>one</p><p>two</p></a>", "[one](https://heron.test/x)\n\ntwo"},
		{"all in a form", "<form><nav>menu</nav><p>" + prose + "</form>", strings.TrimSpace(prose)},
		{"several articles", "<div><article><p>" + prose + "</article><article><p>" + prose +
			"</article></div>", strings.TrimSpace(prose) + "\n\n" + strings.TrimSpace(prose)},
		{"one article", "<div><p>other</p><article><p>" + prose + "</article></div>", strings.TrimSpace(prose)},
		{"empty marks", "a<b> </b><i></i><a href=/x></a>b", "a b"},
		{"space in marks", "a<b> b </b>c", "a **b** c"},
		{"base", "<base href='https://other.test/y/'><a href=z>z</a>", "[z](https://other.test/y/z)"},
		{"credentials in a link", "<a href='https://u:p@other.test/'>z</a>", "[z](https://other.test/)"},
		{"parentheses in a link", "<a href='/a_(b)'>z</a>", "[z](https://heron.test/a_%28b%29)"},
		{"word ends in a letter of two bytes", "voilà<b>!</b>", "voilà**!**"},
		{"list in list", "<ul><li>a<ol><li>b<li>c</ol><li>d</ul>e", "- a\n  1. b\n  2. c\n- d\n\ne"},
		{"quote in list", "<ul><li><blockquote>a<p>b</blockquote></ul>", "- > a\n  >\n  > b"},
		{"code in list", "<ul><li>a<pre>b\n c</pre></ul>", "- a\n\n  ```\n  b\n   c\n  ```"},
		{"table of one column", "<table><tr><td>a<tr><td>b</table>", "a\n\nb"},
		{"nothing", "", ""},
	} {
		if p := page(t, tt.html); p.Text != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, p.Text, tt.want)
		}
	}
}

func TestKinds(t *testing.T) {
	for _, tt := range []struct{ name, kind, body, want, err string }{
		{"json", "application/json", `{"a":[1,{"b":"c"}]}`, "{\n  \"a\": [\n    1,", ""},
		{"json with a vendor's type", "application/vnd.github+json; charset=utf-8", `{"a":1}`, "{\n  \"a\": 1\n}", ""},
		{"broken json", "application/json", `{"a":`, `{"a":`, ""},
		{"markdown", "text/markdown", "# Hi\r\n\r\n<b>raw</b>", "# Hi\n\n<b>raw</b>", ""},
		{"plain", "text/plain", "a <p> b", "a <p> b", ""},
		{"feed", "application/rss+xml", "<rss><title>x</title></rss>", "<rss><title>x</title></rss>", ""},
		{"sniffed page", "", "<!doctype html><title>t</title><p>hi", "hi", ""},
		{"sniffed text", "application/octet-stream", "just words", "just words", ""},
		{"pdf", "application/pdf", "%PDF-1.7", "", "pdftotext"},
		{"sniffed pdf", "", "%PDF-1.7", "", "http_request"},
		{"image", "image/png", "\x89PNG", "", "read_file"},
		{"drawing", "image/svg+xml", "<svg/>", "", "image"},
		{"archive", "application/zip", "PK\x03\x04", "", "curl -o"},
		{"binary that says text", "text/plain", "a\x00b", "", "binary"},
		{"zero width", "text/plain", "a\u200b\U000e0041b\u202ec", "abc", ""},
	} {
		p, err := web.Read([]byte(tt.body), tt.kind, nil)
		switch {
		case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
			t.Errorf("%s: %v, want %q", tt.name, err, tt.err)
		case tt.err == "" && (err != nil || !strings.HasPrefix(p.Text, tt.want)):
			t.Errorf("%s: %q, %v; want %q", tt.name, p.Text, err, tt.want)
		}
	}
}

func TestCharsets(t *testing.T) {
	for _, tt := range []struct{ name, kind, body, want string }{
		{"utf-8", "text/html; charset=UTF-8", "<p>caf\xc3\xa9", "café"},
		{"latin1", "text/html; charset=ISO-8859-1", "<p>caf\xe9 \x93x\x94", "café “x”"},
		{"latin9", "text/plain; charset=iso-8859-15", "\xa4 \xbd", "€ œ"},
		{"meta", "text/html", `<meta http-equiv="Content-Type" content="text/html; charset=windows-1252"><p>` + "\x80", "€"},
		{"header before meta", "text/html; charset=utf-8", `<meta charset="latin1"><p>` + "é", "é"},
		{"none, utf-8", "text/html", "<p>é", "é"},
		{"none, western", "text/html", "<p>caf\xe9", "café"},
		{"mark before header", "text/plain; charset=latin1", "\xef\xbb\xbfé", "é"},
		{"utf-16", "text/plain", "\xff\xfeh\x00i\x00", "hi"},
		{"utf-16be", "text/html; charset=utf-16be", "\x00<\x00p\x00>\x00h\x00i", "hi"},
		{"cut in a character", "text/plain", strings.Repeat("é", 5<<19-1) + "a\xc3", strings.Repeat("é", 5<<19-1) + "a"},
		{"unknown, but utf-8", "text/plain; charset=klingon", "abc", "abc"},
		{"latin2", "text/plain; charset=ISO-8859-2", "\xb3\xf3d\xbc", "łódź"},
		{"cyrillic", "text/plain; charset=windows-1251", "\xcf\xf0\xe8\xe2\xe5\xf2", "Привет"},
		{"cp866", "text/plain; charset=cp866", "\x8f\xe0\xa8", "При"},
		{"koi8-r", "text/plain; charset=KOI8-R", "\xf0\xd2\xc9", "При"},
		{"greek", "text/plain; charset=iso-8859-7", "\xc1\xe8", "Αθ"},
		{"turkish", "text/plain; charset=windows-1254", "\xfe\xf0", "şğ"},
		{"chinese", "text/plain; charset=gb2312", "\xd6\xd0\xce\xc4", "中文"},
	} {
		p, err := web.Read([]byte(tt.body), tt.kind, nil)
		if err != nil || p.Text != tt.want {
			t.Errorf("%s: %.80q, %v; want %.80q", tt.name, p.Text, err, tt.want)
		}
	}
	if _, err := web.Read([]byte("\x83\x6e\x83"), "text/plain; charset=shift_jis", nil); err == nil ||
		!strings.Contains(err.Error(), "iconv") {
		t.Errorf("an encoding that can't be read: %v", err)
	}
}

// large are pages of about size bytes, or twice that, that are hard to read.
func large(size int) map[string]string {
	times := func(s string) string { return strings.Repeat(s, size/len(s)) }
	var fonts strings.Builder
	for i := range 300 {
		fmt.Fprintf(&fonts, "<font color=%d>", i)
	}
	return map[string]string{
		"divs":         strings.Repeat("<div>", size/10) + "deep" + strings.Repeat("</div>", size/10) + "<p>deep</p>",
		"quotes":       strings.Repeat("<blockquote>", 400) + times("<p>deep</p>"),
		"lists":        strings.Repeat("<ul><li>", 200) + times("<p>deep</p>"),
		"formatting":   fonts.String() + times("<p>deep"),
		"links":        times("<a href=/"+strings.Repeat("x", 900)+">") + times("<p>deep"),
		"headings":     strings.Repeat("<h1><div>", 190) + times("deep "),
		"spans":        "<table>" + times("<tr><td rowspan=9999 colspan=9999>deep"),
		"wide cell":    "<table>" + strings.Repeat("<tr><td>deep<td>y", size/50) + "<tr><td>" + times("w") + "<td>z</table>",
		"tables":       times("<table><tr><td>deep<td>"),
		"attributes":   "<p " + times("hidden a='b' ") + ">x</p><p>deep",
		"ends":         "<x><table><td>" + strings.Repeat("<b>", 300) + "deep" + times("</x>"),
		"classes":      "<style>" + strings.Repeat(".a.b,.a.c,.a.d{display:none}", size/110) + "</style>" + times("<p class='a x y z'>deep"),
		"styles":       times("<p style='color:red;a:b;c:d;e:f'>deep"),
		"entities":     "deep" + times("&nbsp&notit;&#x41"),
		"unclosed tag": "deep<a " + times("x"),
		"comment":      "deep<!--" + times("-"),
		"no spaces":    times("deep"),
		"code":         times("<code>deep</code>"),
		"codes":        strings.Repeat("<code>", 390) + times("deep "),
		"pre":          "<pre>" + times("<div>deep</div>"),
		"svg":          "<p>deep" + times("<svg><g>"),
		"scripts":      "<p>deep" + times("<script>x</script>"),
		"marks":        times("<b><i>") + times("<p>deep"),
		"json":         times("{\"a\":["),
	}
}

// TestLarge checks that no page takes or becomes more than its size is worth, whatever is in it: four times the page
// may take twelve times as long, on a machine where other things happen too.
func TestLarge(t *testing.T) {
	const size = 1 << 20
	small := large(size / 4)
	for name, html := range large(size) {
		start := time.Now()
		page(t, small[name])
		quarter := time.Since(start)
		start = time.Now()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		p := page(t, html)
		runtime.ReadMemStats(&after)
		took, used := time.Since(start), after.TotalAlloc-before.TotalAlloc
		for range 4 { // the machine may have done something else meanwhile
			if took <= 12*quarter+time.Second {
				break
			}
			start = time.Now()
			page(t, html)
			took = min(took, time.Since(start))
		}
		t.Logf("%-12s %7d bytes -> %7d, %v, %d MiB", name, len(html), len(p.Text), took.Round(time.Millisecond), used>>20)
		if took > 12*quarter+time.Second || used > 512<<20 || len(p.Text) > 3<<20 {
			t.Errorf("%s: took %v, a quarter of it %v, and %d MiB for %d bytes of text", name, took, quarter, used>>20, len(p.Text))
		}
		if name != "json" && !p.Cut && !strings.Contains(p.Text, "deep") {
			t.Errorf("%s: the text is lost: %.80q", name, p.Text)
		}
	}
	for _, depth := range []int{60, 5000} {
		nested := strings.Repeat("[", depth) + strings.Repeat("1,", 1<<20) + "1" + strings.Repeat("]", depth)
		if p, err := web.Read([]byte(nested), "application/json", nil); err != nil || len(p.Text) > 2*len(nested) {
			t.Errorf("JSON nested %d deep becomes %d bytes, %v", depth, len(p.Text), err)
		}
	}
}

func megabyte() string {
	var b strings.Builder
	b.WriteString("<!doctype html><title>Long</title><main>")
	for i := 0; b.Len() < 1<<20; i++ {
		fmt.Fprintf(&b, "<h2 id=s%d>Part %d</h2><p class='text wide'>Some <b>bold</b> text with a <a href='/p/%d'>link</a>, then "+
			"<code>code()</code> &amp; more of it.</p><ul><li>one<li>two</ul>\n", i, i, i)
	}
	return b.String()
}

func BenchmarkPage(b *testing.B) {
	for _, parts := range []int{1, 4} {
		src := strings.Repeat(megabyte(), parts)
		b.Run(fmt.Sprintf("%dMB", parts), func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			b.ReportAllocs()
			for b.Loop() {
				page(b, src)
			}
		})
	}
}

// FuzzHTML checks that any bytes become valid text of bounded size, that hidden text stays away, and that a page reads
// the same twice.
func FuzzHTML(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.html")
	for _, file := range files {
		if raw, err := os.ReadFile(file); err == nil {
			f.Add(string(raw))
		}
	}
	f.Add("<table><tr><td rowspan=2 colspan=3>a<td>b</table><ol start=-1><li><p>x<pre>y</ol>")
	f.Fuzz(func(t *testing.T, html string) {
		p, err := web.Read([]byte(html), "text/html; charset=utf-8", base(t))
		if err != nil {
			return // binary
		}
		if !utf8.ValidString(p.Text + p.Title + p.Byline + p.Date) {
			t.Fatalf("not valid UTF-8: %q", p.Text)
		}
		if len(p.Text) > 300*len(html)+1000 {
			t.Fatalf("%d bytes became %d", len(html), len(p.Text))
		}
		again, err := web.Read([]byte(html), "text/html; charset=utf-8", base(t))
		if err != nil || again != p {
			t.Fatalf("read twice: %v, %+v, %+v", err, p, again)
		}
		closed := strings.NewReplacer("<", "(", "&", "+", "\x00", "").Replace(html)
		hid, err := web.Read([]byte("<div hidden>"+closed+"</div><p>seen</p>"), "text/html; charset=utf-8", base(t))
		if err == nil && hid.Text != "seen" {
			t.Fatalf("hidden text came through: %q", hid.Text)
		}
	})
}

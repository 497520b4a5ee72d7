package markdown_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/inspan/inspan/internal/view/markdown"
)

func TestHTML(t *testing.T) {
	for text, want := range map[string]string{
		"":                           "",
		"a *b* **c** ~~d~~ `e<f>` g": "<p>a <em>b</em> <strong>c</strong> <del>d</del> <code>e&lt;f&gt;</code> g</p>\n",
		"# a\n\n### b":               "<h1>a</h1>\n<h3>b</h3>\n",
		"a  \nb\nc":                  "<p>a<br>\nb\nc</p>\n",
		"> a\n\n---":                 "<blockquote><p>a</p>\n</blockquote>\n<hr>\n",
		"- a\n- b\n\n7. c":           "<ul><li>a\n</li>\n<li>b\n</li>\n</ul>\n<ol start=\"7\"><li>c\n</li>\n</ol>\n",
		"1. a\n\n   b":               "<ol><li><p>a</p>\n<p>b</p>\n</li>\n</ol>\n",
		"- [x] a\n- [ ] b":           "<ul><li>☑ a\n</li>\n<li>☐ b\n</li>\n</ul>\n",
		"```go\nif a < b {}\n```":    "<pre><code><span class=\"t-keyword\">if</span> a &lt; b {}\n</code></pre>\n",
		"    a & b":                  "<pre><code>a &amp; b\n</code></pre>\n",
		"a|b\n:-|-:\n*1*|2\n3|4|5\n6": "<table><tr><th>a</th><th style=\"text-align:right\">b</th></tr><tr><td><em>1</em></td><td " +
			"style=\"text-align:right\">2</td></tr><tr><td>3</td><td style=\"text-align:right\">4</td></tr><tr><td>6</td><td " +
			"style=\"text-align:right\"></td></tr></table>\n",
		"&lt;b&gt; &amp; \\*":        "<p>&lt;b&gt; &amp; *</p>\n",
		"a|\n-|\n`b\\|c`\n\n`d\\|e`": "<table><tr><th>a</th></tr><tr><td><code>b|c</code></td></tr></table>\n<p><code>d\\|e</code></p>\n",
		// links
		"[a](http://b.c/?d&e 'f')": `<p><a href="http://b.c/?d&amp;e" rel="noopener noreferrer">a</a></p>` + "\n",
		"[a](HTTPS://b)":           `<p><a href="HTTPS://b" rel="noopener noreferrer">a</a></p>` + "\n",
		"<me@b.c> https://b.c": `<p><a href="mailto:me@b.c" rel="noopener noreferrer">me@b.c</a> <a href="https://b.c" rel="noopener ` +
			`noreferrer">https://b.c</a></p>` + "\n",
		"[a][r]\n\n[r]: https://b":    `<p><a href="https://b" rel="noopener noreferrer">a</a></p>` + "\n",
		`[a](http://b"onclick="c)`:    `<p><a href="http://b&#34;onclick=&#34;c" rel="noopener noreferrer">a</a></p>` + "\n",
		"[a](javascript:b)":           "<p>a</p>\n",
		"[a](JaVaScRiPt&colon;b)":     "<p>a</p>\n",
		"[a](data:text/html,b)":       "<p>a</p>\n",
		"[a](//b) [c](/d) [e](#f)":    "<p>a c e</p>\n",
		"[a](file:///b) [c](http://)": "<p>a c</p>\n",
		"<javascript:alert(1)>":       "<p>javascript:alert(1)</p>\n",
		// images
		"![a b](data:image/png;base64,AAAA)":        `<p><img src="data:image/png;base64,AAAA" alt="a b"></p>` + "\n",
		"x ![a *b*](data:image/gif;base64,AAA=) y":  `<p>x <img src="data:image/gif;base64,AAA=" alt="a b"> y</p>` + "\n",
		`![a"><b](data:image/jpeg;base64,AAAA "t")`: `<p><img src="data:image/jpeg;base64,AAAA" alt="a&#34;&gt;&lt;b"></p>` + "\n",
		"![a](data:image/svg+xml;base64,AAAA)":      "<p>[image: a]</p>\n",
		"![a](data:image/png,AAAA)":                 "<p>[image: a]</p>\n",
		"![a](http://b/c.png) ![](d)":               "<p>[image: a] [image]</p>\n",
		`![a](data:image/png;base64,AA"onload=b)`:   "<p>[image: a]</p>\n",
		"x ![a](data:image/png;base64,AA&quot;b)":   "<p>x [image: a]</p>\n",
		"![a](data:image/png;base64,AAAA":           "<p>[image: a]</p>\n",
		// HTML is text
		"a <b>c</b><br/>d":              "<p>a &lt;b&gt;c&lt;/b&gt;<br>d</p>\n",
		"<script>\nalert(1)\n</script>": "<pre>&lt;script&gt;\nalert(1)\n&lt;/script&gt;</pre>\n",
		"<!-- a -->":                    "<pre>&lt;!-- a --&gt;</pre>\n",
		"a\x00\x1b[2J\u202eb &#27;&#0;": "<p>a\\x00\\x1b[2J\\u202eb \\x1b\ufffd</p>\n",
	} {
		if got := markdown.HTML(text, nil); got != want {
			t.Errorf("%q gives\n%s\nwant\n%s", text, got, want)
		}
		inert(t, markdown.HTML(text, nil))
	}
}

// inert checks that a page does nothing: it has only known tags and attributes, all closed, and only allowed addresses.
func inert(t *testing.T, page string) {
	t.Helper()
	link, data := regexp.MustCompile(`(?i)^(https?://|mailto:).`), regexp.MustCompile(`^data:image/(png|jpeg|gif);base64,[A-Za-z0-9+/=]+$`)
	tags := strings.Fields("h1 h2 h3 h4 h5 h6 p pre code hr blockquote ul ol li table tr th td em strong del a img br span")
	role := regexp.MustCompile(`^t-[a-z-]+$`)
	var open []string
	z := html.NewTokenizer(strings.NewReader(page))
	for {
		kind := z.Next()
		token := z.Token()
		switch kind {
		case html.ErrorToken:
			if len(open) > 0 {
				t.Errorf("%v is left open in %.500q", open, page)
			}
			return
		case html.StartTagToken:
			if !slices.Contains(tags, token.Data) {
				t.Errorf("a tag %q in %.500q", token.Data, page)
			}
			for _, a := range token.Attr {
				known := a.Key == "rel" || a.Key == "alt" || a.Key == "start" || a.Key == "style" && strings.HasPrefix(a.Val, "text-align:") ||
					a.Key == "href" && link.MatchString(a.Val) || a.Key == "src" && data.MatchString(a.Val) ||
					a.Key == "class" && token.Data == "span" && role.MatchString(a.Val)
				if !known {
					t.Errorf("an attribute %s=%q in %.500q", a.Key, a.Val, page)
				}
			}
			if !slices.Contains([]string{"br", "hr", "img"}, token.Data) {
				open = append(open, token.Data)
			}
		case html.EndTagToken:
			if len(open) == 0 || open[len(open)-1] != token.Data {
				t.Errorf("%q is closed among %v in %.500q", token.Data, open, page)
				return
			}
			open = open[:len(open)-1]
		case html.CommentToken, html.DoctypeToken, html.SelfClosingTagToken:
			t.Errorf("%v in %.500q", token, page)
		}
	}
}

func FuzzHTML(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, text string, _ byte) { inert(t, markdown.HTML(text, nil)) })
}

func TestHTMLOfAll(t *testing.T) {
	raw, err := os.ReadFile("testdata/all.md")
	if err != nil {
		t.Fatal(err)
	}
	page := markdown.HTML(string(raw), nil)
	inert(t, page)
	golden(t, "testdata/all-page.golden", page)
}

// Whatever is nested, long or many, comes to an end soon.
func TestHTMLBounds(t *testing.T) {
	rep := func(s string) string { return strings.Repeat(s, 100_000/len(s)) }
	for _, text := range []string{
		rep(">"), rep("- "), rep("[a]("), rep("[a") + rep("]"), rep("*a ") + rep("a* "),
		rep("![a](data:image/png;base64,AAAA)"), "![a](data:image/png;base64," + rep("A") + ")", "x ![a](data:image/png;base64," + rep("A") +
			")", rep("<b>"), rep("|a") + "\n" + rep("|-"),
	} {
		inert(t, markdown.HTML(text, nil))
	}
	if n := strings.Count(markdown.HTML(rep(">"), nil), "<blockquote>"); n < 10 || n > 50 {
		t.Errorf("quotes %d deep", n)
	}
	long := markdown.HTML("![a](data:image/png;base64,"+rep("A")+")", nil)
	if !strings.Contains(long, rep("A")) {
		t.Errorf("a long picture is lost: %.100s", long)
	}
	if beside := markdown.HTML("x ![a](data:image/png;base64,"+rep("A")+")", nil); strings.Contains(beside, "AAAA") ||
		!strings.Contains(beside, "(data:…)") {
		t.Errorf("%.200s", beside)
	}
}

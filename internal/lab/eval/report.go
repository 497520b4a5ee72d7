package eval

import (
	"cmp"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"math"
	"net/url"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
)

// Formats returns the formats of a report.
func Formats() []string { return []string{"md", "html", "json"} }

// Report writes comparisons in one of the [Formats]. Pages is the address of a web page of sessions, for links to
// events; empty means no links.
func Report(out io.Writer, format string, cs []Comparison, pages string) error {
	switch format {
	case "json":
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		return enc.Encode(cs)
	case "html":
		_, err := io.WriteString(out, page(cs, pages))
		return err
	case "md":
		_, err := io.WriteString(out, markdown(cs, pages))
		return err
	}
	return fmt.Errorf("there is no format %q; use %s", format, strings.Join(Formats(), ", "))
}

// Blind returns the part of a comparison that may be shown to a searcher for improvements: for held-out tasks
// only the verdict, so that nothing is fitted to them. Others stay as they are.
func (c Comparison) Blind() Comparison {
	if !c.HeldOut {
		return c
	}
	side := func(s Side) Side {
		return Side{Run: s.Run, Config: s.Config, Pinned: s.Pinned, Model: s.Model, Version: s.Version}
	}
	unknown := unknownFigure()
	out := Comparison{
		Suite: c.Suite, HeldOut: true, Base: side(c.Base), Candidate: side(c.Candidate), Tasks: c.Tasks, Test: c.Test, Alpha: c.Alpha,
		Verdict: c.Verdict, Power: c.Power, Gain: unknown, Seen: unknown, Tokens: Price{unknown, unknown, unknown},
	}
	out.Base.Passed, out.Candidate.Passed = unknown, unknown
	out.Says.known("On held-out tasks: %s.", c.Verdict.of(c.Candidate.Config, c.Base.Config))
	out.Says.unknown("All else. Results of held-out tasks are only shown as a verdict, so that no improvement is made to fit them.")
	return out
}

// of returns a verdict on a candidate and a base in words.
func (v Verdict) of(candidate, base string) string {
	switch v {
	case Better:
		return candidate + " is better than " + base
	case Worse:
		return candidate + " is worse than " + base
	case Unfinished:
		return "the runs have not ended"
	}
	return "the difference between " + candidate + " and " + base + " may be chance"
}

// line is a row of the table of figures.
type line struct{ name, base, candidate, change string }

// lines returns the figures of a comparison, each with its interval.
func (c *Comparison) lines() []line {
	if c.HeldOut && math.IsNaN(c.Gain.Value) {
		return nil
	}
	share := func(f Figure) string { return figure(f, percent) }
	out := []line{{"passes", share(c.Base.Passed), share(c.Candidate.Passed), figure(c.Gain, points)}}
	for _, t := range c.Tries {
		if t.K > 1 {
			out = append(out, line{fmt.Sprintf("pass@%d", t.K), share(t.BaseAny), share(t.Any), ""},
				line{fmt.Sprintf("pass^%d", t.K), share(t.BaseEvery), share(t.Every), ""})
		}
	}
	price := func(name string, p Price, show func(float64) string) {
		times := figure(p.Times, func(x float64) string { return fmt.Sprintf("%.2f ×", x) })
		out = append(out, line{name, figure(p.Base, show), figure(p.Candidate, show), times})
	}
	if c.Cost != nil {
		price("dollars per success", *c.Cost, func(x float64) string { return fmt.Sprintf("%.4g", x) })
	}
	price("tokens per success", c.Tokens, func(x float64) string { return text.Thousands(int(math.Round(x))) })
	return append(out, line{"trials that count", text.Thousands(c.Base.Trials), text.Thousands(c.Candidate.Trials), ""},
		line{"trials set aside", text.Thousands(c.Base.Broken), text.Thousands(c.Candidate.Broken), ""})
}

func figure(f Figure, show func(float64) string) string {
	if !usable(f.Value) {
		return "not known"
	}
	return fmt.Sprintf("%s (%s)", show(f.Value), between(f, show))
}

func markdown(cs []Comparison, pages string) string {
	var b strings.Builder
	cell := func(s string) string { return literal(text.Line(s)) }
	for i := range cs {
		c := &cs[i]
		fmt.Fprintf(&b, "# %s\n\n%s, %s.\n", cell(c.title()), cell(c.Suite), text.Count(c.Tasks, "task"))
		list := func(title string, items []string) {
			if len(items) > 0 {
				fmt.Fprintf(&b, "\n## %s\n\n", title)
			}
			for _, item := range items {
				fmt.Fprintf(&b, "- %s\n", cell(item))
			}
		}
		list("Known", c.Says.Known)
		list("Not known", c.Says.Unknown)
		if lines := c.lines(); len(lines) > 0 {
			fmt.Fprintf(&b, "\n## Figures\n\n| | %s | %s | change |\n|---|---|---|---|\n", cell(c.Base.Config), cell(c.Candidate.Config))
			for _, l := range lines {
				fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", l.name, l.base, l.candidate, l.change)
			}
		}
		if len(c.Flips) > 0 {
			b.WriteString("\n## Tasks that differ\n\n| task | base | candidate | where the sessions part |\n|---|---|---|---|\n")
		}
		for _, f := range c.Flips {
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", cell(f.Task), cell(f.Base.text()), cell(f.Candidate.text()), f.where(cell, pages))
		}
		b.WriteString("\n")
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// literal escapes a line so that Markdown has no marks in it: names come from others.
func literal(line string) string {
	var b strings.Builder
	for _, r := range line {
		if strings.ContainsRune("\\`*_[]<>|#&~!", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

func (c *Comparison) title() string {
	return c.Candidate.Config + " against " + c.Base.Config + ": " + string(c.Verdict)
}

func (t Tally) text() string {
	if t.Reason == "" {
		return fmt.Sprintf("%d of %d", t.Passed, t.Tries)
	}
	return fmt.Sprintf("%d of %d: %s", t.Passed, t.Tries, t.Reason)
}

// where says where the sessions of a flip part.
func (f Flip) where(cell func(string) string, pages string) string {
	if f.Parting == nil {
		return cell(f.Why)
	}
	event := func(session string, d Deed) string {
		name := cell(fmt.Sprintf("%s:%d", session, d.Seq))
		if pages != "" {
			name = fmt.Sprintf("[%s](%s)", name, address(pages, session, d.Seq))
		}
		return name + " " + cell(d.Text)
	}
	return event(f.Base.Session, f.Parting.Base) + "; " + event(f.Candidate.Session, f.Parting.Candidate)
}

// address returns the link to an event on a web page.
func address(pages, session string, seq uint64) string {
	return fmt.Sprintf("%s/s/%s#%d", strings.TrimRight(pages, "/"), url.PathEscape(session), seq)
}

// style is that of the page, which loads nothing.
const style = `body{font:16px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem;color:#1d2329;background:#fff}
h1{font-size:1.5rem;margin:0}h2{font-size:1.1rem;margin:1.6rem 0 .4rem}section{margin-bottom:3.5rem}
.sub{color:#5a6570;margin:.2rem 0 1rem}.verdict{display:inline-block;padding:.1rem .6rem;border-radius:1rem;font-weight:600}
.better{background:#d9f2e1;color:#0f5c2e}.worse{background:#fbdedb;color:#8a1f14}.unknown{background:#e8ebee;color:#3f4952}
table{border-collapse:collapse;width:100%;font-size:.93rem}th,td{text-align:left;padding:.35rem .8rem .35rem 0}
th,td{border-bottom:1px solid #dde2e6;vertical-align:top}
td{font-variant-numeric:tabular-nums}code{font:.85rem ui-monospace,monospace;overflow-wrap:anywhere}li{margin:.25rem 0}
.known li::marker{color:#0f7a3a;content:"✓  "}.not li::marker{color:#8a6d00;content:"?  "}svg{width:100%;height:auto;display:block}
a{color:inherit}
@media(prefers-color-scheme:dark){body{background:#14181c;color:#dfe4e8}.sub{color:#97a3ad}th,td{border-color:#2c343b}
.better{background:#123d22;color:#9fe3b5}.worse{background:#4b1712;color:#f6b5ad}.unknown{background:#2a3138;color:#c4ccd3}}`

// page returns a report as one page of HTML. It does not use html/template, which would keep every exported
// method in the binary.
func page(cs []Comparison, pages string) string {
	var b strings.Builder
	b.WriteString("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">" +
		"<title>Comparison</title>\n<style>" + style + "</style></head><body>\n")
	for i := range cs {
		cs[i].section(&b, pages)
	}
	b.WriteString("</body></html>\n")
	return b.String()
}

func (c *Comparison) section(b *strings.Builder, pages string) {
	esc := func(s string) string { return html.EscapeString(text.Line(s)) }
	fmt.Fprintf(b, "<section><h1>%s against %s <span class=\"verdict %s\">%s</span></h1>\n<p class=\"sub\">%s, %s. "+
		"Runs <code>%s</code> and <code>%s</code>; %s, %s.</p>\n",
		esc(c.Candidate.Config), esc(c.Base.Config), esc(string(c.Verdict)), esc(string(c.Verdict)), esc(c.Suite), text.Count(c.Tasks, "task"),
		esc(c.Candidate.Run), esc(c.Base.Run), esc(c.Candidate.Model), esc(c.Test))
	c.picture(b)
	list := func(title, class string, items []string) {
		if len(items) == 0 {
			return
		}
		fmt.Fprintf(b, "<h2>%s</h2>\n<ul class=\"%s\">\n", title, class)
		for _, item := range items {
			fmt.Fprintf(b, "<li>%s</li>\n", esc(item))
		}
		b.WriteString("</ul>\n")
	}
	list("Known", "known", c.Says.Known)
	list("Not known", "not", c.Says.Unknown)
	if lines := c.lines(); len(lines) > 0 {
		fmt.Fprintf(b, "<h2>Figures</h2>\n<table><tr><th></th><th>%s</th><th>%s</th><th>change</th></tr>\n",
			esc(c.Base.Config), esc(c.Candidate.Config))
		for _, l := range lines {
			fmt.Fprintf(b, "<tr><th>%s</th><td>%s</td><td>%s</td><td>%s</td></tr>\n", esc(l.name), esc(l.base), esc(l.candidate), esc(l.change))
		}
		b.WriteString("</table>\n")
	}
	c.htmlFlips(b, esc, pages)
	b.WriteString("</section>\n")
}

// picture draws the gain with its interval, and 0.
func (c *Comparison) picture(b *strings.Builder) {
	if !usable(c.Gain.Value) || !usable(c.Gain.Low) || !usable(c.Gain.High) {
		return
	}
	far := max(0.05, math.Abs(c.Gain.Low), math.Abs(c.Gain.High), c.Smallest) * 1.15
	hidden := cmp.Or(c.Smallest, far) // nothing is found: the band is all of it
	x := func(v float64) float64 { return 400 + 380*v/far }
	fmt.Fprintf(b, "<svg viewBox=\"0 0 800 64\" role=\"img\" aria-label=\"%s\" fill=\"none\" stroke=\"currentColor\">"+
		"<rect x=\"%.1f\" y=\"12\" width=\"%.1f\" height=\"24\" fill=\"currentColor\" opacity=\".08\" stroke=\"none\"/>"+
		"<path d=\"M400 6V42\" stroke-dasharray=\"3 3\"/><path d=\"M%.1f 24H%.1f\" stroke-width=\"3\"/>"+
		"<circle cx=\"%.1f\" cy=\"24\" r=\"6\" fill=\"currentColor\"/>"+
		"<g fill=\"currentColor\" stroke=\"none\" font-size=\"13\" text-anchor=\"middle\"><text x=\"400\" y=\"58\">no difference</text>"+
		"<text x=\"%.1f\" y=\"58\" text-anchor=\"start\">worse</text><text x=\"%.1f\" y=\"58\" text-anchor=\"end\">better</text></g></svg>\n"+
		"<p class=\"sub\">The dot is what was seen, the line its interval. "+
		"A true difference inside of the grey band is found less often than promised.</p>\n",
		html.EscapeString(figure(c.Gain, points)), x(-hidden), x(hidden)-x(-hidden), x(c.Gain.Low), x(c.Gain.High), x(c.Gain.Value),
		x(-far)+4, x(far)-4)
}

func (c *Comparison) htmlFlips(b *strings.Builder, esc func(string) string, pages string) {
	if len(c.Flips) == 0 {
		return
	}
	b.WriteString("<h2>Tasks that differ</h2>\n<table><tr><th>task</th><th>base</th><th>candidate</th>" +
		"<th>the first event where the sessions part</th></tr>\n")
	for _, f := range c.Flips {
		where := esc(f.Why)
		if f.Parting != nil {
			deed := func(session string, d Deed) string {
				event := fmt.Sprintf("event %d", d.Seq)
				if pages != "" {
					event = fmt.Sprintf("<a href=\"%s\">%s</a>", esc(address(pages, session, d.Seq)), event)
				}
				return fmt.Sprintf("<code>%s</code> %s: <code>%s %s</code>", esc(session), event, esc(d.Kind), esc(d.Text))
			}
			where = deed(f.Base.Session, f.Parting.Base) + "<br>" + deed(f.Candidate.Session, f.Parting.Candidate) +
				fmt.Sprintf("<br><code>inspan eval diff %s %s</code>", esc(f.Base.Session), esc(f.Candidate.Session))
		}
		fmt.Fprintf(b, "<tr><td>%s</td><td>%s</td><td>%s</td><td>%s</td></tr>\n", esc(f.Task), esc(f.Base.text()),
			esc(f.Candidate.text()), where)
	}
	b.WriteString("</table>\n")
}

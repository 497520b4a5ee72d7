package tools

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain\n":                            "plain\n",
		"a\r\nb\r\n":                         "a\nb\n",
		"10%\r50%\r100%\n":                   "100%\n",
		"10%\r50%":                           "50%",
		"100%\r\x1b[K\ndone":                 "100%\ndone",
		"a\r\r\nb":                           "a\nb",
		"\x1b[31mred\x1b[0m \x1b[1;38;5;9mx": "red x",
		"\x1b]0;title\atext\x1b]8;;u\x1b\\l": "textl",
		"\x1bP1;2q...\x1b\\a\x1b_x\x1b\\b\x1b(Bc": "abc",
		"\x1b]never ended\nnext":                  "\nnext",
		"\u009b31mred\u009dt\ax":                  "redx",
		"ab\bc":                                   "ac",
		"é\b\b\bx":                                "x",
		"bell\a nul\x00 esc\x1b":                  "bell nul^@ esc",
		"del\x7f":                                 "del^?",
		"bad\xff\xc3":                             "bad\ufffd\ufffd",
		"世界 é\t|":                                 "世界 é\t|",
		"_\x08u_\x08n":                            "un",
	} {
		if got := clean([]byte(in)); got != want {
			t.Errorf("clean(%q) = %q, want %q", in, got, want)
		}
	}
}

// TestCleanBytes checks that each byte is handled the same at every position of a line, whether the line comes at once
// or not.
func TestCleanBytes(t *testing.T) {
	for b := range 256 {
		for at := range 16 {
			in := []byte("0123456789abcdef\n")
			in[at] = byte(b)
			var c cleaner
			var out []byte
			for i := range in {
				out = c.feed(out, in[i:i+1])
			}
			out = c.flush(out)
			if whole := clean(in); whole != string(out) {
				t.Errorf("%q: whole %q, in bytes %q", in, whole, out)
			}
		}
	}
}

// TestCleanPieces checks that it does not matter how output is cut up, and
// that nothing a terminal would act on is left.
func TestCleanPieces(t *testing.T) {
	piece := rapid.SampledFrom([]string{
		"a", "bc", "\n", "\r", "\r\n", "\b", "\x1b", "\x1b[",
		"31m", "\x1b]0;", "\a", "\x1b\\", "é", "\xc3", "\xff", "\u009b", "世", "\x00", "K", "a line of words\n", "~\t\x7f",
	})
	rapid.Check(t, func(t *rapid.T) {
		in := []byte(strings.Join(rapid.SliceOf(piece).Draw(t, "pieces"), ""))
		var c cleaner
		var out []byte
		for rest := in; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			out = c.feed(out, rest[:n])
			rest = rest[n:]
		}
		out = c.flush(out)
		if whole := clean(in); whole != string(out) {
			t.Fatalf("%q: whole %q, in pieces %q", in, whole, out)
		}
		if bad := bytes.IndexFunc(out, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 }); bad >= 0 ||
			!utf8.Valid(out) {
			t.Fatalf("%q became %q", in, out)
		}
	})
}

func TestCapture(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := &capture{}
		var all []byte
		for i, n := range rapid.SliceOfN(rapid.IntRange(0, 100_000), 1, 8).Draw(t, "sizes") {
			p := bytes.Repeat(fmt.Appendf(nil, "%d,", i), n/2+1)
			all = append(all, p...)
			_, _ = o.Write(p)
		}
		from := rapid.IntRange(0, len(all)).Draw(t, "from")
		head, tail, dropped, end := o.since(int64(from))
		got := append(append(bytes.Clone(head), make([]byte, dropped)...), tail...)
		if end != int64(len(all)) || len(got) != len(all)-from {
			t.Fatalf("%d+%d+%d bytes since %d of %d", len(head), dropped, len(tail), from, len(all))
		}
		if !bytes.HasPrefix(all[from:], head) || !bytes.HasSuffix(all, tail) {
			t.Fatal("head or tail is wrong")
		}
		if want := len(all) - keptHead - keptTail; from == 0 && dropped != int64(max(want, 0)) {
			t.Fatalf("dropped %d, want %d", dropped, want)
		}
	})
}

// modelEdit is the slow and simple way to edit: a text is a list of cells, one
// for each letter as a search sees it.
func modelEdit(raw string, e edit) (string, int) {
	var cells []string
	for i := 0; i < len(raw); i++ {
		if strings.HasPrefix(raw[i:], "\r\n") {
			cells = append(cells, "\r\n")
			i++
			continue
		}
		cells = append(cells, raw[i:i+1])
	}
	want := unix(e.Old)
	matches := func(i int) bool {
		if i+len(want) > len(cells) {
			return false
		}
		for k := range len(want) {
			if c := cells[i+k]; c != want[k:k+1] && (c != "\r\n" || want[k] != '\n') {
				return false
			}
		}
		return true
	}
	with := unix(e.New)
	if strings.Count(raw, "\r\n")*2 > strings.Count(raw, "\n") {
		with = strings.ReplaceAll(with, "\n", "\r\n")
	}
	var out strings.Builder
	n := 0
	for i := 0; i < len(cells); {
		if !matches(i) {
			out.WriteString(cells[i])
			i++
			continue
		}
		n++
		if e.All {
			out.WriteString(with)
			i += len(want)
			continue
		}
		out.WriteString(with + strings.Join(cells[i+len(want):], ""))
		for k := i + 1; k < len(cells); k++ {
			if matches(k) {
				n++
			}
		}
		break
	}
	return out.String(), n
}

// checkEdit holds applyEdit against the model.
func checkEdit(t interface{ Fatalf(string, ...any) }, raw string, e edit) {
	got, n, err := applyEdit(raw, e)
	if unix(e.Old) == "" || unix(e.Old) == unix(e.New) {
		if err == nil {
			t.Fatalf("%+v was applied", e)
		}
		return
	}
	want, m := modelEdit(raw, e)
	if fine := m == 1 || m > 1 && e.All; fine != (err == nil) {
		t.Fatalf("%q with %+v: %v, the model has %d matches", raw, e, err, m)
	}
	if err == nil && (got != want || n != m) {
		t.Fatalf("%q with %+v:\ngot  %q, %d\nwant %q, %d", raw, e, got, n, want, m)
	}
}

func TestEditModel(t *testing.T) {
	letters := rapid.StringOf(rapid.SampledFrom([]rune("aab\n\r")))
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SliceOf(rapid.SampledFrom([]string{"a", "b", "ab", "\n", "\r\n", "\r"}))
		raw := strings.Join(text.Draw(t, "raw"), "")
		checkEdit(t, raw, edit{Old: letters.Draw(t, "old"), New: letters.Draw(t, "new"), All: rapid.Bool().Draw(t, "all")})
	})
}

func FuzzEdit(f *testing.F) {
	f.Add("a\r\nb\nc", "b\nc", "x\n", false)
	f.Add("aaa", "aa", "b", true)
	f.Fuzz(func(t *testing.T, raw, old, with string, all bool) {
		checkEdit(t, raw, edit{Old: old, New: with, All: all})
	})
}

// FuzzDecode checks that a file that counts as text is written back as it was.
func FuzzDecode(f *testing.F) {
	f.Add([]byte("a\xef\xbb\xbf"))
	f.Add([]byte("\xff\xfea\x00\x00\xd8"))
	f.Add([]byte("caf\xe9"))
	f.Fuzz(func(t *testing.T, data []byte) {
		text, enc, ok := decode(data)
		if !ok {
			return
		}
		back, err := enc.encode(text)
		if err != nil || !bytes.Equal(back, data) {
			t.Errorf("%q as %v became %q, %v", data, enc, back, err)
		}
	})
}

func TestRequiredLiteral(t *testing.T) {
	for expr, want := range map[string]string{
		"needle": "needle", "a(bcd)+e": "bcd", "a|b": "", "(?i)abc": "", "x*": "", "(foo){2,}bar?": "foo", "": "",
		"func .*Name": "func ", "[a-z]+": "", "ab?c": "a", "a\xff": "",
	} {
		if got := string(requiredLiteral(expr)); got != want {
			t.Errorf("%q needs %q, want %q", expr, got, want)
		}
	}
}

// TestScanLongModel checks that searching a file block by block finds the same as searching the whole.
func TestScanLongModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "ab", "\n", "aab\n", "\n\n"}), 0, 60).Draw(t, "data"), "")
		for line := range strings.SplitSeq(data, "\n") {
			if len(line) > 6 {
				t.Skip("it is searched in pieces")
			}
		}
		s := scanner{re: regexp.MustCompile("ab"), context: rapid.IntRange(0, 2).Draw(t, "context")}
		if rapid.Bool().Draw(t, "literal") {
			s.literal = []byte("ab")
		}
		most := rapid.IntRange(1, 12).Draw(t, "most")
		want, more := s.scan([]byte(data), lineRange{to: len(data), line: 1}, most)
		got := s.scanLong(iotest.OneByteReader(strings.NewReader(data)), rapid.IntRange(60, 100).Draw(t, "block"), most)
		if d := cmp.Diff(want, got.hits, cmp.AllowUnexported(hit{})); d != "" || got.more != more || got.failed || got.binary {
			t.Errorf("more %v, want %v\n%s", got.more, more, d)
		}
	})
}

// TestScanLongLines checks that a line longer than a block is searched too.
func TestScanLongLines(t *testing.T) {
	s := scanner{re: regexp.MustCompile("needle$"), context: 1}
	data := "one\n" + strings.Repeat("x", 300) + " needle\nthree\nneedle\n"
	var lines []int
	for _, h := range s.scanLong(strings.NewReader(data), 64, 10).hits {
		lines = append(lines, h.line)
	}
	if !slices.Equal(lines, []int{2, 4}) {
		t.Error(lines)
	}
}

// TestScanModel checks the scanner, with its shortcuts, against matching every line.
func TestScanModel(t *testing.T) {
	exprs := rapid.SampledFrom([]string{"ab", "a", "^a", "b$", "a.b", "(ab)+", "a|b", "^$", "b*a", "(?i)AB"})
	rapid.Check(t, func(t *rapid.T) {
		expr := exprs.Draw(t, "expr")
		data := strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{"a", "b", "ab", "\n", "\r\n"})).Draw(t, "data"), "")
		s := scanner{re: regexp.MustCompile(expr), literal: requiredLiteral(expr), context: 1}
		hits, _ := s.scan([]byte(data), lineRange{to: len(data), line: 1}, 1000)
		all := strings.Split(strings.TrimSuffix(data, "\n"), "\n")
		if data == "" {
			all = nil
		}
		n := 0
		for i, line := range all {
			if !s.re.MatchString(strings.TrimSuffix(line, "\r")) {
				continue
			}
			if n >= len(hits) || hits[n].line != i+1 || hits[n].text != strings.TrimSuffix(line, "\r") {
				t.Fatalf("%q in %q: hit %d of %+v, want line %d", expr, data, n, hits, i+1)
			}
			if i > 0 && (len(hits[n].before) != 1 || hits[n].before[0] != strings.TrimSuffix(all[i-1], "\r")) {
				t.Fatalf("%q in %q: before line %d is %q", expr, data, i+1, hits[n].before)
			}
			if i+1 < len(all) && (len(hits[n].after) != 1 || hits[n].after[0] != strings.TrimSuffix(all[i+1], "\r")) {
				t.Fatalf("%q in %q: after line %d is %q", expr, data, i+1, hits[n].after)
			}
			n++
		}
		if n != len(hits) {
			t.Fatalf("%q in %q: %d hits, want %d", expr, data, len(hits), n)
		}
	})
}

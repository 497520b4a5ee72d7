package skill_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/extend/skill"
)

func TestSplitMatter(t *testing.T) {
	for _, tc := range []struct{ data, matter, text, err string }{
		{"---\na: b\n---\ntext\n", "a: b\n", "text\n", ""},
		{"\ufeff---\r\na: b\r\nc: d\r\n---\r\ntext\r\nmore", "a: b\nc: d\n", "text\nmore", ""},
		{"--- \na: b\n---\t\ntext", "a: b\n", "text", ""},
		{"---\n---\ntext", "", "text", ""},
		{"---\n---", "", "", ""},
		{"---\na: b\n---", "a: b\n", "", ""},
		{"---\na: b\n ---\n----\n--- x\n---\nx\n---\ny", "a: b\n ---\n----\n--- x\n", "x\n---\ny", ""},
		{"text\n---\nmore\n---\n", "", "text\n---\nmore\n---\n", ""},
		{"\n---\na: b\n---\n", "", "\n---\na: b\n---\n", ""},
		{"--- not\n---\n", "", "--- not\n---\n", ""},
		{"---", "", "---", ""},
		{"", "", "", ""},
		{"---\na: b\ntext", "", "", "has no end"},
		{"---\n", "", "", "has no end"},
	} {
		matter, text, err := skill.SplitMatter([]byte(tc.data))
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) || text != "" {
				t.Errorf("%q: %q, %v, want %q", tc.data, text, err, tc.err)
			}
			continue
		}
		if err != nil || string(matter) != tc.matter || text != tc.text {
			t.Errorf("%q: %q, %q, %v", tc.data, matter, text, err)
		}
	}
	if matter, _, _ := skill.SplitMatter([]byte("text\n")); matter != nil {
		t.Errorf("no front matter is %q, want nil", matter)
	}
	if matter, _, _ := skill.SplitMatter([]byte("---\n---\n")); matter == nil {
		t.Error("empty front matter is nil, like none")
	}
}

type values = map[string]any

func TestDecodeMatter(t *testing.T) {
	for _, tc := range []struct {
		matter string
		want   values
		err    string
	}{
		{"", nil, ""},
		{"# nothing\n", values{}, ""},
		{"name: a\ndescription: Does it, when asked (always).\n# note\n\nversion: 1.0\non: yes\nempty:\nnone: null\nat: 2024-01-01\n" +
			"url: https://example.com/a#b\n", values{
			"name": "a", "description": "Does it, when asked (always).", "version": "1.0", "on": "yes", "empty": nil, "none": nil,
			"at": "2024-01-01", "url": "https://example.com/a#b",
		}, ""},
		{
			`a: "x: y"` + "\n" + `b: 'it is "so"'` + "\n" + `c: "é\u00e9\n"` + "\nd: 'it''s'\n",
			values{"a": "x: y", "b": `it is "so"`, "c": "éé\n", "d": "it's"},
			"",
		},
		{"a: x # note\nb: x#y\n", values{"a": "x", "b": "x#y"}, ""},
		{"text: >\n  one\n  two\nlist:\n- a\n- b\nmap:\n  k: v\n  n: 1.50\nflow: [x, {y: z}]\n", values{
			"text": "one two\n", "list": []any{"a", "b"}, "map": values{"k": "v", "n": "1.50"}, "flow": []any{"x", values{"y": "z"}},
		}, ""},
		{"a: one\n  two\nb: ~\n", values{"a": "one two", "b": nil}, ""},
		{"a: *b\n", values{"a": "*b"}, "unknown anchor"},
		{"hint: [file] [depth]\nlist:\n  - x\n", values{"hint": "[file] [depth]", "list": []any{"x"}}, "not YAML"},
		{"description: Use when: asked\nmetadata:\n  k: v\n", values{"description": "Use when: asked", "metadata": values{"k": "v"}}, "not YAML"},
		{"description: @you\nname: a", values{"description": "@you", "name": "a"}, "not YAML"},
		{
			"description: Use it\n  when: asked\n  - or: not\nname: \"a\ntools: x\n",
			values{"description": "Use it when: asked or: not", "name": "a", "tools": "x"},
			"not YAML",
		},
		{"a: >\n  x: [\n\tb\nc:d\n", values{"a": "x: [ b", "c": "d"}, "not YAML"},
		{"a: 1\na: 2\n", values{"a": "2"}, "twice"},
		{"a: x\x1b[31m\n", values{"a": "x\x1b[31m"}, "not YAML"},
		{"a: x\xff\n", values{"a": "x\ufffd"}, ""},
		{"- a\n- b\n", values{}, "not a list of keys"},
		{"just text\n", values{}, "not a list of keys"},
		{"? [a]\n: b\n", values{}, "not text"},
		{"a: &x 1\nb: *x\n", values{"a": "&x 1", "b": "*x"}, "anchors"},
		{"a:b\n", values{"a": "b"}, "not a list of keys"},
		{"a : b\n", values{"a": "b"}, ""},
		{"a: b:\nc: d: e # f\n", values{"a": "b:", "c": "d: e # f"}, "not YAML"},
		{"a: b: c\nd: e:\n", values{"a": "b: c", "d": "e:"}, "the value of d has a colon, so it needs quotes"},
		{"a: {x: y\nb: z\n", values{"a": "{x: y", "b": "z"}, "not YAML"},
	} {
		var got values
		err := skill.DecodeMatter([]byte(tc.matter), &got)
		if diff := cmp.Diff(tc.want, got); diff != "" && len(got)+len(tc.want) > 0 {
			t.Errorf("%q: %s", tc.matter, diff)
		}
		if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%q: %v, want %q", tc.matter, err, tc.err)
		}
	}
}

func TestDecodeIntoStruct(t *testing.T) {
	type settings struct {
		Name  string            `yaml:"name"`
		Turns int               `yaml:"maxTurns"`
		On    bool              `yaml:"on-by-default"`
		Meta  map[string]string `yaml:"metadata"`
	}
	for _, tc := range []struct {
		matter string
		want   settings
		err    string
	}{
		{"name: a\nmaxTurns: 3\non-by-default: true\nmetadata: {v: 1.0}\nother: x\n", settings{"a", 3, true, map[string]string{"v": "1.0"}}, ""},
		{"name: [a] [b]\nmaxTurns: 3\n", settings{Name: "[a] [b]", Turns: 3}, "not YAML"},
		{"name: a: b\n c: d\nmaxTurns: 3\non-by-default: true\n", settings{Name: "a: b c: d", Turns: 3, On: true}, "not YAML"},
		{"name: a\nmaxTurns: many\n", settings{Name: "a"}, "cannot unmarshal"},
	} {
		var got settings
		err := skill.DecodeMatter([]byte(tc.matter), &got)
		if diff := cmp.Diff(tc.want, got); diff != "" || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%q: %v\n%s", tc.matter, err, diff)
		}
	}
}

// TestDecodeIsBounded checks that no front matter takes long or much.
func TestDecodeIsBounded(t *testing.T) {
	laughs := "a0: &a0 [x,x,x,x,x,x,x,x,x]\n"
	for i := 1; i < 12; i++ {
		laughs += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 9), ","))
	}
	var keys, good strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&keys, "key%d: [\n", i)
		fmt.Fprintf(&good, "key%d: v\n", i)
	}
	many := func(unit string) string { return strings.Repeat(unit, skill.MaxMatter/len(unit)) }
	for name, matter := range map[string]string{
		"laughs": laughs, "self": "a: &a [*a]\n", "merge": "a: &a {b: c}\nd: {<<: *a}\n",
		"same keys": many("a: b\n"), "same keys in flow": "x: {" + many("a,")[:skill.MaxMatter-10] + "}\n",
		"lists": "a: " + many("[")[:skill.MaxMatter-4], "mappings": "a: " + many("{a: ")[:skill.MaxMatter-10],
		"bullets": many("- "), "questions": many("? "), "blanks": many(" \n"), "broken keys": keys.String(), "good keys": good.String(),
		"quotes": "a: " + many(`"\n`)[:skill.MaxMatter-10], "bangs": many("!"), "stars": many("*a "),
		"deep": "a: " + strings.Repeat("[", 30) + strings.Repeat("]", 30) + "\n", "folded": many("a: >\n "),
	} {
		var got values
		start := time.Now()
		err := skill.DecodeMatter([]byte(matter), &got)
		if took := time.Since(start); err == nil && name != "blanks" && name != "folded" || took > 30*time.Second {
			t.Errorf("%s: %v, %d keys after %v", name, err, len(got), took)
		}
		if n := len(fmt.Sprint(got)); n > 2*len(matter)+10 {
			t.Errorf("%s: %d bytes became %d", name, len(matter), n)
		}
	}
	got := values{"as": "before"}
	if err := skill.DecodeMatter([]byte("a: "+many("x")), &got); err == nil || len(got) != 1 || got["as"] != "before" {
		t.Errorf("more than the most: %v, %v", err, got)
	}
}

func TestValues(t *testing.T) {
	for _, tc := range []struct {
		v    any
		line string
		list []string
	}{
		{nil, "", nil},
		{" a\n b\t", "a b", []string{"a", "b"}},
		{
			"Read, Grep,Glob  Bash(git diff:*), Bash(a, (b) c)", "Read, Grep,Glob Bash(git diff:*), Bash(a, (b) c)",
			[]string{"Read", "Grep", "Glob", "Bash(git diff:*)", "Bash(a, (b) c)"},
		},
		{[]any{"Read", " Bash(x y) ", nil, "", "a, b"}, "[Read Bash(x y) <nil> a, b]", []string{"Read", "Bash(x y)", "a, b"}},
		{"a) b (c d", "a) b (c d", []string{"a)", "b", "(c d"}},
		{true, "true", []string{"true"}},
		{"[Read, Bash(a [b])]", "[Read, Bash(a [b])]", []string{"Read", "Bash(a [b])"}},
	} {
		if got := skill.Line(tc.v); got != tc.line {
			t.Errorf("%#v: line %q, want %q", tc.v, got, tc.line)
		}
		if got := skill.List(tc.v); !slices.Equal(got, tc.list) {
			t.Errorf("%#v: list %q, want %q", tc.v, got, tc.list)
		}
	}
	for v, want := range map[any][2]bool{
		"true": {true, true}, "Yes": {true, true}, true: {true, true}, "off": {false, true},
		"FALSE": {false, true}, "no": {false, true}, "": {}, "1": {}, nil: {},
	} {
		if yes, ok := skill.Bool(v); yes != want[0] || ok != want[1] {
			t.Errorf("%#v: %v, %v", v, yes, ok)
		}
	}
}

func TestExpandPlaceholders(t *testing.T) {
	vars := map[string]string{"DIR": "/a/$1/${DIR}", "EMPTY": ""}
	for _, tc := range []struct{ text, args, want string }{
		{"Fix $ARGUMENTS now.", " the  bug ", "Fix the  bug now."},
		{"From $1 to $2, $3!", `a "b c"`, "From a to b c, !"},
		{"It costs $5 or $10 or $.", "a", "It costs  or $10 or $."},
		{"Do it.", "with care", "Do it.\n\nwith care"},
		{"Do it.", "  ", "Do it."},
		{"$ARGUMENTS", "$ARGUMENTS $1 ${DIR}", "$ARGUMENTS $1 ${DIR}"},
		{"run ${DIR}/x${EMPTY} in ${HOME} ${DIR", "", "run /a/$1/${DIR}/x in ${HOME} ${DIR"},
		{"${DIR}", "now", "/a/$1/${DIR}\n\nnow"},
		{"$$1$", "a", "$a$"},
		{"$0 $DIR", "", "$0 $DIR"},
		{"$1", "", ""},
	} {
		if got := skill.Expand(tc.text, tc.args, vars); got != tc.want {
			t.Errorf("%q with %q: %q, want %q", tc.text, tc.args, got, tc.want)
		}
	}
}

// TestExpandIsBounded checks that a text with many placeholders does not grow to many times what was typed, and that
// unclosed names take no long search.
func TestExpandIsBounded(t *testing.T) {
	args := strings.Repeat("x", 100<<10)
	got := skill.Expand(strings.Repeat("$ARGUMENTS ", 20_000), args, nil)
	if n := len(got); n > skill.MaxExpanded+len(args)+300<<10 ||
		!strings.HasSuffix(got, " $ARGUMENTS ") || !strings.HasPrefix(got, args+" "+args) {
		t.Errorf("%d bytes", n)
	}
	text := strings.Repeat("y", 2*skill.MaxExpanded) + "$1"
	if got := skill.Expand(text, "a", nil); got != text[:len(text)-2]+"a" {
		t.Error("a text that is long by itself has no places")
	}
	start := time.Now()
	skill.Expand(strings.Repeat("${", 512<<10), "", map[string]string{"a": "b"})
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestWords(t *testing.T) {
	for args, want := range map[string][]string{
		`a  b`: {"a", "b"}, `"a b" 'c d'`: {"a b", "c d"}, `it's fine`: {"it's", "fine"}, `"open`: {`"open`}, `"a"b`: {`"a"b`}, "": nil,
		`"" x`: {"", "x"},
	} {
		if got := skill.Words(args); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", args, got, want)
		}
	}
}

func FuzzSplit(f *testing.F) {
	f.Add("---\na: b\n---\ntext")
	f.Add("\ufeff---\r\n---")
	f.Fuzz(func(t *testing.T, data string) {
		matter, text, err := skill.SplitMatter([]byte(data))
		if err != nil {
			return
		}
		whole := strings.ReplaceAll(strings.TrimPrefix(data, "\ufeff"), "\r\n", "\n")
		if !strings.HasSuffix(whole, text) || !strings.Contains(whole, string(matter)) || matter == nil && text != whole {
			t.Errorf("%q: %q, %q", data, matter, text)
		}
	})
}

func FuzzDecodeMatter(f *testing.F) {
	f.Add("a: b\n- c: &x [*x]\n? d")
	f.Add("description: Use when: asked\nhint: [a] [b]\n")
	f.Fuzz(func(t *testing.T, matter string) {
		var m values
		err := skill.DecodeMatter([]byte(matter), &m)
		if len(matter) <= skill.MaxMatter && err == nil && m == nil && strings.TrimSpace(matter) != "" &&
			!strings.Contains(matter, "#") && !strings.ContainsAny(matter, "-.%\ufeff") {
			t.Errorf("%q: nothing, and no error", matter)
		}
		var s struct {
			A string   `yaml:"a"`
			B []string `yaml:"b"`
			C bool     `yaml:"c"`
		}
		_ = skill.DecodeMatter([]byte(matter), &s)
		for _, v := range m {
			skill.Line(v)
			skill.List(v)
		}
	})
}

func FuzzExpand(f *testing.F) {
	f.Add("a $1 ${DIR} $ARGUMENTS", `"b c" d`)
	f.Fuzz(func(t *testing.T, text, args string) {
		got := skill.Expand(text, args, map[string]string{"DIR": "/x"})
		if !strings.Contains(text, "$") && !strings.HasPrefix(got, text) {
			t.Errorf("%q with %q: %q", text, args, got)
		}
	})
}

package skill

import (
	"reflect"
	"testing"
)

// FuzzPlain checks that the result of the reader without YAML equals that of YAML.
func FuzzPlain(f *testing.F) {
	for _, s := range []string{
		"a: b\n", "a: \"b: c\"\n#\nb:\n", "a: 'x' \nb: NULL",
		"a: x: y", "a: b #", "a:  é", "a: 1:2\nA-b_c: d:e", "a: b\n c",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, matter string) {
		fast, failed := plain([]byte(matter))
		if fast == nil {
			return
		}
		node, err := parseMatter([]byte(matter))
		if failed != nil {
			if err == nil {
				t.Fatalf("%q: YAML reads what is no YAML", matter)
			}
			node, err = parseMatter(quoted([]byte(matter)))
		}
		if err != nil {
			t.Fatalf("%q: %v", matter, err)
		}
		slow := map[string]any{}
		if node != nil {
			slow = value(node).(map[string]any)
		}
		if !reflect.DeepEqual(fast, slow) {
			t.Errorf("%q: %#v, YAML says %#v", matter, fast, slow)
		}
	})
}

func BenchmarkDecodeMatter(b *testing.B) {
	for name, matter := range map[string]string{
		"plain": "name: code-review\ndescription: Reviews a change for what is wrong with it. Use it before a commit, or when asked to " +
			"review.\nallowed-tools: Read, Grep\n",
		"nested": "name: code-review\ndescription: >\n  Reviews a change for what is wrong with it.\n  Use it before a commit.\nmetadata:\n" +
			"  author: someone\n",
		"broken": "name: code-review\ndescription: Reviews a change. Use when: asked to\nargument-hint: [file] [depth]\n",
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				var m map[string]any
				_ = DecodeMatter([]byte(matter), &m)
			}
		})
	}
}

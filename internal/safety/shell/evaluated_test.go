package shell

import "testing"

// TestPlainExpansion checks the law on expansions: plain text and plain parameters, however quotes are read.
func TestPlainExpansion(t *testing.T) {
	for text, want := range map[string]bool{
		"$x": true, "${x}": true, "$1": true, "$@": true, "${x:-}": true, "${x:-a b}": true, "${x%.*}": true, "${x##*/}": true, `${x//\//_}`: true,
		"${x:-$y/a}": true, "${x:-${y}}": true, "${x:-'a'}": true, `${x:-"a"}`: true, `${x#"$y"}`: true, "${x//[^a-z]/}": true, "${x:-$1$2}": true,
		"${x:-$(ls)}": false, "${x:-`ls`}": false, "${x:-<(ls)}": false, "${x:->(ls)}": false, "${x:-'$(ls)'}": false, `${x:-\$(ls)}`: false,
		"${x:-$'a'}": false, `${x:-$"a"}`: false, "${x:-$((1))}": false, "${x:-$[1]}": false, "${x:-${y:-a}}": false, "${x:-${y[1]}}": false,
		"${x:-{a,b}}": false, `${x:-\}}`: false, "${x:-'}": false, `${x:-"}`: false, `${x:-'"'}`: false, `${x:-\'}`: false, "${x:-$}": false,
		"${x:-\\\n}": false, "${x:-@(a)}": false, "": false, "x": false, "$": false, "$(ls)": false, "${x": false,
	} {
		if got := plainExpansion(text); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// TestNamesThatAreNoText checks that nothing is proven of a command that writes a name out in bytes which are no text:
// neither a judge nor a log could hold it as it is.
func TestNamesThatAreNoText(t *testing.T) {
	for text, proven := range map[string]bool{`cat $'caf\xc3\xa9'`: true, `cat $'caf\xe9'`: false, `cat $'\351'`: false} {
		if p := Explain(text, Place{Root: "/w", Cwd: "/w"}); (p.Class != Full) != proven {
			t.Errorf("%s: %v", text, p.Class)
		}
	}
}

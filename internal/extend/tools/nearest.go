package tools

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
)

const (
	maxCompared = 4 << 20 // bytes of a file that are searched for similar text
	maxAlike    = 3       // places that are shown
	maxAlikeLen = 20      // lines of one place
)

// numbered matches lines as read_file shows them.
var numbered = regexp.MustCompile(`^\s*\d+\t`)

// notFound explains why there is no match: it shows the most similar lines of the file, and says if only white
// space differs. It never guesses which of them was meant.
func notFound(text, want string) string {
	msg := "old_string was not found"
	if everyLine(want, numbered.MatchString) {
		return msg + "; it starts with line numbers, leave them out"
	}
	if len(text) > maxCompared {
		text = text[:maxCompared]
	}
	have := strings.Split(text, "\n")
	wanted := strings.Split(strings.Trim(want, "\n"), "\n")
	if at, how := sameButSpace(have, wanted); at >= 0 {
		return fmt.Sprintf("%s; these lines differ in %s only:\n%s", msg, how, excerpt(have, at, len(wanted)))
	}
	places := alike(have, wanted)
	if len(places) == 0 {
		return msg + ", nor anything like it; read the file again"
	}
	for _, at := range places {
		msg += "\nsimilar, but not the same:\n" + excerpt(have, at, len(wanted))
	}
	return msg
}

func everyLine(text string, ok func(string) bool) bool {
	for line := range strings.SplitSeq(strings.Trim(text, "\n"), "\n") {
		if !ok(line) {
			return false
		}
	}
	return true
}

// sameButSpace finds the first place that equals wanted except for white space or typographic characters, -1 if
// there is none. How says where they differ.
func sameButSpace(have, wanted []string) (at int, how string) {
	for _, way := range []struct {
		how  string
		fold func(string) string
	}{
		{"space at line ends", func(s string) string { return strings.TrimRight(s, " \t\r") }},
		{"indentation", strings.TrimSpace},
		{"white space", func(s string) string { return strings.Join(strings.Fields(s), "") }},
		{"quotes, dashes and space", func(s string) string { return strings.Join(strings.Fields(keyboard().Replace(s)), "") }},
	} {
		if at := indexFolded(have, wanted, way.fold); at >= 0 {
			return at, way.how
		}
	}
	return -1, ""
}

func indexFolded(have, wanted []string, fold func(string) string) int {
	if len(wanted) > len(have) || strings.TrimSpace(strings.Join(wanted, "")) == "" {
		return -1
	}
	a, b := mapped(have, fold), mapped(wanted, fold)
	// Lines are compared as one text, so that a file of equal lines takes no
	// longer than any other.
	text, want := "\n"+strings.Join(a, "\n")+"\n", "\n"+strings.Join(b, "\n")+"\n"
	i := strings.Index(text, want)
	if i < 0 {
		return -1
	}
	return strings.Count(text[:i], "\n")
}

func mapped(list []string, f func(string) string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = f(s)
	}
	return out
}

// alike returns the places whose line is most similar to the longest wanted line, best first. Similarity is the
// share of common pairs of letters (Dice, 1945).
func alike(have, wanted []string) []int {
	anchor := 0
	for i, line := range wanted {
		if len(strings.TrimSpace(line)) > len(strings.TrimSpace(wanted[anchor])) {
			anchor = i
		}
	}
	pairs := pairsOf(wanted[anchor])
	if len(pairs) == 0 {
		return nil
	}
	type place struct {
		at    int
		score float64
	}
	var places []place
	for i, line := range have {
		if score := dice(pairs, line); score >= 0.6 {
			places = append(places, place{max(i-anchor, 0), score})
		}
	}
	slices.SortStableFunc(places, func(a, b place) int { return cmp.Compare(b.score, a.score) })
	var best []int
	for _, p := range places[:min(len(places), maxAlike)] {
		best = append(best, p.at)
	}
	return best
}

type pair [2]byte

// pairsOf counts the neighbouring bytes of a line, the first 400 of them.
func pairsOf(line string) map[pair]int {
	line = strings.TrimSpace(line)
	pairs := map[pair]int{}
	for i := range min(len(line), 400) - 1 {
		pairs[pair{line[i], line[i+1]}]++
	}
	return pairs
}

func dice(pairs map[pair]int, line string) float64 {
	line = strings.TrimSpace(line)
	total := 0
	for _, n := range pairs {
		total += n
	}
	n := min(len(line), 400) - 1
	if n < 1 || total > 4*n || total < 4 {
		return 0 // too short to be worth a closer look
	}
	common := 0
	for p, m := range pairsOf(line) {
		common += min(m, pairs[p])
	}
	whole := 2 * float64(common) / float64(total+n)
	if n > total { // it may be a part of the line that is meant
		return max(whole, partly*float64(common)/float64(total))
	}
	return whole
}

// partly is the weight of a part of a line, compared with a whole one.
const partly = 0.75

// excerpt shows lines as read_file does.
func excerpt(have []string, at, n int) string {
	end := min(at+n, at+maxAlikeLen, len(have))
	var b strings.Builder
	for i := at; i < end; i++ {
		fmt.Fprintf(&b, "%6d\t%s\n", i+1, text.Cut(have[i], maxShownLine))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

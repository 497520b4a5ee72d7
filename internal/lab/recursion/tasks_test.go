package recursion_test

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// task is a text with a question about it whose answer is known.
type task struct {
	sources map[string]string
	does    func(l *leaf, q question, text string) string // the oracle
	chars   int
	score   func(answer string) float64
	gold    string
	params  map[string]any // for programs
}

var filler = strings.Fields("the quiet river keeps its slow pace along old stone walls while clerks copy dull lists of goods and weights for no reader at all")

func words(seed int, n int, key any) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(filler[int(chance(seed, key, i)*float64(len(filler)))] + " ")
	}
	return b.String()
}

// needle is S-NIAH: one sentence with a number in filler, at a depth from 0 to 1, among others of the same form about
// other keys if there are distractors.
func needle(seed, tokens int, depth float64, distractors int) task {
	line := words(seed, 20, "line") + "\n"
	lines := make([]string, max(2, tokens*charsPerToken/len(line)))
	for i := range lines {
		lines[i] = line
	}
	at := int(depth * float64(len(lines)-1))
	value := strconv.Itoa(1_000_000 + int(chance(seed, "value")*9e6))
	for d := range distractors {
		lines[int(chance(seed, "place", d)*float64(len(lines)))] = fmt.Sprintf("The special number of K%d is %d.\n", 100+d, 2_000_000+d)
	}
	lines[at] = "The special number of K7 is " + value + ".\n"
	text := strings.Join(lines, "")
	re := regexp.MustCompile(`The special number of K7 is (\d+)\.`)
	return task{
		sources: map[string]string{"text.txt": text}, chars: len(text), gold: value,
		params: map[string]any{"key": "K7"},
		score: func(answer string) float64 {
			if strings.Contains(answer, value) {
				return 1
			}
			return 0
		},
		does: func(l *leaf, q question, text string) string {
			m := re.FindStringSubmatch(text)
			if m == nil || chance(l.seed, "miss", m[1], len(text), q.Sample) < l.errs(len(text)) {
				return "none"
			}
			return m[1]
		},
	}
}

const labels = "abcdef"

// row is an entry whose label only the oracle knows: no search finds it.
type row struct {
	id    string
	user  int
	label byte
}

var aRow = regexp.MustCompile(`(?m)^(r\d+) u(\d+) `)

// rows makes entries of about 30 tokens.
func rows(seed, tokens, users int) (list []row, text string, byID map[string]row) {
	weights := []float64{0.30, 0.22, 0.18, 0.13, 0.10, 0.07} // skewed
	byID = map[string]row{}
	var b strings.Builder
	for i := 0; b.Len() < tokens*charsPerToken; i++ {
		x, label := chance(seed, "label", i), 0
		for label < len(weights)-1 && x >= weights[label] {
			x -= weights[label]
			label++
		}
		r := row{fmt.Sprintf("r%06d", i), int(chance(seed, "user", i) * float64(users)), labels[label]}
		list, byID[r.id] = append(list, r), r
		fmt.Fprintf(&b, "%s u%d 2025-%02d-%02d %s\n", r.id, r.user, 1+i%12, 1+i%28, words(seed, 17, i))
	}
	return list, b.String(), byID
}

// seen is what the leaf believes of the rows of a text.
func (l *leaf) seen(byID map[string]row, q question, text string) (out []row) {
	e := l.errs(len(text))
	for _, m := range aRow.FindAllStringSubmatch(text, -1) {
		r, sample := byID[m[1]], q.Sample
		if l.correlated {
			sample = 0
		}
		if chance(l.seed, "wrong", r.id, sample) < e {
			other := int(chance(l.seed, "other", r.id, sample) * 5)
			r.label = strings.ReplaceAll(labels, string(r.label), "")[other]
		}
		out = append(out, r)
	}
	return out
}

func counts(list []row) map[string]int {
	out := map[string]int{}
	for _, r := range list {
		out[string(r.label)]++
	}
	return out
}

func most(n map[string]int) string {
	best := ""
	for _, label := range strings.Split(labels, "") {
		if best == "" || n[label] > n[best] {
			best = label
		}
	}
	return best
}

// linear is OOLONG's linear task: how many rows have label a?
func linear(seed, tokens int) task {
	list, text, byID := rows(seed, tokens, 50)
	gold := counts(list)["a"]
	return task{
		sources: map[string]string{"rows.txt": text}, chars: len(text), gold: strconv.Itoa(gold),
		params: map[string]any{"rows": len(list)},
		score: func(answer string) float64 {
			n, err := strconv.Atoi(strings.TrimSpace(answer))
			if err != nil {
				return 0
			}
			return math.Pow(0.75, math.Abs(float64(gold-n)))
		},
		does: func(l *leaf, q question, text string) string {
			seen := l.seen(byID, q, text)
			switch q.Do {
			case "count":
				return strconv.Itoa(counts(seen)["a"])
			case "labels":
				var b strings.Builder
				for _, r := range seen {
					b.WriteByte(r.label)
				}
				return `{"answer": "` + b.String() + `"}`
			}
			n, _ := json.Marshal(counts(seen)) // a map of numbers always marshals
			return `{"answer": ` + string(n) + `}`
		},
	}
}

// frequent is the same text, with the question for the least frequent of the labels d, e, f: a comparison.
func frequent(seed, tokens int) task {
	out := linear(seed, tokens)
	list, _, byID := rows(seed, tokens, 50)
	least := func(n map[string]int) string {
		best := "d"
		for _, label := range []string{"e", "f"} {
			if n[label] < n[best] {
				best = label
			}
		}
		return best
	}
	count := out.does
	out.gold = least(counts(list))
	out.score = func(answer string) float64 {
		if answer == out.gold {
			return 1
		}
		return 0
	}
	out.does = func(l *leaf, q question, text string) string {
		if q.Do == "least" {
			return least(counts(l.seen(byID, q, text)))
		}
		return count(l, q, text)
	}
	return out
}

// pairs is OOLONG-Pairs: all pairs of users each of whom has a row with label e or f. The answer must list them.
func pairs(seed, tokens int) task {
	users := max(8, tokens/400)
	list, text, byID := rows(seed, tokens, users)
	gold := pairsOf(list)
	return task{
		sources: map[string]string{"rows.txt": text}, chars: len(text), gold: fmt.Sprint(len(gold)),
		params: map[string]any{"rows": len(list)},
		score:  func(answer string) float64 { return f1(gold, strings.Fields(answer)) },
		does: func(l *leaf, q question, text string) string {
			seen := l.seen(byID, q, text)
			if q.Do == "pairs" {
				return strings.Join(pairsOf(seen), "\n") + "\nend"
			}
			who, _ := json.Marshal(usersOf(seen)) // a list of numbers always marshals
			return `{"answer": ` + string(who) + `}`
		},
	}
}

func usersOf(list []row) []int {
	who := map[int]bool{}
	for _, r := range list {
		if r.label == 'e' || r.label == 'f' {
			who[r.user] = true
		}
	}
	out := []int{}
	for u := range who {
		out = append(out, u)
	}
	sort.Ints(out)
	return out
}

func pairsOf(list []row) (out []string) {
	who := usersOf(list)
	for i, a := range who {
		for _, b := range who[i+1:] {
			out = append(out, fmt.Sprintf("%d-%d", a, b))
		}
	}
	return out
}

func f1(gold, got []string) float64 {
	right := 0
	for _, p := range got {
		if slices.Contains(gold, p) {
			right++
		}
	}
	if len(gold)+len(got) == 0 {
		return 1
	}
	return 2 * float64(right) / float64(len(gold)+len(got))
}

// hops is BrowseComp-like: a chain of facts, each in another document among many. The words of a later fact are only
// known once the one before is found. Every fact is said in words that a search for its key does not settle: each key
// stands in several documents, and only one says the fact.
func hops(seed, tokens, documents, length int) task {
	sources, chars := map[string]string{}, 0
	name := func(hop int) string { return fmt.Sprintf("N%05d", int(chance(seed, "name", hop)*1e5)) }
	facts := map[string]string{} // next name by the one before
	for hop := range length {
		facts[name(hop)] = name(hop + 1)
	}
	each := max(400, tokens*charsPerToken/documents)
	for d := range documents {
		var b strings.Builder
		for b.Len() < each {
			b.WriteString(words(seed, 60, fmt.Sprint(d, b.Len())) + "\n")
			if b.Len() > each/2 && b.Len() < each/2+500 {
				for hop := range length {
					switch {
					case d == int(chance(seed, "document", hop)*float64(documents)):
						b.WriteString("FACT " + name(hop) + " leads to " + name(hop+1) + ".\n")
					case chance(seed, "mention", hop, d) < 20/float64(documents):
						b.WriteString("Somebody wrote of " + name(hop) + ".\n")
					}
				}
			}
		}
		sources[fmt.Sprintf("d%05d.txt", d)] = b.String()
		chars += b.Len()
	}
	gold := name(length)
	re := regexp.MustCompile(`FACT (N\d+) leads to (N\d+)\.`)
	return task{
		sources: sources, chars: chars, gold: gold, params: map[string]any{"first": name(0), "hops": length},
		score: func(answer string) float64 {
			if strings.TrimSpace(answer) == gold {
				return 1
			}
			return 0
		},
		does: func(l *leaf, q question, text string) string {
			known := map[string]string{}
			for _, m := range re.FindAllStringSubmatch(text, -1) {
				if chance(l.seed, "miss", m[1], len(text), q.Sample) >= l.errs(len(text)) {
					known[m[1]] = m[2]
				}
			}
			at, steps := q.Of, 1
			if q.Do == "chain" {
				steps = length
			}
			for range steps {
				if at = known[at]; at == "" {
					return "none"
				}
			}
			return at
		},
	}
}

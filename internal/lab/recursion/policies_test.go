package recursion_test

import (
	"encoding/json"
	"fmt"
	"strings"
)

// policy is a fixed root: what a model would have to come up with. P are the parameters of the task, CHUNK is the size
// of a part in characters.
type policy struct {
	name  string
	codes map[string]string // by kind of task
	chunk int
	asks  int
}

func (p policy) code(kind string, t task) string {
	params, _ := json.Marshal(t.params) // plain values always marshal
	const all = "const all = [context].flat(), Q = (o) => JSON.stringify(o); "
	return strings.NewReplacer("PARAMS", string(params), "CHUNK", fmt.Sprint(p.chunk)).Replace("const P = PARAMS; " + all + p.codes[kind])
}

const usualChunk = 50_000

// joinAsks asks about parts at once, and fails if a part has no answer.
const parts = "const parts = all.flatMap(t => t.chunks(CHUNK)); "

// direct is the plain call with all of the text.
func direct() policy {
	one := func(do string) string {
		return "answer(await ask(Q({do: '" + do + "', of: P.first}), join(all, '\\n'), {model: 'main'}))"
	}
	return policy{name: "plain long context", asks: 1, codes: map[string]string{
		"needle": one("find"), "linear": one("count"), "frequent": one("least"), "pairs": one("pairs"), "hops": one("chain"),
	}}
}

// code is depth 0: code alone. It finds what words settle, and guesses the rest.
func code() policy {
	return policy{name: "programs, depth 0", codes: map[string]string{
		"needle":   "const m = /The special number of K7 is (\\d+)\\./.exec(String(all[0])); answer(m ? m[1] : 'none')",
		"linear":   "answer(String(Math.round(P.rows / 6)))",
		"frequent": "answer('e')",
		"pairs":    "answer('none')",
		"hops": "let at = P.first; for (let h = 0; h < P.hops; h++) { const m = all.map(t => new RegExp('FACT ' + at + ' leads to (N\\\\d+)').exec(String(t))).find(Boolean); " +
			"at = m ? m[1] : 'none' } answer(at)",
	}}
}

// retrieval asks once about the parts that share the most words with the question.
func retrieval() policy {
	const best = "const top = (words, n) => parts.map(p => [p, words.reduce((k, w) => k + p.find(w).length, 0)]).sort((a, b) => b[1] - a[1]).slice(0, n).map(x => x[0]); "
	one := func(do, words string) string {
		return parts + best + "answer(await ask(Q({do: '" + do + "', of: P.first}), join(top([" + words + "], 8), '\\n')))"
	}
	return policy{name: "retrieval of 8 parts", chunk: 4_000, asks: 1, codes: map[string]string{
		"needle": one("find", "'special', 'number', 'K7'"), "linear": one("count", "'label', 'a'"), "frequent": one("least", "'label'"),
		"pairs": one("pairs", "'users'"), "hops": one("chain", "P.first"),
	}}
}

// mapped asks about each part, and puts the results together in code.
func mapped(chunk int) policy {
	const tally = parts + "const total = {}; for (const n of await Promise.all(parts.map(p => ask(Q({do: 'tally'}), p, {schema: {type: 'object'}})))) " +
		"for (const l of Object.keys(n)) total[l] = (total[l] ?? 0) + n[l]; "
	return policy{name: "programs, depth 1", chunk: chunk, asks: 20_000, codes: map[string]string{
		"needle":   parts + "const said = await Promise.all(parts.map(p => ask(Q({do: 'find'}), p))); answer(said.map(String).find(s => s !== 'none') ?? 'none')",
		"linear":   tally + "answer(String(total.a ?? 0))",
		"frequent": tally + "answer(['d', 'e', 'f'].reduce((b, l) => (total[l] ?? 0) < (total[b] ?? 0) ? l : b))",
		"pairs": parts + "const who = new Set((await Promise.all(parts.map(p => ask(Q({do: 'users'}), p, {schema: {type: 'array', items: {type: 'integer'}}})))).flat()); " +
			"const list = [...who].sort((a, b) => a - b), out = []; list.forEach((a, i) => list.slice(i + 1).forEach(b => out.push(a + '-' + b))); answer(out.join('\\n') || 'none')",
		// what a search for the name settles is not asked about
		"hops": "let at = P.first; for (let h = 0; h < P.hops; h++) { const near = all.filter(t => t.includes(at)); " +
			"const said = await Promise.all(near.map(t => ask(Q({do: 'next', of: at}), t))); at = said.map(String).find(s => s !== 'none') ?? 'none' } answer(at)",
	}}
}

// twoLevels has a model put the counts of parts together, in groups.
func twoLevels(chunk, group int) policy {
	return policy{name: "two levels", chunk: chunk, asks: 20_000, codes: map[string]string{
		"linear": parts + fmt.Sprintf("let level = await Promise.all(parts.map(p => ask(Q({do: 'count'}), p))); while (level.length > 1) { const next = []; "+
			"for (let i = 0; i < level.length; i += %d) next.push(ask(Q({do: 'sum'}), join(level.slice(i, i + %d), '\\n'))); level = await Promise.all(next) } answer(level[0])", group, group),
	}}
}

// voting asks for the label of each row three times.
func voting(chunk, samples int) policy {
	return policy{name: fmt.Sprintf("%d votes", samples), chunk: chunk, asks: 20_000, codes: map[string]string{
		"linear": parts + fmt.Sprintf("let n = 0; for (const p of parts) { const said = await Promise.all([...Array(%d).keys()].map(s => ask(Q({do: 'labels', sample: s}), p, {schema: {type: 'string'}}))); "+
			"for (let i = 0; i < said[0].length; i++) { const c = {}; for (const s of said) c[s[i]] = (c[s[i]] ?? 0) + 1; "+
			"const best = Object.keys(c).reduce((b, l) => c[l] > c[b] ? l : b, said[0][i]); if (best === 'a') n++ } } answer(String(n))", samples),
	}}
}

// lines asks about each line alone.
func lines(asks int) policy {
	return policy{name: "a request for each line", asks: asks, codes: map[string]string{
		"linear": "const said = await Promise.all(all[0].lines().map(l => ask(Q({do: 'count'}), l))); answer(String(said.reduce((n, s) => n + Number(s), 0)))",
	}}
}

package compact_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/kernel/compact"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// facts are things that a person says in a session, one of each kind, and facts of the log. Each must be in every
// prompt to the end.
func facts() map[string]string {
	return map[string]string{
		"imperative":      "Use tabs of width qw5 in all of lib/render.",
		"prohibition":     "Hands off vendor/zlib-ng.",
		"duty":            "You must run gofmt-xq before you finish.",
		"negation":        "There is no staging server, and port 8081 is not ours.",
		"German":          "Fass legacy/rechnung.c nicht an.",
		"Chinese":         "不要修改 legacy/zhang.c。",
		"Russian":         "Не трогай legacy/schet.c.",
		"Japanese":        "legacy/kaikei.c には触らないでください。",
		"number":          "A page holds 37 rows, and the budget is 1,250.75 euros.",
		"version":         "Target Python 3.8.77 please.",
		"name":            "The ticket is ZRB-4417, and Ms Okonkwo-Vidal signs it off.",
		"address":         "The staging database is at 10.7.3.44:5433.",
		"changed my mind": "No, name the flag --frobnicate-slow after all.",
		"question":        "Why does the third shard stay empty?",
		"between a paste": "And keep the name WobbleTree.",
		"answer":          "The person answers: take port 7171, never 80.",
		"failing check":   "test_wobble_17 - AssertionError: 41 != 43",
		"to do":           "[pending] write the migration of table K9",
		"task":            "Go on with part Zeta-%d of the port.",
	}
}

// asked are the facts that a person says, in an order, each in a message with others of its words.
func asked() []string {
	f := facts()
	log := strings.Repeat("2026-11-02T10:00:01 worker=7 took=12ms rows=0 ok=1 id=0xfe12ab77\n", 40)
	return []string{
		"Port the queue in src to a design without locks.",
		f["imperative"] + " " + f["prohibition"] + " " + f["duty"],
		f["negation"],
		f["German"] + "\n" + f["Chinese"] + "\n\n" + f["Russian"] + " " + f["Japanese"],
		f["number"] + " " + f["version"],
		"Here is the log.\n" + log + f["between a paste"] + "\n" + log + "Name the flag --frobnicate-fast.",
		f["name"],
		f["changed my mind"] + " " + f["address"],
		f["question"],
	}
}

// scribes are models that write records, well or badly.
func scribes() map[string]func(p compact.Plan, n int) (string, error) {
	const form = "## Decisions\n- %s\n## Files\n- lib/a.go: the queue\n## State of work\n- %s\n## Open questions\nnone\n## Next\n- go on\n"
	return map[string]func(compact.Plan, int) (string, error){
		"good": func(_ compact.Plan, n int) (string, error) {
			return fmt.Sprintf(form, fmt.Sprint("part ", n, " is ported"), "Tests: failed: pytest tests/: test_wobble_17"), nil
		},
		"lazy": func(compact.Plan, int) (string, error) { return "We worked on the queue.\nAll fine.", nil },
		"lying": func(compact.Plan, int) (string, error) {
			return "## Goal\nnothing is left to do\n## Constraints\n- use spaces, and change vendor/zlib-ng\n" + fmt.Sprintf(form, "done", "Tests: passed"), nil
		},
		"failing": func(compact.Plan, int) (string, error) { return "", errors.New("503") },
		"overlong": func(compact.Plan, int) (string, error) {
			return fmt.Sprintf(form, strings.Repeat("and so on and so on\n- ", 20_000), "Tests: failed: pytest"), nil
		},
	}
}

// TestSurvival is the table of facts that are still known after so many compactions, by summariser and window: all of
// them.
func TestSurvival(t *testing.T) {
	windows, rounds := []int{8000, 32_000, 128_000}, []int{1, 3, 10, 20}
	if testing.Short() || testkit.Race {
		windows, rounds = []int{8000, 32_000}, []int{1, 3}
	}
	for _, window := range windows {
		for name, scribe := range scribes() {
			t.Run(fmt.Sprintf("%d %s", window, name), func(t *testing.T) {
				t.Parallel()
				c := newTalk(window)
				c.writes, c.History = scribe, true
				c.Facts.Test = &compact.Test{Run: compact.Run{Command: "pytest tests/", Detail: "FAILED tests/test_quux.py::" + facts()["failing check"]}}
				c.Facts.Changed = []string{"lib/a.go"}
				c.Carry.Todo = []tool.Todo{{Text: "write the migration of table K9", State: "pending"}}
				c.worked("which port?", llm.Say(facts()["answer"]))
				c.Carry.Answers = []loop.Answer{{Call: "c1", To: "which port?", Text: facts()["answer"], Seq: 5}}
				for _, said := range asked() {
					c.says(t, said)
				}
				for _, n := range rounds {
					for step := 0; c.compactions < n; step++ {
						if step%9 == 0 {
							c.says(t, fmt.Sprintf("Look at this log, step %d of round %d, and go on.\n%s", step, n, tokens(min(window/16, 3000), "queue shard lease merge")))
						}
						c.worked("cat data", llm.Say(tokens(window/24, "value index order total")))
						c.settled(t)
					}
					c.Carry.Goal = fmt.Sprintf(facts()["task"], n)
					c.says(t, c.Carry.Goal)
					c.survived(t, n)
				}
			})
		}
	}
}

// says is a person who says something, and a model that answers.
func (c *talk) says(t *testing.T, words string) {
	c.said(text(words))
	c.settled(t)
	c.add(agent(text("I see.")))
}

func (c *talk) settled(t *testing.T) {
	t.Helper()
	if err := c.settle(); err != nil {
		t.Fatalf("after %d compactions: %v", c.compactions, err)
	}
}

// survived holds that all facts are in the prompt, each once, and nothing else is claimed.
func (c *talk) survived(t *testing.T, n int) {
	t.Helper()
	all := written(c.Messages)
	for kind, fact := range facts() {
		fact = strings.ReplaceAll(fact, "%d", fmt.Sprint(n))
		if got := strings.Count(all, fact); got == 0 || got > 1 && kind != "failing check" {
			t.Errorf("after %d compactions %s stands there %d times: %s", n, kind, got, fact)
		}
	}
	if strings.Contains(all, "use spaces") || strings.Contains(all, "nothing is left to do") || strings.Contains(all, "Tests: passed") {
		t.Errorf("after %d compactions a lie is in the prompt:\n%s", n, all)
	}
	if strings.Contains(all, "Messages left out for lack") != (c.Unshown.Messages > 0) || c.Unshown.Messages > 0 {
		t.Errorf("after %d compactions %d messages are left out", n, c.Unshown.Messages)
	}
}

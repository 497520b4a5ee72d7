package command

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/store"
)

// newLibrary is a home with a text, and without the request that answers from short ones.
func newLibrary(t *testing.T, text string) home {
	t.Helper()
	h := newHome(t, "http://127.0.0.1:1")
	config := filepath.Join(h.dir, "config", "config.toml")
	settings, err := os.ReadFile(config)
	if err == nil {
		err = os.WriteFile(config, append(settings, "[programs]\nplain = 0\n"...), 0o600)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(h.work, "a.txt"), []byte(text), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func programCall(code string) string {
	raw, _ := json.Marshal(map[string]string{"code": code}) // a text always marshals
	return "call: program " + string(raw)
}

// TestAskCorpusByProgram checks the command: an answer with its trace, one request for a short text, no answer, and the
// exit codes.
func TestAskCorpusByProgram(t *testing.T) {
	t.Parallel()
	h := newLibrary(t, "alpha 1\nbeta 2\n")
	ask := func(args ...string) (string, int) {
		cmd := h.command(t.Context(), append([]string{"ask-corpus", h.work, "--program", "--model", "script", "--source", "a.txt"}, args...)...)
		out, _ := cmd.Output()
		return string(out), cmd.ProcessState.ExitCode()
	}
	out, code := ask(programCall("const b = context.lines()[1]; answer(text`${b}: ${await ask('say: seen', b)}`, [b])"))
	if want := "| beta 2: seen\n\n[1] a.txt, line 2 (bytes 8-14)\n  > beta 2\n\n" +
		"Bytes 0-6 of the answer: copied from a.txt, line 2 (bytes 8-14)\nBytes 8-12 of the answer: said by a model that had read a.txt, line 2 (bytes 8-14)\n\n" +
		"Read: 40 % of 15 bytes in 1 source; 1 request.\nNot read: 9 bytes of a.txt.\n"; out != want || code != 0 {
		t.Errorf("code %d, %s", code, out)
	}
	if out, code := ask("--depth", "0", programCall("answer(await ask('say: seen'))")); code != 14 || out != "" {
		t.Errorf("depth 0: code %d, %s", code, out)
	}
	if out, code := ask(programCall("answer(null)")); code != 14 || !strings.HasPrefix(out, "| Nothing was found in what was read of the corpus.\n") {
		t.Errorf("nothing: code %d, %s", code, out)
	}
	if out, code := ask("say: It is so."); code != 14 || out != "" {
		t.Errorf("words are no answer: code %d, %s", code, out)
	}
	if err := os.WriteFile(filepath.Join(h.dir, "config", "config.toml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, code := ask("say: It is so."); code != 0 || !strings.HasPrefix(out, "| It is so.\n") || !strings.Contains(out, "Read: 100 % of 15 bytes in 1 source; 1 request.\n") {
		t.Errorf("a short text: code %d, %s", code, out)
	}
	if out, err := h.command(t.Context(), "ask-corpus", h.work, "--depth", "0", "what?").CombinedOutput(); err == nil || !strings.Contains(string(out), "--depth needs --program") {
		t.Errorf("%s", out)
	}
}

// TestKilledPrograms kills a real process with SIGKILL after each number of requests, and resumes it: the answer is the
// same, and no request that had ended is made again.
func TestKilledPrograms(t *testing.T) {
	t.Parallel()
	steps := programCall("const first = []; for (const l of context.lines()) first.push(await ask('delay: 20ms\\nsay: one ' + l, l))") + "\n" +
		programCall("const again = await Promise.all(first.map(f => ask(text`delay: 20ms\\nsay: two ${f}`)))") + "\n" +
		programCall("answer(join(again, ', '))")
	const asks = 8
	after := []int{1, 3, 4, 6}
	if !testing.Short() {
		after = []int{1, 2, 3, 4, 5, 6, 7, 8}
	}
	for _, kill := range after {
		h := newLibrary(t, "alpha\nbeta\ngamma\ndelta\n")
		p := testkit.Start(t, h.command(t.Context(), "ask-corpus", h.work, "--program", "--model", "script", "--source", "a.txt", steps))
		testkit.WaitFor(t, fmt.Sprint(kill, " requests have ended"), func() bool { return p.Over() || len(endedAsks(t, h)) >= kill })
		p.Kill()
		before := endedAsks(t, h)
		out, err := h.command(t.Context(), "resume", "last").Output()
		if want := "| two one alpha, two one beta, two one gamma, two one delta\n"; err != nil || !strings.HasPrefix(string(out), want) {
			t.Fatalf("killed after %d: %v, %s\n%s", len(before), err, out, p.Printed())
		}
		all := endedAsks(t, h)
		if len(all) != asks {
			t.Errorf("killed after %d: %d requests", len(before), len(all))
		}
		for id, starts := range all {
			if before[id] > 0 && starts > before[id] {
				t.Errorf("killed after %d: %s was made again", len(before), id)
			}
		}
	}
}

// endedAsks returns the requests of the only session that have ended, and how often each was started.
func endedAsks(t *testing.T, h home) map[string]int {
	t.Helper()
	ids, err := h.store().IDs(t.Context())
	if err != nil || len(ids) == 0 {
		return nil
	}
	names, starts, ended := map[string]string{}, map[string]int{}, map[string]int{}
	for e, err := range store.Events(t.Context(), h.store(), ids[0]) {
		if err != nil {
			return ended // it is being written
		}
		switch b := e.Body.(type) {
		case event.Judged:
			names[b.Call] = b.Tool
		case event.Started:
			starts[b.Call]++
		case event.Ended:
			if names[b.Call] == "ask" && b.Outcome == event.OutcomeOK {
				ended[b.Call] = 0
			}
		}
	}
	for id := range ended {
		ended[id] = starts[id]
	}
	return ended
}

// TestAskCorpusOfStandardInput checks that standard input is a source for programs and for tools, that it is stored with
// the session, and that an empty one is an error before a model is asked.
func TestAskCorpusOfStandardInput(t *testing.T) {
	t.Parallel()
	h := newLibrary(t, "not a source\n")
	ask := func(input string, args ...string) (string, int) {
		cmd := h.command(t.Context(), append([]string{"ask-corpus", "-", "--model", "script"}, args...)...)
		cmd.Stdin = strings.NewReader(input)
		out, _ := cmd.CombinedOutput()
		return string(out), cmd.ProcessState.ExitCode()
	}
	out, code := ask("alpha\nbeta\n", "--program", programCall("answer(context.lines()[1])"))
	if code != 0 || !strings.Contains(out, "| beta\n") || !strings.Contains(out, "copied from standard input, line 2 (bytes 6-10)") {
		t.Errorf("code %d, %s", code, out)
	}
	if out, err := h.command(t.Context(), "resume", "last", programCall("answer(context.lines()[0])")).Output(); err != nil || !strings.HasPrefix(string(out), "| alpha\n") {
		t.Errorf("%v, %s", err, out)
	}
	out, code = ask("alpha one\n", `call: corpus_list {"sources":["-"]}`+"\n"+
		`call: corpus_answer {"answer":"It is alpha one.","evidence":[{"source":"standard input","from":0,"to":9,"quote":"alpha one"}]}`)
	if code != 0 || !strings.Contains(out, "[1] standard input, line 1 (bytes 0-9)") {
		t.Errorf("code %d, %s", code, out)
	}
	if out, code := ask(" \n", "what?"); code == 0 || !strings.Contains(out, "standard input: it is empty") {
		t.Errorf("code %d, %s", code, out)
	}
}

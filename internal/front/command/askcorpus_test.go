package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/inspan/inspan/internal/front/console"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/internal/testkit/anthropictest"
	"github.com/inspan/inspan/llm"
)

// TestAskCorpusKeepsToItsSources checks that the command opens the sources of --source and nothing else, and asks no
// model about a missing one.
func TestAskCorpusKeepsToItsSources(t *testing.T) {
	t.Parallel()
	h := newHome(t, "http://127.0.0.1:1")
	for _, name := range []string{"docs", "other"} {
		if err := os.MkdirAll(filepath.Join(h.work, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(h.work, name, "a.txt"), []byte("one\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ask := func(source, opens string) string {
		out, _ := h.command(t.Context(), "ask-corpus", h.work, "--source", source, "--model", "script",
			`call: corpus_list {"sources":["`+opens+`"]}`+"\n"+
				`call: corpus_answer {"answer":"One.","evidence":[{"source":"`+opens+`/a.txt","from":0,"to":3,"quote":"one"}]}`).CombinedOutput()
		return string(out)
	}
	if out := ask("docs", "docs"); !strings.Contains(out, "| One.\n\n[1] docs/a.txt, line 1 (bytes 0-3)\n  > one\n") {
		t.Error(out)
	}
	if out := ask("docs", "other"); !strings.Contains(out, "other is not one of the sources") || strings.Contains(out, "| One.") {
		t.Error(out)
	}
	out, _ := h.command(t.Context(), "ask-corpus", h.work, "--model", "script", "--small", "nix/m", "say: hello").CombinedOutput()
	if !strings.Contains(string(out), "the model that reads pieces: ") || strings.Contains(string(out), "hello") {
		t.Errorf("a small model that is not there: %s", out)
	}
	if out := ask("nix", "docs"); !strings.Contains(out, `source "nix": `) || strings.Contains(out, "turn") {
		t.Error(out)
	}
}

// reading is a vendor whose model asks about a page and a file, and answers. Asked about the file, it
// first says so, and waits.
type reading struct {
	t       *testing.T
	page    string
	reached chan struct{} // the file is asked about for the first time
	gone    chan struct{} // and no one waits for that any more

	mu    sync.Mutex
	asked map[string]int // how often about what
	talk  []asked
}

func (v *reading) answer(_ *http.Request, body []byte) anthropictest.Answer {
	a, err := parse(body)
	if err != nil {
		v.t.Error(err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	say := func(parts ...llm.Part) anthropictest.Answer {
		return anthropictest.Answer{Parts: parts, Usage: llm.Usage{Input: 100, Output: 10}}
	}
	call := func(name, args string) anthropictest.Answer {
		return say(llm.Call{ID: fmt.Sprintf("call_%d", a.replies), Name: name, Args: json.RawMessage(args)})
	}
	text := strings.Join(a.content, "\n")
	for _, piece := range []string{"Refunds take 14 days.", "Ann approves."} {
		if strings.Contains(text, "<piece-") && strings.Contains(text, piece) {
			if v.asked[piece]++; piece == "Ann approves." && v.asked[piece] == 1 {
				close(v.reached)
				v.mu.Unlock()
				<-v.gone
				v.mu.Lock()
			}
			return say(llm.Text{Text: fmt.Sprintf(`{"answer": %q, "quotes": [%q]}`, piece, piece)})
		}
	}
	v.talk = append(v.talk, a)
	switch a.replies {
	case 0:
		return call("corpus_list", fmt.Sprintf(`{"sources":[%q,"a.txt"]}`, v.page))
	case 1:
		return call("ask_pieces", `{"pieces":["0:0-21","1:0-13"],"question":"Which rule?"}`)
	case 2, 4:
		return call("corpus_answer", fmt.Sprintf(`{"answer":"14 days, if Ann approves.","evidence":[
			{"source":%q,"from":13,"to":20,"quote":"14 days"},{"source":"a.txt","from":0,"to":12,"quote":"Ann approves"}]}`, v.page))
	}
	return say(llm.Text{Text: "That is all."})
}

// TestAskCorpusIsResumed kills the command in the middle of a piece. The session continues with its sources, its tools
// and the bytes of its page, pays for no answer twice, and returns a verified answer.
func TestAskCorpusIsResumed(t *testing.T) {
	t.Parallel()
	var fetched atomic.Int64
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		if fetched.Add(1) == 1 {
			_, _ = io.WriteString(w, "Refunds take 14 days.")
		}
	}))
	defer site.Close()
	v := &reading{t: t, page: site.URL + "/terms", reached: make(chan struct{}), gone: make(chan struct{}), asked: map[string]int{}}
	h := newHome(t, anthropictest.Start(t, &anthropictest.Server{Answer: v.answer}))
	file := filepath.Join(h.work, "a.txt")
	if err := os.WriteFile(file, []byte("Ann approves.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ask := []string{"ask-corpus", v.page, "--source", "a.txt", "how long, and who approves?"}
	if out, err := h.command(t.Context(), ask...).CombinedOutput(); err == nil || !strings.Contains(string(out), "sandbox.local in the settings") {
		t.Errorf("an address of this machine was read: %v\n%s", err, out)
	}
	settings, err := os.OpenFile(filepath.Join(h.dir, "config", "config.toml"), os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = settings.WriteString("[sandbox]\nlocal = [\"127.0.0.0/8\"]\n")
	}
	if err != nil || settings.Close() != nil {
		t.Fatal(err)
	}
	cmd := h.command(t.Context(), ask...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-v.reached
	testkit.WaitFor(t, "the answer about the page to be kept", func() bool {
		kept, _ := filepath.Glob(filepath.Join(h.dir, "state", "corpus-answers", "??", strings.Repeat("?", 64)))
		return len(kept) == 1
	})
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	close(v.gone)
	again := func(args ...string) (code int, out, errs string) {
		var stdout, stderr bytes.Buffer
		cmd := h.command(t.Context(), append([]string{"resume", "last"}, args...)...)
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		_ = cmd.Run()
		return cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
	}
	code, out, errs := again()
	want := "| 14 days, if Ann approves.\n\n[1] " + v.page + ", line 1 (bytes 13-20)\n  > 14 days\n" +
		"\n[2] a.txt, line 1 (bytes 0-12)\n  > Ann approves\n\nRead: 100 % of 35 bytes in 2 sources.\n"
	if code != 0 || out != want || strings.Contains(errs, "changed since") {
		t.Errorf("code %d\n%s\n%s", code, out, errs)
	}
	v.mu.Lock()
	if fetched.Load() != 1 || v.asked["Refunds take 14 days."] != 1 || v.asked["Ann approves."] != 2 {
		t.Errorf("fetched %d times, asked %v", fetched.Load(), v.asked)
	}
	for i, a := range v.talk[1:] {
		if !slices.Equal(v.talk[i].content, a.content[:len(v.talk[i].content)]) {
			t.Errorf("request %d does not continue the one before: there are other tools", i+2)
		}
	}
	v.mu.Unlock()
	if err := os.WriteFile(file, []byte("Bob approves.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs = again("and now?")
	if code != 14 || out != "" || !strings.Contains(errs, "changed since the session read them: a.txt") {
		t.Errorf("an answer about what is not there any more: code %d\n%s\n%s", code, out, errs)
	}
	code, out, _ = again("and now?", "--output", "json")
	var told console.Result
	if err := json.Unmarshal([]byte(out), &told); err != nil || code != 14 || told.ExitCode != code || told.Session == "" {
		t.Errorf("code %d, %v\n%s", code, err, out)
	}
}

// TestPagesOfAQuestionAreJudged checks that a page which a person names is not fetched where a rule denies it, and that
// rules that ask have their answer by that.
func TestPagesOfAQuestionAreJudged(t *testing.T) {
	t.Parallel()
	var fetched atomic.Int64
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fetched.Add(1)
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, "one")
	}))
	defer site.Close()
	h := newHome(t, "http://127.0.0.1:1")
	for rules, fine := range map[string]bool{
		`deny = ["network(127.0.0.1)"]`: false, `deny = ["web_fetch"]`: false, `deny = ["network(example.com)"]`: true, `ask = ["network"]`: true,
	} {
		fetched.Store(0)
		settings := rules + "\n[sandbox]\nlocal = [\"127.0.0.0/8\"]\n"
		if err := os.WriteFile(filepath.Join(h.dir, "config", "config.toml"), []byte(settings), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := h.command(t.Context(), "ask-corpus", site.URL, "--model", "script", fmt.Sprintf("call: corpus_list {\"sources\":[%q]}\n"+
			`call: corpus_answer {"answer":"One.","evidence":[{"source":%q,"from":0,"to":3,"quote":"one"}]}`, site.URL, site.URL)).CombinedOutput()
		if (err == nil) != fine || (fetched.Load() == 1) != fine || fine != strings.Contains(string(out), "| One.") {
			t.Errorf("%s: %v, fetched %d times\n%s", rules, err, fetched.Load(), out)
		}
	}
}

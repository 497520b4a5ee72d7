package oracle

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/session"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// TestPage uses the web page as a person does, in a real browser: at a desk and, for open questions, on a phone.
func TestPage(t *testing.T) {
	w := newWeb(t)
	p := w.open(desktop)
	p.see("No sessions yet")
	p.key("c")
	p.say("textarea[name=prompt]", `call: write_file {"path": "a.txt", "content": "one"}`)
	p.shot("new")
	p.press("button", "Begin")
	p.see("write_file asks", "+one")
	p.shot("asks")
	first := p.path()

	small := w.open(phone)
	small.see("waiting 1")
	small.press("nav a", "Inbox")
	small.see("write_file asks to change", "+one", "Yes, and don't ask again for")
	small.shot("phone-inbox")
	small.press("button", "Yes")
	small.see("Nothing waits for you")
	p.see("— done")
	if text, err := os.ReadFile(filepath.Join(w.dir, "folder", "a.txt")); err != nil || string(text) != "one" {
		t.Errorf("%q, %v", text, err)
	}

	p.say("#message", "bash: touch c.txt"+kb.Enter)
	small.see("bash asks to run a command", "touch c.txt")
	small.say("input[name=reason]", "it takes too long")
	small.shot("phone-deny")
	small.press("button.deny", "No")
	small.see("Nothing waits for you")
	p.see("✗ bash touch c.txt", "denied")

	t.Run("a long output", func(t *testing.T) {
		p.say("#message", "bash: seq 1 5000"+kb.Enter)
		p.see("✓ bash seq 1 5000")
		ask[any](p, "[...document.querySelectorAll('summary')].filter((e) => e.innerText.includes('seq 1 5000')).at(-1).click()")
		p.see("cut", "Open whole")
		p.say(".window input", "400")
		p.when("document.querySelectorAll('.window mark').length > 0")
		p.shot("output")
		p.press("button", "Open whole")
		p.when("document.querySelector('dialog')?.open && document.querySelector('dialog pre').innerText.includes('4999')")
		p.say("dialog input", "4999")
		p.see("1 match")
		p.shot("whole")
		p.do(chromedp.KeyEvent(kb.Escape))
		p.when("document.querySelector('dialog') === null")
	})
	t.Run("steer and interrupt", func(t *testing.T) {
		p.say("#message", "delay: 30s"+kb.Enter)
		p.see("running", "Interrupt")
		p.say("#message", "Look at the tests first"+kb.Enter)
		p.see("(steered)", "not seen yet", "Look at the tests first")
		p.shot("steered")
		p.key("x")
		p.see("— cancelled")
	})
	t.Run("rewind", func(t *testing.T) {
		p.press("button", "Rewind")
		p.see("Rewind to before")
		p.press("button", "call: write_file")
		p.see("Files that change", "a.txt")
		p.shot("rewind")
		p.press(".rewind button.deny", "Rewind")
		p.miss("Rewind to before")
		p.press("button", "Show 20 items")
		p.when("document.querySelectorAll('li.gone').length === 20")
		if _, err := os.Stat(filepath.Join(w.dir, "folder", "a.txt")); !os.IsNotExist(err) {
			t.Errorf("a.txt is still there: %v", err)
		}
		p.shot("rewound")
	})
	t.Run("fork", func(t *testing.T) {
		p.say("#message", "say: the left way"+kb.Enter)
		p.see("the left way", "Fork")
		p.press("li.reply:not(.gone) button", "Fork")
		p.when("location.pathname !== " + fmt.Sprintf("%q", first))
		p.see("Fork of", "the left way")
		p.say("#message", "say: the right way"+kb.Enter)
		p.see("the right way")
	})
	t.Run("search", func(t *testing.T) {
		p.key("/")
		p.when("document.activeElement.id === 'search'")
		ask[any](p, "document.activeElement.value = ''") // a driven browser still types the key
		p.say("#search", "RIGHT way"+kb.Enter)
		p.see("“RIGHT way”")
		p.shot("search")
		p.press(".hits a span", "say: the right way")
		p.when("document.querySelector('li.marked')?.innerText.includes('the right way')")
	})
	t.Run("compare", func(t *testing.T) {
		p.key("b")
		p.when("document.querySelectorAll('input[type=checkbox]').length === 2")
		for i := range 2 {
			ask[any](p, fmt.Sprintf("document.querySelectorAll('input[type=checkbox]')[%d].click()", i))
		}
		p.shot("board")
		p.press("a.button", "Compare")
		p.see("Files changed", "the left way", "the right way")
		p.shot("compare")
	})
	t.Run("trace and cost", func(t *testing.T) {
		p.visit(first + "/trace")
		p.see("What came of it", "write_file")
		p.shot("trace")
		p.press("nav a", "Cost")
		p.see("All causes", "Total")
		p.shot("cost")
	})
	t.Run("kill -9", func(t *testing.T) {
		p.visit(first)
		p.say("#message", "bash: touch survived"+kb.Enter)
		p.see("bash asks")
		ask[any](p, "window.same = true")
		w.kill()
		p.see("Trying again.")
		p.shot("lost")
		w.start()
		p.miss("Trying again.")
		p.see("bash asks")
		p.when("document.querySelector('button.allow:not([disabled])') !== null")
		p.key("y")
		p.see("✓ bash touch survived")
		if !ask[bool](p, "window.same === true") {
			t.Error("the page was loaded again")
		}
	})
}

// evalSuite is a suite of two tasks, one of which waits until its workspace has a file.
func (w *web) evalSuite() string {
	w.t.Helper()
	suite := filepath.Join(w.dir, "suite")
	for name, text := range map[string]string{
		"slow/task.toml": "", "slow/instruction.md": "bash: while ! test -f go; do sleep 0.05; done", "slow/check/run.sh": "exit 0\n",
		"wrong/task.toml": "", "wrong/instruction.md": "say: hi", "wrong/check/run.sh": "exit 3\n",
	} {
		at := filepath.Join(suite, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			w.t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			w.t.Fatal(err)
		}
	}
	return suite
}

// TestPageSaysWhySignInFails checks that the sign-in form says so, for a code and for a token.
func TestPageSaysWhySignInFails(t *testing.T) {
	w := newWeb(t)
	p := w.open(phone)
	p.press("button", "Sign out")
	p.see("paste a token")
	p.visit("/inbox#code=inspan-code-used")
	p.see("This code was used or has expired. Run 'inspan web' on the server for a new one.")
	p.say("input[name=token]", "wrong"+kb.Enter)
	p.see("The server does not know this token.")
	p.miss("This code was used")
}

// TestPageShowsEvaluations follows a run of an evaluation on the board and on its own page, to its end.
func TestPageShowsEvaluations(t *testing.T) {
	w := newWeb(t)
	p := w.open(desktop)
	run := w.command("eval", "run", w.evalSuite(), "--model=script", "--mode=auto", "--jobs=2", "--budget=3")
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = run.Process.Kill(), run.Wait() })
	p.see("Evaluations", "▸ running", "✗ 1 failed", "▸ 1 running", "of 2 trials", "of $3.00")
	p.shot("evals")
	p.press("section a", "suite")
	p.see("Evaluation of suite", "▸ running", "✗ failed", "the check says no")
	p.shot("eval")
	id := strings.TrimPrefix(p.path(), "/eval/")
	dirs, err := filepath.Glob(filepath.Join(os.TempDir(), "inspan-eval-"+id, "slow-1-*", "work"))
	if err != nil || len(dirs) != 1 {
		t.Fatalf("%v %v", dirs, err)
	}
	if err := os.WriteFile(filepath.Join(dirs[0], "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	p.see("✓ over", "✓ passed", "1 passed")
	p.miss("running")
	p.press("td a", "✗ failed")
	p.see("hi", "— done")
}

// TestPageShowsTheTeam checks that a person sees the members and the tasks of a session, speaks to a member, and hands over
// a task.
func TestPageShowsTheTeam(t *testing.T) {
	w := newWeb(t)
	p := w.open(desktop)
	w.post("/api/v1/tasks", map[string]any{
		"prompt": `call: spawn_agent {"name":"scout","task":"say: the parser is in parse.go"}` + "\n" +
			`call: spawn_agent {"name":"painter","background":true,"task":"bash: touch painted"}` + "\n" +
			`call: team {"action":"add_task","text":"Paint the parser","check":"make paint"}` + "\n" +
			`call: team {"action":"add_task","text":"Write it down","after":["1"]}`,
		"open": true, "folder": filepath.Join(w.dir, "folder"),
	})
	p.see("waiting 1")
	p.key(kb.Enter)
	p.press(".tabs a", "Team")
	p.see("scout", "idle", "painter", "waiting", "you: bash", "0 of 2 done", "Paint the parser", "make paint", "waits for 1")
	p.shot("team")
	p.press("button", "Message")
	p.say(".team textarea", "say: hello")
	p.shot("team-message")
	p.press(".team button", "Send")
	p.when("document.querySelector('.team textarea') === null")
	ask[any](p, "const s = document.querySelector('.team select'); s.value = [...s.options].find((o) => o.text === 'scout').value; s.dispatchEvent(new Event('change'))")
	p.press(".team a", "scout")
	p.see("say: hello", "Task 1 is for you")
	p.press("main a", "the team")
	p.see("0 of 2 done")
	small := w.open(phone)
	small.visit(p.path())
	small.see("0 of 2 done")
	small.shot("phone-team")
}

// TestPageDecidesWhatWasSeen checks that a key which was meant for a question counts for no other that takes its place.
func TestPageDecidesWhatWasSeen(t *testing.T) {
	w := newWeb(t)
	p := w.open(desktop)
	begin := func(name string) {
		w.post("/api/v1/tasks", map[string]any{"prompt": "bash: touch " + name, "open": true, "folder": filepath.Join(w.dir, "folder")})
		p.see(name)
	}
	p.key("i")
	begin("first")
	begin("second")
	p.when("document.querySelectorAll('button.allow:not([disabled])').length === 4")
	shown := ask[string](p, "document.querySelector('.question.selected pre').innerText")
	other := "second"
	if strings.Contains(shown, other) {
		other = "first"
	}
	// Someone else decides, and the person's key comes when the other question has moved up.
	ask[any](p, `new Promise((done) => {
		new MutationObserver((_, seen) => {
			if (!document.querySelector(".question.selected pre").innerText.includes("`+other+`")) return;
			seen.disconnect();
			document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "y", bubbles: true }));
			done();
		}).observe(document.getElementById("main"), { subtree: true, childList: true, attributes: true, characterData: true });
		[...document.querySelectorAll(".question.selected button.deny")].at(-1).click();
	})`)
	p.when("document.querySelectorAll('button.allow:not([disabled])').length === 2")
	if _, err := os.Stat(filepath.Join(w.dir, "folder", other)); err == nil {
		t.Errorf("%s was allowed by a key for the other question", other)
	}
	p.key("y")
	p.see("Nothing waits for you")
}

// TestPageMarksOneQuestion checks that the mark stays with its question when others come and go, and that keys decide
// nothing once someone else has decided the question.
func TestPageMarksOneQuestion(t *testing.T) {
	w := newWeb(t)
	p := w.open(desktop)
	begin := func(prompt string) {
		w.post("/api/v1/tasks", map[string]any{"prompt": prompt, "open": true, "folder": filepath.Join(w.dir, "folder")})
	}
	exists := func(name string) bool {
		_, err := os.Stat(filepath.Join(w.dir, "folder", name))
		return err == nil
	}
	p.key("i")
	begin("delay: 3s\nbash: touch older") // its session is older, and asks later
	begin("bash: touch marked")
	p.see("touch marked")
	p.see("touch older")
	p.when("document.querySelectorAll('button.allow:not([disabled])').length === 4")
	if first := ask[string](p, "document.querySelector('.question pre').innerText"); !strings.Contains(first, "marked") {
		t.Errorf("a new question stands above the one that a person looks at: %s", first)
	}
	q := ask[map[string]any](p, `import("/page/app.js").then(({ app }) => app.board.inbox.find((q) => q.call.includes("touch marked")))`)
	w.post("/api/v1/sessions/"+q["session"].(string)+"/events",
		map[string]any{"kind": "decided", "body": map[string]any{"call": q["id"], "question": q["seq"], "allow": false}})
	p.when("document.querySelectorAll('button.allow:not([disabled])').length === 2")
	p.key("y")
	p.key("j")
	p.when("document.querySelector('.question.selected') !== null")
	if exists("older") || exists("marked") {
		t.Error("a key has decided a question that nobody had marked")
	}
	p.key("y")
	p.see("Nothing waits for you")

	begin("bash: echo " + strings.Repeat("lorem ", 2000) + "; touch end")
	p.see("characters are not shown", "touch end")
	p.shot("long-question")
	p.when("document.querySelector('button.allow[disabled]') !== null && !document.querySelector('button.deny').disabled")
	p.key("y")
	p.press("button", "Show all of it")
	p.miss("characters are not shown")
	if exists("end") {
		t.Error("a call was allowed of which a part was not shown")
	}
	ask[any](p, "document.querySelector('button.allow').scrollIntoView()")
	p.press("button", "Yes")
	p.see("Nothing waits for you")
}

// TestPageIsAccessible has axe-core look at every view, in light and in dark and on a phone.
func TestPageIsAccessible(t *testing.T) {
	chromium(t)
	axe, err := os.ReadFile(filepath.Join(testkit.Dir(t), "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Skip("SKIPPED: axe-core is not installed: ", err)
	}
	w := newWeb(t)
	p := w.open(desktop)
	before := "package b\n\n// F is two.\nfunc F() (string, int) { return \"two\", 2 }\n"
	if err := os.WriteFile(filepath.Join(w.dir, "folder", "b.go"), []byte(before), 0o644); err != nil {
		t.Fatal(err)
	}
	w.post("/api/v1/tasks", map[string]any{
		"prompt": `read: b.go` + "\n" + `call: todo {"items":[{"text":"one","state":"doing"}]}` + "\nreason: hm\n" +
			`call: write_file {"path":"b.go","content":"package b\n\n// F is one.\nfunc F() (string, int) { return \"one\", 1 }\n"}`,
		"open":   true,
		"folder": filepath.Join(w.dir, "folder"),
	})
	p.see("waiting 1")
	p.key(kb.Enter)
	p.see("write_file asks")
	session := p.path()
	if out, err := w.command("eval", "run", w.evalSuite(), "--model=script", "--mode=auto", "--task=wrong").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	runs, err := filepath.Glob(filepath.Join(w.dir, "state", "evals", "*", "run.json"))
	if err != nil || len(runs) != 1 {
		t.Fatalf("%v %v", runs, err)
	}
	for _, path := range []string{
		"/", "/inbox", "/new", "/search?text=one", session, session + "/trace", session + "/cost", session + "/team", "/nowhere", "/compare/" + id(session) + "/" + id(session),
		"/eval/" + filepath.Base(filepath.Dir(runs[0])),
	} {
		p.visit(path)
		p.when("document.querySelector('h1') && !document.body.innerText.includes('Loading …')")
		ask[any](p, string(axe)+";0")
		for _, scheme := range []string{"light", "dark"} {
			p.scheme(scheme)
			found := ask[[]struct {
				ID     string `json:"id"`
				Impact string `json:"impact"`
				Help   string `json:"help"`
				Nodes  []struct {
					HTML string `json:"html"`
				} `json:"nodes"`
			}](p, "axe.run().then((r) => r.violations)")
			for _, v := range found {
				t.Errorf("%s, %s: %s (%s): %v", path, scheme, v.Help, v.Impact, v.Nodes)
			}
		}
	}
}

func id(path string) string { return strings.TrimPrefix(path, "/s/") }

// TestPageStaysSmooth opens a session of 10,000 events. The page shows its end at once, and loads the rest on request.
// A redraw touches only elements that have changed.
func TestPageStaysSmooth(t *testing.T) {
	w := newWeb(t)
	p := w.open(desktop)
	sessions := &session.Store{Dir: filepath.Join(w.dir, "state", "sessions")}
	log, err := sessions.Create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	events := []event.Body{
		event.Opened{Format: 1, App: "inspan", Root: w.dir},
		event.Switched{Route: "script/commands", Mode: "ask"},
		event.Said{Parts: llm.Say("Count")},
	}
	for n := 0; len(events) < 9_999; n++ {
		call := llm.Call{ID: fmt.Sprint("c", n), Name: "bash", Args: []byte(fmt.Sprintf(`{"command":"echo %d"}`, n))}
		events = append(events, event.Asked{}, event.Replied{Parts: llm.Parts{llm.Text{Text: fmt.Sprintf("Number **%d**.", n)}, call}, Stop: llm.StopCalls},
			event.Judged{Call: call.ID, Action: tool.Allow}, event.Started{Call: call.ID},
			event.Ended{Call: call.ID, Outcome: event.OutcomeOK, Parts: llm.Say(strings.Repeat("line\n", 100))})
	}
	events = append(events, event.Stopped{Reason: event.ReasonDone})
	if err := log.Lease(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := log.AppendAs(t.Context(), event.Driver{}, events...); err != nil {
		t.Fatal(err)
	}
	p.visit("/s/" + log.ID())
	p.see("Number 1999.", "Show earlier")
	if items := ask[int](p, "document.querySelectorAll('.transcript > li').length"); items != 200 {
		t.Errorf("%d items are shown at first", items)
	}
	draw := `import("/page/app.js").then(async ({ update }) => {
		const changes = [], took = [];
		const seen = new MutationObserver((list) => changes.push(...list));
		seen.observe(document.querySelector(".transcript"), { subtree: true, childList: true, attributes: true, characterData: true });
		for (let i = 0; i < 50; i++) {
			const began = performance.now();
			update();
			await null; await null;
			took.push(performance.now() - began);
		}
		await new Promise((done) => setTimeout(done));
		if (changes.length) throw new Error(changes.length + " changes where nothing has changed");
		return took.sort((a, b) => a - b)[25];
	})`
	t.Logf("drawn in %.2f ms with 200 items", ask[float64](p, draw))
	p.visit("/s/" + log.ID() + "#6")
	p.when("document.querySelector('.marked')?.innerText.includes('echo 0')")
	t.Logf("drawn in %.2f ms with all %d", ask[float64](p, draw), ask[int](p, "document.querySelectorAll('.transcript > li').length"))
	p.see("Number 0.")
	p.shot("long")
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
}

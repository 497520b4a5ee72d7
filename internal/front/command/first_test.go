package command

import (
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/internal/testkit/ollamatest"
	"github.com/inspan/inspan/internal/testkit/openaitest"
	"github.com/inspan/inspan/llm"
)

var pictures = flag.String("frames", "", "write what the terminal shows in the first minutes to this folder")

// mostMinutes bounds a newcomer's first minutes, without the time for reading and thinking.
const mostMinutes = 5 * time.Minute

// first is a newcomer in a terminal, with an empty home and one file.
type first struct {
	*terminal
	home  home
	name  string // of the pictures
	began time.Time
}

const greeting = "good day\n"

func newcomer(t *testing.T, name string) first {
	h := newHome(t, "http://unused.invalid")
	if err := os.Remove(filepath.Join(h.dir, "config", "config.toml")); err != nil {
		t.Fatal(err)
	}
	f := first{newTerminal(t, h, 80, 24), h, name, time.Now()}
	f.keeps("greeting.txt", greeting)
	return f
}

// keeps writes a file of the workspace.
func (f first) keeps(name, text string) {
	f.t.Helper()
	if err := os.WriteFile(filepath.Join(f.home.work, name), []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// holds waits until the greeting is some text.
func (f first) holds(want string) {
	f.t.Helper()
	testkit.WaitFor(f.t, "the greeting to be "+want, func() bool {
		now, err := os.ReadFile(filepath.Join(f.home.work, "greeting.txt"))
		return err == nil && string(now) == want
	})
}

// picture keeps the screen of the terminal, for scripts/firstrun.
func (f first) picture(of string) {
	f.t.Helper()
	if *pictures == "" {
		return
	}
	path := filepath.Join(*pictures, f.name+"-"+of+".txt")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(f.Tmux("capture-pane", "-p", "-e"), "\x1b", "^[")), 0o644); err != nil {
		f.t.Fatal(err)
	}
}

// editsAndUndoes continues from an edit that asks: it is approved, inspected and undone.
func (f first) editsAndUndoes(after string) {
	f.t.Helper()
	f.Shows("? edit_file asks", "1 - good day", "1 + good morning", "1 Yes (y)", "or say what to do instead")
	f.holds(greeting)
	f.picture("3-approval")
	f.Keys("y")
	if screen := f.Shows("1 + good morning", after+"\n■ done"); strings.Contains(screen, "--- greeting.txt") {
		f.t.Errorf("the change is shown twice:\n%s", screen)
	}
	f.holds("good morning\n")
	f.idles()
	f.picture("4-edited")
	f.Types("/undo")
	f.Shows("rewind? 'inspan rewind --redo' brings it back", "greeting.txt gets its content back", "y yes")
	f.Keys("y")
	f.Shows("1 file was restored: greeting.txt")
	f.holds(greeting)
	f.picture("5-undone")
	f.Types("/diff")
	f.Shows("nothing has changed a file, or all changes were undone")
	f.Keys("C-d")
	f.Shows("continue with: inspan resume ")
	f.Prompts()
	if took := time.Since(f.began); took > mostMinutes {
		f.t.Errorf("it took %v", took)
	}
}

// TestFirstMinutes plays a newcomer's first steps, in a real terminal with an empty home: the set-up, the first
// message, an approved edit, and its undo.
func TestFirstMinutes(t *testing.T) {
	t.Run("server", firstWithServer)
	t.Run("address", firstWithAddress)
	t.Run("offline", firstOffline)
}

// firstWithServer has an Ollama that is found. Afterwards it is gone, which is said before a message
// is lost on it.
func firstWithServer(t *testing.T) {
	judged := &ollamatest.Server{Models: []llm.Info{{Model: "qwen3-coder", Window: 32_768}}, Answer: mends}
	judged.Sit(t)
	server := httptest.NewServer(judged)
	defer server.Close()
	f := newcomer(t, "server")
	f.Types("export OLLAMA_HOST=" + server.URL + "; clear; inspan")
	f.Shows("Which model should inspan use?", "› 1 ollama", "runs at "+server.URL+", 1 model", "Enter selects, Esc goes back")
	f.picture("1-setup")
	f.Keys("Enter")
	f.Shows("› ollama\n", `Set model = "ollama/qwen3-coder"`, "say what to do", "ollama/qwen3-coder · ask")
	f.picture("2-ready")
	f.Types("Say good morning in greeting.txt")
	f.editsAndUndoes("It says good morning now.")
	server.Close()
	f.Types("clear; inspan")
	f.Shows("ollama does not answer, see /status · ollama/qwen3-coder · ask")
	f.picture("6-gone")
	f.Types("/status")
	f.Shows("ollama does not answer: no server listens at ", "'ollama serve'")
	f.Keys("C-d")
}

// firstWithAddress has a server that nothing names but its address. Its window is asked of it.
func firstWithAddress(t *testing.T) {
	address := openaitest.Start(t, &openaitest.Server{Models: []llm.Info{{Model: "qwen", Window: 40_960}}, Dialect: "llamacpp", Answer: mends})
	f := newcomer(t, "address")
	f.Types("export OLLAMA_HOST=127.0.0.1:1; clear; inspan")
	f.Shows("Which model should inspan use?", "Another server", "Enter selects, Esc goes back")
	f.Writes(address)
	f.Shows("Enter takes what you typed")
	f.Keys("Enter")
	f.Shows("Found llamacpp at "+address+" with 1 model.", `Set model = "local/qwen"`, "The model has a window of 40,960 tokens.", "local/qwen · ask")
	f.Types("Say good morning in greeting.txt")
	f.editsAndUndoes("It says good morning now.")
}

// TestSetupWithArrows moves in the list, types a number and part of a name, and goes back.
func TestSetupWithArrows(t *testing.T) {
	t.Parallel()
	two := []llm.Info{{Model: "first"}, {Model: "second"}}
	address := openaitest.Start(t, &openaitest.Server{Models: two})
	f := newcomer(t, "arrows")
	settings := "[providers.near]\nbase_url = '" + address + "'\n"
	if err := os.WriteFile(filepath.Join(f.home.dir, "config", "config.toml"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	const list = "Choose one, or type a provider"
	set := func() {
		t.Helper()
		f.Clears()
		f.Types("export OLLAMA_HOST=127.0.0.1:1; inspan setup")
		f.Shows(list, "› 1 ")
	}
	set()
	f.Keys("Escape")
	f.Shows("Nothing was changed.")
	f.Clears()
	f.Types("inspan acp --setup || echo it ended with $?") // as an editor starts it
	f.Shows(list, "› 1 ")
	f.Keys("Escape")
	f.Shows("it ended with 130")
	set()
	f.Writes("near")
	f.Keys("Enter")
	f.Shows("Choose a model of near", "› 1 first")
	f.Keys("Down")
	f.Shows("› 2 second")
	f.Keys("Enter")
	f.Shows("› second\n", `Set model = "near/second"`, "assumes 64,000")
	set()
	f.Writes("near")
	f.Keys("Enter")
	f.Shows("Choose a model of near")
	f.Types("1")
	f.Shows("› first\n", `Set model = "near/first"`)
	f.Clears()
	f.Types("inspan models | grep near/")
	f.Shows("near/first   64000, assumed")
	f.Types("inspan context | grep -o 'of a window.*assumed)'")
	f.Shows("of a window of 64,000 (assumed)")
	f.Clears()
	f.Types("TERM=dumb inspan setup") // no arrows there
	f.Shows("Number or name, or the address of a server (Enter: stop):")
	f.Types("near/second")
	f.Shows(`Set model = "near/second"`)
}

// TestFirstImport has a key in the environment and a home of Claude Code, which is offered once.
func TestFirstImport(t *testing.T) {
	t.Parallel()
	f := newcomer(t, "import")
	if err := os.MkdirAll(filepath.Join(f.home.dir, ".claude"), 0o700); err != nil {
		t.Fatal(err)
	}
	theirs := `{"model": "opus", "permissions": {"defaultMode": "plan"}}`
	if err := os.WriteFile(filepath.Join(f.home.dir, ".claude", "settings.json"), []byte(theirs), 0o600); err != nil {
		t.Fatal(err)
	}
	f.Types("export ANTHROPIC_API_KEY=sk-ant-0123456789abcdef; clear; inspan")
	f.Shows("Found files of Claude Code.", "› 1 Yes   import: write 2 items", "2 Show", "3 No ")
	f.Keys("Down")
	f.Shows("› 2 Show")
	f.Keys("Enter")
	f.Shows("translated  model opus → model = opus", "› 1 Yes")
	f.Keys("y", "Enter")
	f.Shows("Wrote 2 items", "say what to do", "opus · plan")
	f.Keys("C-d")
	f.Clears()
	f.Types("rm $INSPAN_CONFIG_DIR/config.toml; inspan")
	f.Shows("say what to do", " · ask")
	if screen := f.All(); strings.Contains(screen, "Found files of") {
		t.Errorf("it is offered again:\n%s", screen)
	}
	f.Keys("C-d")
}

// mends is a model that reads the greeting, changes it, and says so.
func mends(_ *http.Request, body []byte) ollamatest.Answer {
	var asked struct {
		Messages []struct{ Role string }
	}
	if err := json.Unmarshal(body, &asked); err != nil {
		return ollamatest.Answer{Status: http.StatusBadRequest, Message: err.Error()}
	}
	results := 0
	for _, m := range asked.Messages {
		if m.Role == "tool" {
			results++
		}
	}
	usage := llm.Usage{Input: 5_000, Output: 20}
	switch results {
	case 0:
		return ollamatest.Answer{Parts: llm.Parts{llm.Call{Name: "read_file", Args: json.RawMessage(`{"path":"greeting.txt"}`)}}, Usage: usage}
	case 1:
		edit := json.RawMessage(`{"path":"greeting.txt","edits":[{"old_string":"good day","new_string":"good morning"}]}`)
		return ollamatest.Answer{Parts: llm.Parts{llm.Call{Name: "edit_file", Args: edit}}, Usage: usage}
	}
	return ollamatest.Answer{Parts: llm.Say("It says good morning now."), Usage: usage}
}

// firstOffline has neither a key nor a server nor a network.
func firstOffline(t *testing.T) {
	f := newcomer(t, "offline")
	f.Types("export OLLAMA_HOST=127.0.0.1:1; clear; inspan")
	f.Shows("Which model should inspan use?", "Offline script", "not an AI", "Enter selects, Esc goes back")
	f.picture("1-setup")
	f.Types("offline script")
	f.Shows(`Set model = "script/commands"`, "The offline script is not an AI", "say what to do", "script/commands · ask")
	f.picture("2-ready")
	f.Types("hello")
	f.Shows("This is the offline model, not an AI.", "bash: COMMAND        run a command", "■ done")
	f.idles()
	f.Writes("read: greeting.txt")
	f.Keys("C-j")
	f.Types(`call: edit_file {"path":"greeting.txt","edits":[{"old_string":"good day","new_string":"good morning"}]}`)
	f.editsAndUndoes("Done: 2 steps.")
}

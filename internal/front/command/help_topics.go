package command

import (
	"strings"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/front/console"
)

// helpTopic is a topic of 'inspan help' that is not a command.
type helpTopic struct{ name, says, text string }

func helpTopics() []helpTopic {
	return []helpTopic{
		{"modes", "what runs without a question", console.ModesHelp() + "\n\n" +
			"Choose one for a run, for all new sessions, or with Shift-Tab in the terminal:\n" +
			"  inspan --mode edit\n" +
			"  inspan config set mode edit\n\n" +
			"Without a terminal, calls that would ask are denied.\n" +
			"This shows the verdict on a command in a mode, and runs nothing:\n" +
			"  inspan policy explain --mode edit 'git push'"},
		{"permissions", "rules, approvals and trust", "The mode decides what runs without a question, and rules make exceptions.\n" +
			"Deny beats ask, and ask beats allow.\n\n" +
			"A rule names a tool or an effect, and its object:\n" +
			"  bash(go test *)      command lines with this beginning\n" +
			"  read(secrets/**)     reading files below a folder\n" +
			"  network(*.go.dev)    connections to hosts\n" +
			"  edits                changes of files in the workspace\n\n" +
			"Set them with --allow, --ask and --deny for a run, or in your settings. A project can only add ask and deny.\n" +
			"When inspan asks, you can allow a call once, or a rule for the session, the project or always.\n" +
			"  inspan config set --add allow 'bash(go test *)'\n" +
			"  inspan policy rules                 # those in force, and where they are from\n" +
			"  inspan policy explain 'rm -r tmp'   # the verdict on a command\n" +
			"  inspan policy forget 'RULE'         # take an approval back\n\n" +
			"Hooks, tools and servers of a folder run only once you have read and trusted them:\n" +
			"  inspan trust"},
		{"models", "how a model is chosen and named", "A model is called PROVIDER/MODEL, such as anthropic/claude-sonnet-5-5 or ollama/qwen3-coder.\n\n" +
			"  inspan setup                        # choose one: store a key, log in, or name a server's address\n" +
			"  inspan models                       # which providers are ready\n" +
			"  inspan models openrouter            # the models of one\n" +
			"  inspan --model ollama/qwen3-coder   # for this session\n" +
			"  inspan config set model ollama/qwen3-coder\n\n" +
			"A key in a variable such as ANTHROPIC_API_KEY comes before one that inspan keeps.\n" +
			"A context window that the settings, the price book and the server don't state is assumed to be 64,000 tokens:\n" +
			"  inspan config set providers.ollama.models.qwen3-coder.window 32768\n" +
			"The model script/commands is not an AI: it follows commands that you type, offline, to try inspan:\n" +
			"  inspan run --model script \"bash: ls\""},
		{"sandbox", "what commands can reach", "In every mode but yolo, commands run in a sandbox: no secrets, no network, and no changes outside the workspace.\n" +
			"Whatever needs more asks first, and shows the command line. A command that only reads can't write at all.\n\n" +
			"  inspan doctor sandbox                # try to escape from it on this machine\n" +
			"  inspan run --container IMAGE \"...\"   # run each command in a container\n" +
			"  inspan config set sandbox.memory_mb 4096\n" +
			"  inspan config get sandbox.container\n\n" +
			"On Linux it needs kernel 5.12 or later. The one for macOS has never been tried on a Mac. On Windows inspan starts no process.\n" +
			"docs/SECURITY.md lists each promise and its test."},
		{"sessions", "how work is kept, found and continued", "A session is a log of all messages, calls and results. It survives a crash, so you can continue any session.\n" +
			"A unique part of its ID is enough, and last is the last one of this folder.\n\n" +
			"  inspan --continue                   # continue the last one here, in the terminal\n" +
			"  inspan resume ID \"what to do next\"\n" +
			"  inspan board                        # all of them, waiting ones first\n" +
			"  inspan sessions list\n" +
			"  inspan show ID                      # the state of one, and views of it\n" +
			"  inspan logs ID                      # the whole transcript\n" +
			"  inspan rewind ID                    # files and conversation back to an earlier message\n" +
			"  inspan sessions prune --days 90     # list older ones; --yes deletes them"},
		{"exit-codes", "exit codes of run, resume, logs -f and attach", exitHelp()},
	}
}

func topicNames() (names []string) {
	for _, topic := range helpTopics() {
		names = append(names, topic.name)
	}
	return names
}

// exitHelp lists the exit codes.
func exitHelp() string {
	var b strings.Builder
	b.WriteString("Exit codes:\n")
	w := text.NewTable(&b)
	for _, row := range console.Codes() {
		w.Row("  "+row[0], row[1])
	}
	_ = w.Flush() // into memory
	return b.String() + "\nFrom 20 on the run ended as \"failed\", and the code names the cause.\n" +
		"With --output json the result object has the same reason and code; see docs/OUTPUT.md."
}

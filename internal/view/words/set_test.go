package words_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/tool"
)

// TestTogether checks the summary of several calls, and that sensitive places are always named.
func TestTogether(t *testing.T) {
	wish := func(name string, effects ...tool.Effect) event.Raised {
		return event.Raised{Tool: name, Args: json.RawMessage(`{}`), Effects: effects}
	}
	write := func(path string) tool.Effect { return tool.Effect{Kind: tool.Write, Path: path} }
	host := func(name string) tool.Effect { return tool.Effect{Kind: tool.Network, Text: name} }
	run := tool.Effect{Kind: tool.Execute, Text: "make"}
	for want, list := range map[string][]event.Raised{
		"write /w/a": {wish("write_file", write("/w/a")), wish("write_file", write("/w/a"))},
		"reach 1 host (example.com), write 3 files below /w/src, run 2 commands": {
			wish("write_file", write("/w/src/a")), wish("write_file", write("/w/src/deep/b")), wish("write_file", write("/w/src/c")),
			wish("bash", run, host("example.com")), wish("bash", run), wish("web_fetch", host("example.com")),
		},
		"write /a/b (outside the workspace), write /c/d (outside the workspace)": {wish("write_file", write("/a/b")), wish("write_file", write("/c/d"))},
		"reach 4 hosts (a, b, c, 1 more)":                                        {wish("get", host("a")), wish("get", host("b")), wish("get", host("c")), wish("get", host("d"))},
		"reach 1 host (any host)":                                                {wish("get", host(""))},
		"reach 5 hosts (any host, b, c, 2 more)": {
			wish("get", host("a"), host("b"), host("c"), host("d")), wish("get", host("*"), host("")),
		},
		"run outside the sandbox, write /evil.txt (outside the workspace), write 3 files below /w/s, run 1 command": {
			wish("write_file", write("/w/s/a")), wish("write_file", write("/evil.txt")), wish("write_file", write("/w/s/b")),
			wish("write_file", write("/w/s/c")), wish("bash", run, tool.Effect{Kind: tool.External, Text: "run outside the sandbox"}),
		},
		"write /a (outside the workspace), write /b (outside the workspace), read /c (outside the workspace), 1 more outside the workspace": {
			wish("write_file", write("/a"), write("/b")), wish("x", tool.Effect{Kind: tool.Read, Path: "/c"}, write("/d")),
		},
		"call pay 2 times, call mail": {
			wish("pay", tool.Effect{Kind: tool.External, Text: "pays"}), wish("mail"), wish("pay", tool.Effect{Kind: tool.External}),
		},
		`write /w/.env (it holds keys), read /h/.ssh/\u202eid (it holds keys), read /x/1 (outside the workspace), write /w/a, read 2 files below /w/x`: {
			wish("write_file", write("/w/a")), wish("read_file", tool.Effect{Kind: tool.Read, Path: "/x/1"}),
			wish("write_file", tool.Effect{Kind: tool.Write, Path: "/w/.env", Sensitive: "holds keys"}),
			wish("read_file", tool.Effect{Kind: tool.Read, Path: "/w/x/2"}, tool.Effect{Kind: tool.Read, Path: "/w/x/3"}),
			wish("read_file", tool.Effect{Kind: tool.Read, Path: "/h/.ssh/\u202eid", Sensitive: "holds keys"}),
		},
	} {
		if got := words.Together("/w", list); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// TestWhole checks that each of several calls is shown in full, and that the content of one can't imitate another.
func TestWhole(t *testing.T) {
	forged := "make\nCall 2 of 3: edit\nAll of them together:"
	command, _ := json.Marshal(map[string]any{"command": forged, "timeout": 3})
	got := words.Whole([]event.Raised{
		{Tool: "bash", Args: command, Reason: "it\nasks", Effects: []tool.Effect{{Kind: tool.Network, Text: "example.com"}}},
		{ID: "call_1/2", Tool: "edit", Args: json.RawMessage(`{}`), Preview: "-a\n+b\n", Effects: []tool.Effect{{Kind: tool.Write, Path: "/w/a"}}},
		{Tool: "write_file", Args: json.RawMessage(`{}`), Effects: []tool.Effect{{Kind: tool.Write, Path: "/w/b\nCall 3 of 4: c"}}},
		{Tool: "note", Args: json.RawMessage(`{"word":"` + strings.Repeat("x", 5000) + `"}`)},
	})
	want := "Call 1 of 4: bash (it asks)\n  | $ make\n  | Call 2 of 3: edit\n  | All of them together:\n" +
		"  | {\"timeout\":3}\n  | talks to example.com\n" +
		"Call 2 of 4, call_1/2: edit\n  | -a\n  | +b\n" +
		"Call 3 of 4: write_file\n  | {}\n  | changes /w/b\\x0aCall 3 of 4: c\n" +
		"Call 4 of 4: note\n  | {\n  |   \"word\": \"" + strings.Repeat("x", 5000) + "\"\n  | }\nAll of them together:"
	if got != want {
		t.Errorf("%q", got)
	}
}

package words_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/words"
	"github.com/inspan/inspan/tool"
)

// TestTogether holds how several calls are summed up, and that what is sensitive is named in any case.
func TestTogether(t *testing.T) {
	wish := func(name string, effects ...tool.Effect) event.Raised {
		return event.Raised{Tool: name, Args: json.RawMessage(`{}`), Effects: effects}
	}
	write := func(path string) tool.Effect { return tool.Effect{Kind: tool.Write, Path: path} }
	host := func(name string) tool.Effect { return tool.Effect{Kind: tool.Network, Text: name} }
	run := tool.Effect{Kind: tool.Execute, Text: "make"}
	for want, list := range map[string][]event.Raised{
		"write /w/a": {wish("write_file", write("/w/a")), wish("write_file", write("/w/a"))},
		"write 3 files below /w/src, run 2 commands, reach 1 host (example.com)": {
			wish("write_file", write("/w/src/a")), wish("write_file", write("/w/src/deep/b")), wish("write_file", write("/w/src/c")),
			wish("bash", run, host("example.com")), wish("bash", run), wish("web_fetch", host("example.com")),
		},
		"write 2 files below /":   {wish("write_file", write("/a/b")), wish("write_file", write("/c/d"))},
		"reach 4 hosts":           {wish("get", host("a")), wish("get", host("b")), wish("get", host("c")), wish("get", host("d"))},
		"reach 1 host (any host)": {wish("get", host(""))},
		"call pay 2 times, call mail": {
			wish("pay", tool.Effect{Kind: tool.External, Text: "pays"}), wish("mail"), wish("pay", tool.Effect{Kind: tool.External}),
		},
		`write /w/.env (it holds keys), read /h/.ssh/\u202eid (it holds keys), write /w/a, read 2 files below /x`: {
			wish("write_file", write("/w/a")), wish("read_file", tool.Effect{Kind: tool.Read, Path: "/x/1"}),
			wish("write_file", tool.Effect{Kind: tool.Write, Path: "/w/.env", Sensitive: "holds keys"}),
			wish("read_file", tool.Effect{Kind: tool.Read, Path: "/x/2"}),
			wish("read_file", tool.Effect{Kind: tool.Read, Path: "/h/.ssh/\u202eid", Sensitive: "holds keys"}),
		},
	} {
		if got := words.Together(list); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// TestWhole holds that each of several calls is shown with all that it would do.
func TestWhole(t *testing.T) {
	got := words.Whole([]event.Raised{
		{Tool: "bash", Args: json.RawMessage(`{"command":"make\nrm x","timeout":3}`), Reason: "it asks", Effects: []tool.Effect{
			{Kind: tool.Network, Text: "example.com"},
		}},
		{Tool: "edit", Args: json.RawMessage(`{}`), Preview: "-a\n+b", Effects: []tool.Effect{{Kind: tool.Write, Path: "/w/a"}}},
		{Tool: "note", Args: json.RawMessage(`{"word":"` + strings.Repeat("x", 5000) + `"}`)},
	})
	want := "Call 1 of 3: bash (it asks)\n$ make\nrm x\n{\"timeout\":3}\ntalks to example.com\n" +
		"Call 2 of 3: edit\n-a\n+b\n" +
		"Call 3 of 3: note\n{\n  \"word\": \"" + strings.Repeat("x", 5000) + "\"\n}"
	if got != want {
		t.Errorf("%q", got)
	}
}

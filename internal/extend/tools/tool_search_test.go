package tools_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/extend/tools"
	"github.com/inspan/inspan/tool"
)

func many() []tool.Tool {
	schema := json.RawMessage(`{"type":"object","properties":{"id":{"type":"string"}}}`)
	list := []tool.Tool{
		{Name: "github_create_issue", Doc: "Opens an issue in a repository.", Schema: schema},
		{Name: "github_list_issues", Doc: "Lists the issues of a repository.", Schema: schema},
		{Name: "slackPostMessage", Doc: "Sends a message to a channel.", Schema: schema},
		{Name: "calendar_events", Doc: "Events of a day, and who sends invitations.", Schema: schema},
	}
	for i := range 1000 {
		list = append(list, tool.Tool{Name: fmt.Sprintf("sensor_%04d", i), Doc: "Reads a sensor.", Schema: schema})
	}
	return list
}

func TestToolSearch(t *testing.T) {
	search := tools.Deferred(many(), nil, nil)[0]
	for query, want := range map[string]string{
		"create an issue":               "## github_create_issue\nOpens an issue in a repository.\nArguments: {",
		"GITHUB_LIST_ISSUES":            "## github_list_issues\n",
		"post messages":                 "## slackPostMessage\n",
		"sending invitations":           "## calendar_events\n",
		"sensor_0999":                   "## sensor_0999\n",
		"sensors":                       "995 tools more",
		"sensor number 0042":            "## sensor_0042\n",
		"read the calendar of a sensor": "## calendar_events\n",
		"for the of":                    "No tool has to do with",
		"teapot":                        `No tool has to do with "teapot".`,
		"":                              `No tool has to do with "".`,
	} {
		raw, _ := json.Marshal(map[string]string{"query": query})
		res, err := search.Run(t.Context(), &tool.Call{Name: search.Name, Args: raw})
		if err != nil {
			t.Fatal(err)
		}
		text := res.Parts.Text()
		if strings.HasPrefix(want, "##") && !strings.HasPrefix(text, want) || !strings.Contains(text, want) {
			t.Errorf("%q: %.300s\nwant %s", query, text, want)
		}
	}
	if n := len(search.Doc); n > 8000 || !strings.Contains(search.Doc, "github_create_issue, ") || !strings.Contains(search.Doc, " more.") {
		t.Errorf("the description has %d bytes: %.300s", n, search.Doc)
	}
}

func TestCallToolStandsForAnother(t *testing.T) {
	call := tools.Deferred(many(), nil, nil)[1]
	for args, want := range map[string]string{
		`{"name":"sensor_0001","arguments":{"id":"x"}}`: `sensor_0001 {"id":"x"}`,
		`{"name":"sensor_0001"}`:                        `sensor_0001 {}`,
	} {
		name, inner, err := call.Resolve(t.Context(), &tool.Call{Name: call.Name, Args: json.RawMessage(args)})
		got := fmt.Sprintf("%s %s", name, inner)
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", args, got, want)
		}
	}
}

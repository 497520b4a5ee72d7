package mcptool_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inspan/inspan/internal/testkit"

	"github.com/inspan/inspan/mcptool"
	"github.com/inspan/inspan/tool"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func echo() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "echo", Version: "1"}, nil)
	s.AddTool(&sdk.Tool{Name: "echo", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "said " + string(r.Params.Arguments)}}}, nil
		})
	return s
}

// TestTools calls a server in this process and one at an address.
func TestTools(t *testing.T) {
	far := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return echo() },
		&sdk.StreamableHTTPOptions{Stateless: true}))
	defer far.Close()
	set := mcptool.Open(tool.Env{Root: t.TempDir()}, far.Client(),
		mcptool.Server{Name: "near", Dial: func(ctx context.Context) (io.ReadWriteCloser, error) {
			ours, theirs := net.Pipe()
			go func() { _ = echo().Run(ctx, &sdk.IOTransport{Reader: theirs, Writer: theirs}) }()
			return ours, nil
		}},
		mcptool.Server{Name: "far", URL: far.URL + "/mcp"})
	defer set.Close()
	if err := set.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	list := set.Tools()
	if len(list) != 2 || list[0].Name != "mcp__far__echo" || list[1].Name != "mcp__near__echo" {
		t.Fatalf("%+v", list)
	}
	for _, to := range list {
		res, err := to.Run(t.Context(), &tool.Call{Name: to.Name, Args: json.RawMessage(`{"a":1}`)})
		if err != nil || res.Parts.Text() != `said {"a":1}` || !res.Untrusted {
			t.Errorf("%s: %+v, %v", to.Name, res, err)
		}
	}
	far.CloseClientConnections()
}

func TestServersThatAreNotThere(t *testing.T) {
	set := mcptool.Open(tool.Env{}, nil, mcptool.Server{Name: "none"}, mcptool.Server{Name: "far", URL: "https://x.example"},
		mcptool.Server{Name: "program", Command: []string{"x"}})
	defer set.Close()
	err := set.Wait(t.Context())
	if err == nil || !strings.Contains(err.Error(), "none is failed: it has no command") ||
		!strings.Contains(err.Error(), "can't be reached from here") || !strings.Contains(err.Error(), "processes can't be started here") {
		t.Error(err)
	}
	if list := set.Tools(); len(list) > 0 {
		t.Errorf("%+v", list)
	}
}

package command

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/testkit/anthropictest"
	"github.com/inspan/inspan/llm"
)

// politeServer is an MCP server that ends when its input does.
const politeServer = `while read -r l; do
id=${l#*\"id\":}; id=${id%%[,\}]*}
case $l in
*'"method":"notifications/'*) ;;
*'"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}' ;;
*'"tools/call"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"content":[]}}' ;;
*'"tools/list"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[{"name":"look","inputSchema":{"type":"object"}}]}}' ;;
*) echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32601,"message":"there is no such method"}}' ;;
esac
done
`

// withServers adds MCP servers to the settings.
func (h home) withServers(b *testing.B, many int) home {
	b.Helper()
	path := filepath.Join(h.dir, "config", "config.toml")
	settings, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	script := filepath.Join(h.work, "server.sh")
	if err := os.WriteFile(script, []byte(politeServer), 0o600); err != nil {
		b.Fatal(err)
	}
	for n := range many {
		settings = fmt.Appendf(settings, "[mcp.servers.s%d]\ncommand = ['sh', '%s']\n", n, script)
	}
	if err := os.WriteFile(path, settings, 0o600); err != nil {
		b.Fatal(err)
	}
	return h
}

// BenchmarkExit measures from the last request to the end of the process: without MCP servers,
// with twenty that the model knows and does not use, and with twenty that it has called, each once.
func BenchmarkExit(b *testing.B) {
	for _, bench := range []struct {
		name        string
		many, calls int
	}{{"servers=0", 0, 0}, {"servers=20,used=0", 20, 0}, {"servers=20,used=20", 20, 20}} {
		b.Run(bench.name, func(b *testing.B) {
			var last atomic.Int64 // when the last request came
			var seen string       // that request
			h := newHome(b, anthropictest.Start(b, &anthropictest.Server{Answer: func(_ *http.Request, body []byte) anthropictest.Answer {
				seen = string(body)
				last.Store(time.Now().UnixNano())
				if bench.calls > 0 && turnOf(body) == 1 {
					return anthropictest.Answer{Parts: looks(bench.calls)}
				}
				return anthropictest.Answer{Parts: llm.Say("Done.")}
			}})).withServers(b, bench.many)
			run := func() float64 {
				cmd := h.command(b.Context(), "run", "--mode", "yolo", "go")
				out, err := cmd.CombinedOutput()
				ended := time.Now()
				if err != nil {
					b.Fatalf("%v\n%s", err, out)
				}
				if tools, called := strings.Count(seen, `__look","description"`), strings.Count(seen, `"tool_result"`); tools != bench.many || called != bench.calls {
					b.Fatalf("the model has seen %d tools and %d results\n%s", tools, called, out)
				}
				return ms(ended.Sub(time.Unix(0, last.Load())))
			}
			run() // the servers are met
			timed(b, run)
		})
	}
}

// looks are calls of so many servers.
func looks(many int) (parts llm.Parts) {
	for n := range many {
		parts = append(parts, llm.Call{ID: fmt.Sprint("call_", n), Name: fmt.Sprintf("mcp__s%d__look", n), Args: json.RawMessage(`{}`)})
	}
	return parts
}

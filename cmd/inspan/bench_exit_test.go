package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/anthropic/anthropictest"
)

// politeServer is an MCP server that ends when its input does.
const politeServer = `while read -r l; do
id=${l#*\"id\":}; id=${id%%[,\}]*}
case $l in
*'"method":"notifications/'*) ;;
*'"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}' ;;
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

// BenchmarkExit measures from the last request to the end of the process, without and
// with twenty MCP servers that are connected.
func BenchmarkExit(b *testing.B) {
	for _, many := range []int{0, 20} {
		b.Run(fmt.Sprintf("servers=%d", many), func(b *testing.B) {
			var last atomic.Int64 // when the last request came
			var tools atomic.Int64
			h := newHome(b, anthropictest.Start(b, &anthropictest.Server{Answer: func(_ *http.Request, body []byte) anthropictest.Answer {
				tools.Store(int64(strings.Count(string(body), "look")))
				last.Store(time.Now().UnixNano())
				return anthropictest.Answer{Parts: llm.Say("Done.")}
			}})).withServers(b, many)
			var took []float64
			for b.Loop() {
				for range 10 {
					cmd := h.command(b.Context(), "run", "go")
					out, err := cmd.CombinedOutput()
					ended := time.Now()
					if err != nil {
						b.Fatalf("%v\n%s", err, out)
					}
					if int(tools.Load()) < many {
						b.Fatalf("the model has seen %d tools\n%s", tools.Load(), out)
					}
					took = append(took, ms(ended.Sub(time.Unix(0, last.Load()))))
				}
			}
			b.ReportMetric(median(took), "ms/exit")
			b.ReportMetric(0, "ns/op")
		})
	}
}

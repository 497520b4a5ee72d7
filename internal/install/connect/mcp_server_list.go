package connect

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/extend/mcp"
	"github.com/inspan/inspan/tool"
)

//go:embed mcp_server_list.md
var mcpServerListDoc string

func mcpServerList(m *mcp.Manager) tool.Tool {
	t := tool.New("mcp_server_list", mcpServerListDoc, func(context.Context, *tool.Call, struct{}) (tool.Result, error) {
		var b strings.Builder
		for _, s := range m.Status() {
			b.WriteString(serverLine(s) + "\n")
		}
		out := tool.Text(b.String())
		out.Untrusted = true // names and errors come from servers
		return out, nil
	})
	t.Effects = tool.NoEffects
	return t
}

// serverLine describes the state of a server in one line.
func serverLine(s mcp.Status) string {
	parts := []string{s.Name, string(s.State), s.Kind, "from " + s.Source}
	if s.Tools > 0 {
		parts = append(parts, fmt.Sprintf("%s, about %d tokens", text.Count(s.Tools, "tool"), s.Tokens))
	}
	if s.Version != "" {
		parts = append(parts, fmt.Sprintf("%s, revision %s", s.Version, s.Revision))
	}
	if took := cmp.Or(s.Typical, s.Latency); took > 0 {
		parts = append(parts, "answers in about "+took.Round(time.Millisecond).String())
	}
	if s.Restarts > 0 {
		parts = append(parts, text.Count(s.Restarts, "restart"))
	}
	if s.Why != "" {
		parts = append(parts, s.Why)
	}
	return strings.Join(parts, "; ")
}

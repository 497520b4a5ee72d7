package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/mcp"
)

func TestAsk(t *testing.T) {
	for _, mode := range []string{"honest", "handshake"} {
		for _, c := range []struct {
			field, answer, want string
			err                 error
			asked               bool
		}{
			{"city", `{"city":"Ulm"}`, "accept map[city:Ulm]", nil, true},
			{"city", "", "decline map[]", nil, true},
			{"city", "", "cancel map[]", errors.New("gone"), true},
			{"api_key", `{"api_key":"x"}`, "decline map[]", nil, false},
			{"ci\u202ety", `{}`, "decline map[]", nil, false},
		} {
			t.Run(mode+" "+c.want+" "+c.field, func(t *testing.T) {
				h := newHouse(t, self(t, "own", mode))
				asked := ""
				h.Ask = func(_ context.Context, message string, schema json.RawMessage) (json.RawMessage, error) {
					asked = message + string(schema)
					if c.answer == "" {
						return nil, c.err
					}
					return json.RawMessage(c.answer), c.err
				}
				h.begin("own", mcp.Ready)
				args, err := json.Marshal(map[string]string{"text": c.field})
				if err != nil {
					t.Fatal(err)
				}
				res, err := h.call(t.Context(), "mcp__own__ask", string(args))
				if err != nil || text(res) != c.want {
					t.Errorf("%q, %v", text(res), err)
				}
				if c.asked != strings.Contains(asked, `The MCP server own asks: which\x1b one?{`) {
					t.Errorf("asked %q", asked)
				}
			})
		}
		t.Run(mode+" nobody", func(t *testing.T) {
			h := newHouse(t, self(t, "own", mode))
			h.begin("own", mcp.Ready)
			if res, err := h.call(t.Context(), "mcp__own__ask", `{"text":"city"}`); err == nil {
				t.Errorf("%q", text(res))
			}
		})
	}
}

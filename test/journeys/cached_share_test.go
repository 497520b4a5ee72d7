package journeys_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/extend/tools"
	"github.com/inspan/inspan/llm/anthropic"
	"github.com/inspan/inspan/tool"
)

// caching is a vendor that answers with calls and counts the tokens that its cache would have held, by the rules of
// https://platform.claude.com/docs/en/build-with-claude/prompt-caching: a prefix that ends at a marker is kept, and a
// later marker finds it at most 20 blocks back.
type caching struct {
	calls       int // of the run, before its answer
	left, made  int
	kept        map[[sha256.Size]byte]bool
	known, sent int // bytes
	shares      []float64
}

// RoundTrip implements [http.RoundTripper].
func (v *caching) RoundTrip(r *http.Request) (*http.Response, error) {
	var body struct {
		Tools, System []map[string]any
		Messages      []struct {
			Role    string
			Content []map[string]any
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return nil, err
	}
	sum, total := sha256.New(), 0
	var at [][sha256.Size]byte
	var sizes, marks []int
	put := func(role string, block map[string]any) {
		if _, marked := block["cache_control"]; marked {
			marks = append(marks, len(at))
			delete(block, "cache_control")
		}
		raw, _ := json.Marshal(block) // it was decoded
		sum.Write([]byte(role))
		sum.Write(raw)
		total += len(raw)
		at, sizes = append(at, [sha256.Size]byte(sum.Sum(nil))), append(sizes, total)
	}
	for _, b := range slices.Concat(body.Tools, body.System) {
		put("", b)
	}
	for _, m := range body.Messages {
		for _, b := range m.Content {
			put(m.Role, b)
		}
	}
	hit := 0
	for _, mark := range marks {
		for i := mark; i > mark-20 && i >= 0; i-- {
			if v.kept[at[i]] {
				hit = max(hit, sizes[i])
				break
			}
		}
	}
	for _, mark := range marks {
		v.kept[at[mark]] = true
	}
	v.known, v.sent = v.known+hit, v.sent+total
	v.shares = append(v.shares, float64(hit)/float64(total))
	blocks := []string{textBlock(0, "That is it.")}
	if v.left--; v.left >= 0 {
		v.made++
		blocks = []string{textBlock(0, "On. "), callBlock(1, fmt.Sprintf("call_%d", v.made), "look", fmt.Sprintf(`{"word":"w%d"}`, v.made))}
	} else {
		v.left = v.calls
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(sse(total*2/7, blocks)))}, nil
}

// TestCachedShare checks how much of a long session a vendor has cached: of 94 requests in 10 runs, with every mode
// switched to in turn and a server whose tools come late, at least 97 % of all bytes, and at least 75 % of each request
// but the first.
func TestCachedShare(t *testing.T) {
	v := &caching{calls: 8, left: 8, kept: map[[sha256.Size]byte]bool{}}
	core, look := tools.Core(&tools.Shell{}, ""), pages(&endless{page: 4000})
	late := does("late_tool", reads("/w/a"), func(context.Context, *tool.Call) (tool.Result, error) { return tool.Text("late"), nil })
	mode, come := tool.ModeAuto, []tool.Tool(nil)
	a := inspan.Agent{
		Model: &anthropic.Model{ID: "m", HTTP: v}, Mode: mode, Env: tool.Env{Root: "/w"},
		System: []event.Added{{Source: "t", Text: strings.Repeat("Rules. ", 1000)}},
		Dynamic: inspan.Dynamic{Tools: func(context.Context) (shown, hidden []tool.Tool) {
			all := slices.Concat(tools.DescribeFor(core, tools.Truth{Mode: mode}), []tool.Tool{look}, come)
			return slices.Concat(tools.Deferred(nil, nil, all), all), nil
		}},
	}
	s := open(t, &a, event.NewMemory("s"))
	for run := range 10 {
		inputs := []event.Body{said(fmt.Sprint("go ", run))}
		switch run {
		case 3, 4, 5, 6:
			mode = []tool.Mode{tool.ModeYolo, tool.ModePlan, tool.ModeAsk, tool.ModeAuto}[run-3]
			inputs = slices.Insert(inputs, 0, event.Body(event.Switched{Mode: mode}))
		case 8:
			come = []tool.Tool{late}
		case 9:
			v.left += 4
		}
		drivenTo(t, s, inputs...)
	}
	share := float64(v.known) / float64(v.sent)
	t.Logf("%.1f %% of %d bytes in %d requests were cached", 100*share, v.sent, len(v.shares))
	if len(v.shares) != 94 || share < 0.97 {
		t.Errorf("%d requests, of whose bytes %.3f were cached", len(v.shares), share)
	}
	if least := slices.Min(v.shares[1:]); least < 0.75 {
		t.Errorf("%.2f of request %d were cached", least, slices.Index(v.shares, least))
	}
}

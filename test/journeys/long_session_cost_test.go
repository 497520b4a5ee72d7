package journeys_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/session"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/anthropic"
	"github.com/inspan/inspan/tool"
)

// endless is a vendor that answers each request with one more call, and a request for a summary with one. It only looks
// at the end of the request.
type endless struct {
	last  int                  // turn, after which it makes no more calls
	turn  func(turn, size int) // is told of each; nil means no one is
	asked func(size int)       // the same for every request
	page  int                  // bytes that a call brings
	turns int
	sums  int
}

const summed = "## Goal\nRead on.\n## Constraints\nnone\n## Decisions\nnone\n## Files\nbook\n## State of work\nReading.\n" +
	"## Open questions\nnone\n## Next\nThe next page.\n"

// RoundTrip implements [http.RoundTripper].
func (v *endless) RoundTrip(r *http.Request) (*http.Response, error) {
	var body tail
	if _, err := io.Copy(&body, r.Body); err != nil {
		return nil, err
	}
	size := int(r.ContentLength)
	if v.asked != nil {
		v.asked(size)
	}
	var blocks []string
	switch {
	case bytes.Contains(body, []byte("Stop the work here.")):
		v.sums++
		blocks = []string{textBlock(0, summed)}
	case v.turns == v.last:
		blocks = []string{textBlock(0, "That is the end.")}
	default:
		v.turns++
		if v.turn != nil {
			v.turn(v.turns, size)
		}
		blocks = []string{textBlock(0, "On. "), callBlock(1, fmt.Sprintf("call_%d", v.turns), "look", fmt.Sprintf(`{"word":"w%d"}`, v.turns))}
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(sse(size*2/7, blocks)))}, nil
}

// tail keeps the end of the written bytes.
type tail []byte

// Write implements [io.Writer].
func (t *tail) Write(p []byte) (int, error) {
	*t = slices.Clone(append(*t, p[max(0, len(p)-8000):]...))
	*t = (*t)[max(0, len(*t)-8000):]
	return len(p), nil
}

func textBlock(i int, text string) string {
	return fmt.Sprintf("data: {\"type\":\"content_block_start\",\"index\":%d,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n"+
		"data: {\"type\":\"content_block_delta\",\"index\":%d,\"delta\":{\"type\":\"text_delta\",\"text\":%q}}\n\n", i, i, text)
}

func callBlock(i int, id, name, args string) string {
	return fmt.Sprintf("data: {\"type\":\"content_block_start\",\"index\":%d,\"content_block\":{\"type\":\"tool_use\",\"id\":%q,\"name\":%q,\"input\":{}}}\n\n"+
		"data: {\"type\":\"content_block_delta\",\"index\":%d,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":%q}}\n\n", i, id, name, i, args)
}

func sse(tokens int, blocks []string) string {
	stop := "end_turn"
	if len(blocks) > 1 {
		stop = "tool_use"
	}
	return fmt.Sprintf("data: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"usage\":{\"input_tokens\":%d,\"output_tokens\":1}}}\n\n", tokens) +
		strings.Join(blocks, "") +
		fmt.Sprintf("data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":%q},\"usage\":{\"output_tokens\":10}}\n\ndata: {\"type\":\"message_stop\"}\n\n", stop)
}

// book is how many files a long run reads, again and again.
const book = 300

// pages is a tool whose calls read one file after the other, of 1,500 bytes if v does not say.
func pages(v *endless) tool.Tool {
	lines := cmp.Or(v.page, 1500) / 34
	n := 0
	return does("look", reads("/w/a"), func(_ context.Context, c *tool.Call) (tool.Result, error) {
		n++
		res := tool.Text(strings.Repeat(string(c.Args)+" is a line of a page\n", lines))
		res.Files = []tool.File{{Path: fmt.Sprintf("/w/page%d", n%book), Digest: c.ID}}
		return res, nil
	})
}

// endlessly runs a session against a vendor until that makes no more calls.
func endlessly(t testing.TB, v *endless, window int) {
	t.Helper()
	s, err := endlessHost(t, v, window).New(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	finish(t, s)
}

func endlessHost(t testing.TB, v *endless, window int) *inspan.Host {
	t.Helper()
	return &inspan.Host{
		Store: &session.Store{Dir: t.TempDir(), Sync: session.SyncKill},
		Agent: func(context.Context, inspan.SessionSpec) (*inspan.Agent, error) {
			return &inspan.Agent{
				Model: &anthropic.Model{ID: "m", HTTP: v, Window: window}, Tools: []tool.Tool{pages(v)}, Mode: "yolo", Env: tool.Env{Root: "/w"},
				Limits: inspan.Limits{Turns: -1}, System: []event.Added{{Source: "t", Text: strings.Repeat("Rules. ", 1000)}},
			}, nil
		},
	}
}

// finish runs a session to an end that must be a good one, and keeps nothing of it.
func finish(t testing.TB, s *inspan.Session) {
	t.Helper()
	for _, err := range s.Run(t.Context(), said("go")) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if st := s.Status(); st.Stopped == nil || st.Stopped.Reason != event.ReasonDone {
		t.Fatalf("stopped: %+v", st.Stopped)
	}
}

// TestTurnsCostTheSame checks that the work of a turn does not grow with the turns before it, in a conversation that is
// compacted and in one that grows: it makes fewer allocations more than one for each turn between, which a walk through
// the history would make.
func TestTurnsCostTheSame(t *testing.T) {
	if testkit.Race {
		t.Skip("counts without the race detector")
	}
	for name, tc := range map[string]struct{ window, early, late, span int }{
		"compacted": {30_000, 200, 1000, 200},
		"growing":   {0, 100, 1000, 50},
	} {
		t.Run(name, func(t *testing.T) {
			var mallocs [1300]uint64
			v := &endless{last: tc.late + tc.span + 1}
			v.turn = func(turn, _ int) {
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				mallocs[turn] = m.Mallocs
			}
			endlessly(t, v, tc.window)
			early, late := mallocs[tc.early+tc.span]-mallocs[tc.early], mallocs[tc.late+tc.span]-mallocs[tc.late]
			if tc.window > 0 && v.sums < 10 {
				t.Fatalf("only %d compactions", v.sums)
			}
			if more := int64(late-early) / int64(tc.span); more >= int64(tc.late-tc.early) {
				t.Errorf("%d allocations in a turn after %d turns, %d after %d", late/uint64(tc.span), tc.late, early/uint64(tc.span), tc.early)
			}
		})
	}
}

// BenchmarkTurnAt measures our part of a turn in runs of 10,000 turns whose conversation is
// compacted, so that it stays the same size, and of 3,000 turns whose conversation grows. All is
// ours but the vendor, who looks at the end of a request alone.
func BenchmarkTurnAt(b *testing.B) {
	for name, tc := range map[string]struct {
		window, last int
		at           []int
	}{
		"compacted": {40_000, 10_999, []int{100, 1000, 10_000}},
		"growing":   {0, 3400, []int{100, 1000, 3000}},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				at := make([]time.Time, tc.last+1)
				v := &endless{last: tc.last, turn: func(turn, _ int) { at[turn] = time.Now() }}
				endlessly(b, v, tc.window)
				first := 0.0
				for _, from := range tc.at {
					span := min(900, tc.last-from)
					took := at[from+span].Sub(at[from]).Seconds() * 1000 / float64(span)
					if first == 0 {
						first = took
					}
					b.ReportMetric(took, fmt.Sprintf("ms-at-%d", from))
					b.ReportMetric(took/first, fmt.Sprintf("ratio-%d", from))
				}
				b.ReportMetric(0, "ns/op")
			}
		})
	}
}

// resumed opens a session that was left and asks the model once more. It returns the time until
// the request was there, its size, and by how much more memory the process had at the most; 0
// where the system does not tell.
func resumed(b *testing.B, h *inspan.Host, v *endless) (took time.Duration, size int, peak int) {
	b.Helper()
	debug.FreeOSMemory()
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // the peak begins anew
	before := resident("VmRSS")
	began := time.Now()
	v.last = v.turns // one more reply, and it is over
	v.asked = func(n int) { took, size = time.Since(began), n }
	s, err := h.Open(b.Context(), "last")
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	finish(b, s)
	return took, size, resident("VmHWM") - before
}

// resident is a figure of the memory of this process in bytes; 0 where the system does not tell.
func resident(what string) int {
	status, _ := os.ReadFile("/proc/self/status")
	_, rest, _ := strings.Cut(string(status), what+":")
	var kb int
	_, _ = fmt.Sscan(rest, &kb)
	return kb << 10
}

// left makes a session of so many turns whose calls bring so many bytes, and leaves it.
func left(b *testing.B, turns, page, window int) (*inspan.Host, *endless) {
	b.Helper()
	v := &endless{last: turns, page: page}
	h := endlessHost(b, v, window)
	s, err := h.New(b.Context(), b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	finish(b, s)
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	return h, v
}

// BenchmarkReopen opens a session of 3,000 turns up to its first request: one that was compacted,
// and one whose conversation has only grown.
func BenchmarkReopen(b *testing.B) {
	for name, window := range map[string]int{"compacted": 40_000, "grown": 0} {
		b.Run(name, func(b *testing.B) {
			h, v := left(b, 3000, 1500, window)
			var all []float64
			for b.Loop() {
				took, _, _ := resumed(b, h, v)
				all = append(all, float64(took.Microseconds())/1000)
			}
			slices.Sort(all)
			b.ReportMetric(all[len(all)/2], "ms/open")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkResume32MB resumes a session whose log, and so whose next prompt, has 32 MB.
func BenchmarkResume32MB(b *testing.B) {
	h, v := left(b, 1000, 32_000, 0)
	for b.Loop() {
		took, size, peak := resumed(b, h, v)
		b.ReportMetric(float64(took.Milliseconds()), "ms/open")
		b.ReportMetric(float64(size)/1e6, "MB-request")
		b.ReportMetric(float64(peak)/1e6, "MB-peak")
		b.ReportMetric(float64(peak)/float64(size), "peak/request")
		b.ReportMetric(0, "ns/op")
	}
}

// counted are blobs that count how often one is read.
type counted struct {
	tool.Blobs
	gets *int
}

// Get implements [tool.Blobs].
func (c counted) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	*c.gets++
	return c.Blobs.Get(ctx, name)
}

// TestImagesAreReadOnce checks that an image is not read again for each request that shows it, and that each shows it.
func TestImagesAreReadOnce(t *testing.T) {
	gets, shown := 0, 0
	n := 0
	show := does("show", reads("/w/a"), func(context.Context, *tool.Call) (tool.Result, error) {
		if n++; n > 1 {
			return tool.Text("nothing new " + fmt.Sprint(n)), nil
		}
		return tool.Result{Parts: llm.Parts{llm.Image{MediaType: "image/png", Data: []byte("png")}}}, nil
	})
	model := &watched{Model: scripted(t, "call: show {\"word\":\"a\"}", "call: show {\"word\":\"b\"}", "call: show {\"word\":\"c\"}", "Done.")}
	h := inspan.Host{
		Store: &session.Store{Dir: t.TempDir(), Sync: session.SyncKill},
		Agent: func(_ context.Context, at inspan.SessionSpec) (*inspan.Agent, error) {
			return &inspan.Agent{
				Model: model, Tools: []tool.Tool{show}, Mode: "yolo", Env: tool.Env{Root: "/w", Blobs: counted{at.Blobs, &gets}},
			}, nil
		},
	}
	s, err := h.New(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	finish(t, s)
	for _, req := range model.asked {
		for _, m := range req.Messages {
			for _, p := range m.Parts {
				if r, ok := p.(llm.Result); ok && r.Parts.Images() > 0 && string(r.Parts[0].(llm.Image).Data) == "png" {
					shown++
				}
			}
		}
	}
	if shown != 3 || gets != 1 {
		t.Errorf("%d requests show the image, which was read %d times", shown, gets)
	}
}

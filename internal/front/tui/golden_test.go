package tui

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/view/markdown"
	"github.com/inspan/inspan/internal/view/transcript"
)

var update = flag.Bool("update", false, "write the golden frames anew")

// corpus names the logs that all readers are tested with.
func corpus(t testing.TB) []string {
	t.Helper()
	logs, err := filepath.Glob("../../../test/journeys/testdata/logs/*/*.jsonl")
	if err != nil || len(logs) < 10 {
		t.Fatal("no logs", err)
	}
	ours, err := filepath.Glob("testdata/logs/*.jsonl") // of what only front ends show
	if err != nil || len(ours) == 0 {
		t.Fatal("no logs of ours", err)
	}
	return append(logs, ours...)
}

func readLog(t testing.TB, path string) []event.Event {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []event.Event
	for line := range bytes.Lines(raw) {
		e, err := event.Decode(bytes.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, e)
	}
	return out
}

// still is a front end without a terminal, at the time of the last event.
func still(t testing.TB, width, height int, l look, events []event.Event) *model {
	t.Helper()
	keys, err := keysOf(nil)
	if err != nil {
		t.Fatal(err)
	}
	tui := &TUI{Root: "/w", Width: width, Height: height, NoColor: l.noColor, now: func() time.Time {
		if len(events) == 0 {
			return time.Unix(0, 0)
		}
		return events[len(events)-1].Time
	}}
	m := newModel(context.Background(), tui, keys)
	m.screen.look.light = l.light
	m.screen.print.look = m.screen.look
	m.talk.runner = &runner{pump: newPump(func(any) {}), send: func(any) {}}
	m.talk.backend = tui.backend(m.talk.runner.pump)
	m.talk.apply(events)
	return m
}

// see lets the time go by until the question that is shown counts as seen.
func see(m *model) { m.questions.ask.drawn = m.questions.ask.drawn.Add(-seeing) }

// drawn is everything on the screen: printed lines, and the picture below them.
func drawn(m *model) string {
	m.talk.view.blocks = m.screen.print.take(m.talk.view.blocks)
	v := m.View()
	if m.questions.ask != nil {
		see(m)
		v = m.View()
	}
	return strings.Join(m.screen.print.lines, "\n") + "\n~~~\n" + v.Content + "\n"
}

func TestFrames(t *testing.T) {
	sizes := []struct {
		name          string
		width, height int
		look          look
		few           bool // only some logs
	}{
		{"80x24", 80, 24, look{noColor: true}, false},
		{"40x10", 40, 10, look{noColor: true}, true},
		{"120x40", 120, 40, look{}, true},
		{"120x40.light", 120, 40, look{light: true}, true},
	}
	for _, path := range corpus(t) {
		name := strings.TrimSuffix(filepath.Base(path), ".jsonl")
		for _, size := range sizes {
			if size.few && name != "waiting" && name != "parallel" && name != "interrupted" && name != "shown" {
				continue
			}
			t.Run(name+"/"+size.name, func(t *testing.T) {
				m := still(t, size.width, size.height, size.look, readLog(t, path))
				got := drawn(m)
				for line := range strings.SplitSeq(got, "\n") {
					if ansi.StringWidth(line) >= size.width {
						t.Errorf("a line of %d cells: %q", ansi.StringWidth(line), line)
					}
				}
				if rows := strings.Count(got[strings.Index(got, "\n~~~\n")+5:], "\n"); rows >= size.height {
					t.Errorf("the picture has %d rows", rows)
				}
				of := filepath.Base(filepath.Dir(path)) // a version, or the logs of this package
				golden(t, filepath.Join("testdata", "frames", of, name+"."+size.name+".txt"), strings.ReplaceAll(got, "\x1b", "^["))
			})
		}
	}
}

// frozen are the frames of version 0.1.0. They never change: logs of that version must look as they did, except for the
// words that have changed since.
var frozen = filepath.Join("testdata", "frames", "0.1.0")

// reworded are the words of version 0.1.0 that have changed, each before those of today.
func reworded(path string) *strings.Replacer {
	cutOff := "the run was cut off; Enter continues it"
	if strings.HasPrefix(filepath.Base(path), "from-later.") { // no run has begun with what was said last
		cutOff = "a message waits; Enter begins the run"
	}
	return strings.NewReplacer(
		"the run was cut off; enter goes on with it", cutOff,
	)
}

// restyled is a frame of version 0.1.0 in today's look: the person's words have a colour, a rule is above the prompt or
// the question if there is room, and parts of the status line have colours of their own, which are left out here.
func restyled(frame string, width, height int) string {
	frame = strings.ReplaceAll(frame, "^[[1m› ", "^[[1;36m› ")
	printed, picture, _ := strings.Cut(frame, "\n~~~\n")
	lines := strings.Split(picture, "\n")
	front := slices.IndexFunc(lines, func(line string) bool {
		return strings.HasPrefix(line, "? ") || strings.HasPrefix(line, "^[[33m? ")
	})
	if front < 0 {
		front = len(lines) - 3 // above the status line
	}
	if height-1 >= leastRuled {
		rule := strings.Repeat("─", min(width-1, mostRule))
		if strings.Contains(frame, "^[[") {
			rule = "^[[2m" + rule + "^[[0m"
		}
		lines = slices.Insert(lines, front, rule)
	}
	return printed + "\n~~~\n" + plainStatus(strings.Join(lines, "\n"))
}

// unasked is a frame without its question, which the frames of today hold: between its first words and the status
// line.
func unasked(frame string) string {
	at := regexp.MustCompile(`(?m)^(\^\[\[33m)?\? note`).FindStringIndex(frame)
	if at == nil {
		return frame
	}
	return frame[:at[1]] + frame[strings.LastIndexByte(strings.TrimSuffix(frame, "\n"), '\n'):]
}

// plainStatus is a frame whose last line has no colours.
func plainStatus(frame string) string {
	at := strings.LastIndexByte(strings.TrimSuffix(frame, "\n"), '\n') + 1
	return frame[:at] + regexp.MustCompile(`\^\[\[[0-9;]*m`).ReplaceAllString(frame[at:], "")
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	old := filepath.Dir(path) == frozen
	if *update && !old {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if old {
		var width, height int
		_, size, _ := strings.Cut(filepath.Base(path), ".")
		if _, err := fmt.Sscanf(size, "%dx%d", &width, &height); err != nil {
			t.Fatal(path, err)
		}
		want, got = []byte(unasked(restyled(reworded(path).Replace(string(want)), width, height))), unasked(plainStatus(got))
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Error(diff)
	}
}

// TestTransientsChangeNothing checks that a reader who has missed the deltas sees the same in the end.
func TestTransientsChangeNothing(t *testing.T) {
	for _, path := range corpus(t) {
		events := readLog(t, path)
		plain := drawn(still(t, 80, 24, look{}, events))
		var streamed []event.Event
		for _, e := range events {
			if r, ok := e.Body.(event.Replied); ok {
				for word := range strings.SplitAfterSeq(r.Parts.Text(), " ") {
					streamed = append(streamed, event.Event{Time: e.Time, Body: event.Delta{Text: word}})
				}
			}
			streamed = append(streamed, e)
		}
		if diff := cmp.Diff(plain, drawn(still(t, 80, 24, look{}, streamed))); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
}

// TestChartsFit checks that no row of a chart wraps, whatever the width of the terminal is.
func TestChartsFit(t *testing.T) {
	c := markdown.Chart{Kind: markdown.Bar, Labels: []string{"漢字という名前", "b"}, Series: []markdown.Series{{Values: []float64{210, 83.5}}}}
	for _, width := range []int{199, 79, 39, 19} {
		b := &block{kind: callBlock, call: &transcript.Call{Ended: event.Ended{Show: c.Markdown()}}}
		lines := b.lines(look{width: width, noColor: true})
		rows := lines[len(lines)-2:]
		for i, number := range []string{"█ 210", "83.5"} {
			if !strings.HasSuffix(rows[i], number) || ansi.StringWidth(rows[i]) > width {
				t.Errorf("at %d: %q", width, lines)
			}
		}
		if width <= 100 && ansi.StringWidth(rows[0]) < width-3 {
			t.Errorf("at %d the longest bar has %d cells: %q", width, ansi.StringWidth(rows[0]), rows[0])
		}
	}
}

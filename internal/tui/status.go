package tui

import (
	"fmt"
	"strings"

	"github.com/inspan/inspan/internal/words"
)

// status is the line at the bottom: who answers, what runs unasked, and what it has cost.
type status struct {
	view        *view
	route, mode string
	took        string // by the run; empty: none goes on
	printed     string // by the person's command; empty: there is none
	keys        string // the mode of the prompt; empty: it has one
}

// line is as much of it as there is room for.
func (s status) line(l look) string {
	if s.printed != "" {
		return l.paint(dim, words.OneLine(strings.TrimPrefix(s.keys+" · "+s.printed, " · "), l.width))
	}
	fields := s.fields()
	line := words.OneLine(fields[0], l.width)
	room := l.width - cells(line)
	for _, f := range fields[1:] {
		if n := cells(f) + 3; n <= room {
			line, room = line+" · "+f, room-n
		}
	}
	return l.paint(dim, line)
}

func (s status) fields() []string {
	v := s.view
	fields := []string{s.mode}
	if s.route != "" {
		fields = []string{s.route, s.mode}
	}
	if s.keys != "" {
		fields = append([]string{s.keys}, fields...)
	}
	if v.Spent.Turns > 0 {
		fields = append(fields, words.Cost(v.Spent.Cost, v.Spent.Unpriced))
	}
	if pct := v.share(); pct >= 0 && v.Spent.Turns > 0 {
		fields = append(fields, fmt.Sprintf("%d%% of %dk", pct, v.Session.Window/1000))
	}
	if pct := v.cached(); pct > 0 {
		fields = append(fields, fmt.Sprintf("%d%% cached", pct))
	}
	if s.took != "" {
		fields = append(fields, s.took)
	}
	return fields
}

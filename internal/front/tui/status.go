package tui

import (
	"fmt"
	"strings"

	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/tool"
)

// status is the line at the bottom: which model answers, what runs without asking, and the cost.
type status struct {
	view        *view
	route, mode string
	lacks       string // before the first reply: what the model lacks; empty if nothing
	took        string // by the run; empty without one
	printed     string // by the person's command, in place of all but the mode and warnings; empty if there is none
	server      string // the server that has the session; empty means this machine
	trouble     string // problem in reaching it
	loop        string // when a prompt repeats; empty if none does
	keys        string // mode of the prompt; empty if it has one
}

// field is a part of the line. Only parts that the person should notice have their own colour.
type field struct{ text, sgr string }

// line returns as much of the status as fits.
func (s status) line(l look) string {
	if s.printed != "" {
		return s.custom(l)
	}
	fields := s.fields()
	if len(fields) == 0 { // between two sessions
		return ""
	}
	first := words.OneLine(fields[0].text, l.width)
	line, room := l.paint(fields[0].sgr, first), l.width-cells(first)
	for _, f := range fields[1:] {
		if n := cells(f.text) + 3; n <= room {
			line, room = line+l.paint(dim, " · ")+l.paint(f.sgr, f.text), room-n
		}
	}
	return line
}

// custom returns the line of the person's command, followed by the mode and the warnings. It is shortened for them.
func (s status) custom(l look) string {
	after, room := "", l.width
	for _, f := range append([]field{{s.mode, modeColor(s.mode)}}, s.warnings()...) {
		// One cell stays for the command's own line, and three for the separator.
		if shown := words.OneLine(f.text, room-4); shown != "" {
			after, room = after+l.paint(dim, " · ")+l.paint(f.sgr, shown), room-cells(shown)-3
		}
	}
	return l.paint(dim, words.OneLine(strings.TrimPrefix(s.keys+" · "+s.printed, " · "), room)) + after
}

// warnings returns the fields that must not be left out.
func (s status) warnings() (fields []field) {
	if s.trouble != "" {
		fields = append(fields, field{s.trouble, yellow})
	}
	if s.lacks != "" {
		fields = append(fields, field{s.lacks + ", see /status", yellow})
	}
	return fields
}

func (s status) fields() []field {
	v := s.view
	var fields []field
	if s.server != "" {
		fields = append(fields, field{strings.TrimPrefix(words.On(s.server), "on "), dim})
	}
	if s.mode != "" {
		fields = append(fields, field{s.mode, modeColor(s.mode)})
	}
	if s.route != "" {
		fields = append([]field{{s.route, cyan}}, fields...)
	}
	if s.loop != "" {
		fields = append(fields, field{s.loop, cyan})
	}
	if s.keys != "" {
		fields = append([]field{{s.keys, bold}}, fields...)
	}
	fields = append(s.warnings(), fields...)
	if v.Spent.Turns > 0 {
		fields = append(fields, field{words.Cost(v.Spent.Cost, v.Spent.Unpriced), dim})
	}
	if pct := v.windowPercent(); pct >= 0 && v.Spent.Turns > 0 {
		fields = append(fields, field{fmt.Sprintf("%d%% of %dk", pct, v.Session.Window/1000), shareColor(pct)})
	}
	if pct := v.cached(); pct > 0 {
		fields = append(fields, field{fmt.Sprintf("%d%% cached", pct), dim})
	}
	if s.took != "" {
		fields = append(fields, field{s.took, dim})
	}
	if s.server != "" && v.Session.ID != "" {
		fields = append(fields, field{v.Session.ID, dim})
	}
	return fields
}

// modeColor returns the colour of a mode: the more runs without asking, the warmer.
func modeColor(mode string) string {
	switch tool.Mode(mode) {
	case tool.ModePlan:
		return blue
	case tool.ModeEdit:
		return green
	case tool.ModeAuto:
		return yellow
	case tool.ModeYolo:
		return red
	}
	return dim
}

// shareColor returns the colour for how full the window is.
func shareColor(pct int) string {
	switch {
	case pct >= 80:
		return red
	case pct >= 60:
		return yellow
	}
	return dim
}

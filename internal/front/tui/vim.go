package tui

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// vim gives the prompt two modes as in vim, and the commands of normal mode that are useful on a few lines: h j
// k l w b e 0 ^ $ move, i a I A o O begin to insert, x D C and d or c with a motion change, yy and p copy
// lines, and u undoes. It holds no text of its own except copied and deleted text, and the undo history.
type vim struct {
	normal  bool
	pending string   // d, c, y or r, which wait for the next key; empty if none
	deleted []atom   // deleted last
	lines   bool     // deleted holds whole lines
	past    []editor // texts before each change, the oldest first
}

const mostUndo = 100

// mode returns the mode for the status line.
func (v *vim) mode() string {
	switch {
	case v == nil:
		return ""
	case v.normal:
		return "NORMAL"
	}
	return "INSERT"
}

// begin resets the mode for an empty prompt.
func (v *vim) begin() {
	if v != nil {
		*v = vim{deleted: v.deleted, lines: v.lines}
	}
}

// key handles a key. It returns false for keys that mean the same without vim.
func (v *vim) key(k tea.KeyPressMsg, action string, e *editor, width int) bool {
	switch {
	case v == nil:
		return false
	case !v.normal && action == "escape":
		v.normal = true
		e.at, e.goal = max(e.at-1, e.lineStart()), -1
		return true
	case !v.normal:
		return false
	case action == "escape" && v.pending != "":
		v.pending = ""
		return true
	case action == "backspace":
		e.at, e.goal = max(e.at-1, e.lineStart()), -1
		return true
	case action != "" || k.Text == "":
		return false
	}
	if k.Text == "u" && v.pending == "" {
		v.undo(e)
		return true
	}
	was := editor{atoms: slices.Clone(e.atoms), at: e.at, goal: -1}
	op := v.pending
	v.pending = ""
	switch {
	case op == "" && slices.Contains([]string{"d", "c", "y", "r"}, k.Text):
		v.pending = k.Text
	case op == "r":
		if at := e.at; at < e.lineEnd() {
			e.cut(at, at+1)
			e.insert(atomsOf(k.Text)...)
			e.at = at
		}
	case op != "":
		v.operate(op, k.Text, e)
	default:
		v.command(k.Text, e, width)
	}
	v.note(was, e)
	return true
}

// note keeps the text before a change or an insertion.
func (v *vim) note(was editor, e *editor) {
	if v.normal && textOf(was.atoms) == e.text() {
		return
	}
	if v.past = append(v.past, was); len(v.past) > mostUndo {
		v.past = v.past[1:]
	}
}

// command handles a key in normal mode.
func (v *vim) command(key string, e *editor, width int) {
	if to, ok := motion(key, e); ok {
		e.at, e.goal = to, -1
		return
	}
	switch key {
	case "j":
		e.down(width)
	case "k":
		e.up(width)
	case "i", "a", "I", "A", "o", "O":
		v.insert(key, e)
	case "x":
		v.take(e, e.at, min(e.at+1, e.lineEnd()), false)
	case "D", "C":
		v.operate(strings.ToLower(key), "$", e)
	case "p", "P":
		v.put(key == "P", e)
	}
}

// undo undoes the last change.
func (v *vim) undo(e *editor) {
	if n := len(v.past); n > 0 {
		*e, v.past = v.past[n-1], v.past[:n-1]
	}
}

// insert begins an insertion.
func (v *vim) insert(key string, e *editor) {
	v.normal = false
	switch key {
	case "a":
		e.at = min(e.at+1, e.lineEnd())
	case "I":
		e.at = e.lineStart()
	case "A":
		e.at = e.lineEnd()
	case "o":
		e.at = e.lineEnd()
		e.insert(atom{shown: "\n"})
	case "O":
		e.at = e.lineStart()
		e.insert(atom{shown: "\n"})
		e.at--
	}
	e.goal = -1
}

// operate deletes, changes or copies up to the target of a motion, or whole lines.
func (v *vim) operate(op, key string, e *editor) {
	if key == op {
		v.line(op, e)
		return
	}
	to, ok := motion(key, e)
	if !ok {
		return
	}
	if op == "c" && key == "w" { // as in vim, the blanks after a word stay
		to, _ = motion("e", e)
		key = "e"
	}
	from := min(e.at, to)
	to = max(e.at, to)
	if key == "e" {
		to = min(to+1, len(e.atoms))
	}
	if key == "$" {
		to = e.lineEnd()
	}
	v.apply(op, e, from, to, false)
}

// line is operate for the cursor's line.
func (v *vim) line(op string, e *editor) {
	from, to := e.lineStart(), e.lineEnd()
	switch {
	case op == "c":
	case to < len(e.atoms):
		to++
	case from > 0 && op == "d":
		from--
	}
	v.apply(op, e, from, to, op != "c")
}

func (v *vim) apply(op string, e *editor, from, to int, lines bool) {
	if op == "y" {
		v.deleted, v.lines = slices.Clone(e.atoms[from:to]), lines
		return
	}
	v.take(e, from, to, lines)
	if lines {
		e.at = e.lineStart()
	}
	v.normal = op != "c"
}

// take deletes text and keeps it.
func (v *vim) take(e *editor, from, to int, lines bool) {
	if from >= to {
		return
	}
	v.deleted, v.lines = slices.Clone(e.atoms[from:to]), lines
	e.cut(from, to)
}

// put inserts deleted text after the cursor or before it.
func (v *vim) put(before bool, e *editor) {
	if len(v.deleted) == 0 {
		return
	}
	if !v.lines {
		if !before {
			e.at = min(e.at+1, e.lineEnd())
		}
		e.insert(v.deleted...)
		e.at--
		return
	}
	line := slices.DeleteFunc(slices.Clone(v.deleted), func(a atom) bool { return a.shown == "\n" })
	if before {
		e.at = e.lineStart()
		e.insert(append(line, atom{shown: "\n"})...)
		e.at -= len(line) + 1
		return
	}
	e.at = e.lineEnd()
	e.insert(append([]atom{{shown: "\n"}}, line...)...)
	e.at = e.lineStart()
}

// motion returns the target of a motion key, and whether it has one.
func motion(key string, e *editor) (to int, ok bool) {
	switch key {
	case "h":
		return max(e.at-1, e.lineStart()), true
	case "l", " ":
		return min(e.at+1, e.lineEnd()), true
	case "0":
		return e.lineStart(), true
	case "^":
		i := e.lineStart()
		for i < e.lineEnd() && kindOf(e.atoms[i]) == blank {
			i++
		}
		return i, true
	case "$":
		return max(e.lineEnd()-1, e.lineStart()), true
	case "w":
		return e.nextWord(), true
	case "b":
		return e.lastWord(), true
	case "e":
		return e.endOfWord(), true
	}
	return 0, false
}

// kind is a class of characters that form a word in vim.
type kind int

const (
	blank kind = iota
	letters
	signs
)

func kindOf(a atom) kind {
	switch {
	case !a.isLarge() && strings.TrimSpace(a.shown) == "":
		return blank
	case isWordRune(a):
		return letters
	}
	return signs
}

// nextWord returns where the word after the cursor's begins.
func (e *editor) nextWord() int {
	i := e.at
	for of := e.at; i < len(e.atoms) && kindOf(e.atoms[i]) == kindOf(e.atoms[of]); {
		i++
	}
	for i < len(e.atoms) && kindOf(e.atoms[i]) == blank {
		i++
	}
	return i
}

// lastWord returns where the word before the cursor begins.
func (e *editor) lastWord() int {
	i := e.at - 1
	for i > 0 && kindOf(e.atoms[i]) == blank {
		i--
	}
	for i > 0 && kindOf(e.atoms[i-1]) == kindOf(e.atoms[i]) {
		i--
	}
	return max(i, 0)
}

// endOfWord returns the last character of the word at or after the cursor.
func (e *editor) endOfWord() int {
	i := e.at + 1
	for i < len(e.atoms) && kindOf(e.atoms[i]) == blank {
		i++
	}
	for i+1 < len(e.atoms) && kindOf(e.atoms[i+1]) == kindOf(e.atoms[i]) {
		i++
	}
	return max(min(i, len(e.atoms)-1), 0)
}

package tools

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"
)

// The terminal that programs get.
const (
	screenRows = 40
	screenCols = 120
	// maxScrolled is the number of kept lines that have scrolled off the screen since it was last read.
	maxScrolled = 2000
)

// A screen is the content of a terminal. Write is called by one goroutine, the rest is safe for all.
type screen struct {
	mu     sync.Mutex
	term   *vt.Emulator // nil once it was closed: it takes megabytes
	unread string       // once closed: what fresh returns
	last   string       // once closed: what text returns
	broken bool         // the emulator could not handle the output
	lost   bool         // lines that scrolled off are gone
	keypad atomic.Bool  // the cursor keys send application codes
}

// newScreen returns an empty screen. Its answers to programs' queries go to input.
func newScreen(input io.Writer) *screen {
	s := &screen{term: vt.NewEmulator(screenCols, screenRows)}
	s.term.SetScrollbackSize(maxScrolled)
	s.term.SetCallbacks(vt.Callbacks{
		EnableMode:  func(m ansi.Mode) { s.mode(m, true) },
		DisableMode: func(m ansi.Mode) { s.mode(m, false) },
	})
	go answer(s.term, input)
	return s
}

// answer passes on the terminal's answers until the terminal closes. An answer is lost if there is no room for it:
// the program is not reading.
func answer(term io.Reader, input io.Writer) {
	buf := make([]byte, 4<<10)
	for {
		n, err := term.Read(buf)
		_, _ = input.Write(buf[:n])
		if err != nil {
			return
		}
	}
}

func (s *screen) mode(m ansi.Mode, on bool) {
	if m == ansi.ModeCursorKeys {
		s.keypad.Store(on)
	}
}

// Write implements [io.Writer]. It never fails.
func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() {
		if recover() != nil {
			s.broken = true
		}
	}()
	if !s.broken && s.term != nil {
		_, _ = s.term.Write(p) // never fails
		s.lost = s.lost || s.term.ScrollbackLen() == maxScrolled
	}
	return len(p), nil
}

// close ends the terminal. Its content can still be read.
func (s *screen) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unread, s.last = s.news(), s.shown()
	if w, ok := s.term.InputPipe().(io.Closer); ok {
		_ = w.Close() // never fails
	}
	s.term = nil
}

// text returns the content of the screen.
func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown()
}

// shown is text for a caller that holds the lock.
func (s *screen) shown() string {
	if s.term == nil {
		return s.last
	}
	lines := strings.Split(s.term.String(), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

// cursor describes the position of the cursor, on a line of its own.
func (s *screen) cursor() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.term == nil {
		return ""
	}
	at := s.term.CursorPosition()
	return fmt.Sprintf("[cursor in line %d, column %d]\n", at.Y+1, at.X+1)
}

// fresh returns the lines that have scrolled off since its last call, and the screen.
func (s *screen) fresh() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.news()
}

// news is fresh for a caller that holds the lock.
func (s *screen) news() string {
	if s.term == nil {
		text := s.unread
		s.unread = s.last
		return text
	}
	var b strings.Builder
	if s.broken {
		b.WriteString("[this program has printed something that the terminal does not understand; the screen below is old]\n")
	}
	if s.lost {
		b.WriteString("[… earlier lines have left the screen and are lost …]\n")
	}
	scrolled := s.term.Scrollback()
	for _, line := range scrolled.Lines() {
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	s.term.ClearScrollback()
	s.lost = false
	if b.Len() > 0 {
		b.WriteString("[… what is above has left the screen …]\n")
	}
	return b.String() + s.shown()
}

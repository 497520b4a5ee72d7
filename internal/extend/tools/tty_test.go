//go:build unix

package tools_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// has skips a test where a program is missing.
func has(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("SKIPPED: there is no %s here", p)
		}
	}
}

// on starts a program on a terminal and returns the screen.
func (s *session) on(command string) string {
	s.t.Helper()
	return s.run("bash", args{"command": command, "tty": true})
}

// feed types and presses keys, until something shows up.
func (s *session) feed(input, pattern string, keys ...string) string {
	s.t.Helper()
	a := args{"action": "feed", "keys": keys, "seconds": 20}
	if input != "" {
		a["input"] = input
	}
	if pattern != "" {
		a["pattern"] = pattern
	}
	return s.run("jobs", a)
}

func TestTerminal(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	before := s.run("bash", args{"command": `echo "TERM is ${TERM-unset}"`})
	says(t, s.on("stty size; tty; echo $TERM; test -t 0 && test -t 1 && test -t 2 && echo all"),
		"40 120\n/dev/pts/", "\nxterm-256color\nall\n[exit code 0]")
	says(t, s.on("cd /; exit 3"), "[exit code 3]\n[now in /]")
	if after := s.run("bash", args{"command": `echo "TERM is ${TERM-unset}"`}); after != before {
		t.Errorf("before the terminal %q, after it %q", before, after)
	}
	says(t, s.on(`printf 'a\033[3;5Hb\033[1;1Hc'; read -r x; echo "got $x"`), "c\n\n    b\n", "[still running as job 1")
	says(t, s.feed("word\n", "got"), "got word", "[job 1 ended after")
	says(t, s.on("echo first; sleep 100; echo never"), "[still running as job 2")
	says(t, s.feed("", "", "ctrl-c"), "^C", "[job 2 ended after", "signal 2]")
	says(t, s.on(`read -rsp 'Password: ' p < /dev/tty; echo; echo "${#p} characters"`), "Password:", "[still running as job 3")
	if got := s.feed("secret\n", "characters"); !strings.Contains(got, "6 characters") || strings.Contains(got, "secret") {
		t.Errorf("a password was shown, or did not arrive: %s", got)
	}
	says(t, s.on("echo; cat"), "[still running as job 4")
	says(t, s.run("jobs", args{"action": "feed", "id": "4"}), "[job 4 ended after")
	says(t, s.on("echo; cat"), "job 5")
	s.fails("jobs", args{"action": "feed", "id": "5", "keys": []string{"any"}}, `there is no key "any"; there are enter, tab`)
	s.run("bash", args{"command": "cat", "background": true})
	s.fails("jobs", args{"action": "feed", "id": "6", "keys": []string{"enter"}}, "has no terminal")
}

// TestScrolled keeps lines that have left the screen, once and as far as there is room.
func TestScrolled(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	got := s.on("seq 1000; read -r x; seq 2000 9000; read -r x")
	if !strings.Contains(got, "\n1000\n") { // on a slow machine it pauses
		got += s.run("jobs", args{"action": "wait", "pattern": "1000", "seconds": 20})
	}
	says(t, got, "1\n2\n3\n", "\n960\n", "[… what is above has left the screen …]\n", "\n1000\n[")
	got = s.run("jobs", args{"action": "read"})
	if strings.Contains(got, "\n960\n") || !strings.Contains(got, "1000\n[cursor in line 40, column 1]\n[job 1 running") {
		t.Errorf("the screen is not what is read the second time: %s", got)
	}
	says(t, s.feed("\n", "^9000"), "[… earlier lines have left the screen and are lost …]", "\n8999\n9000\n")
}

// TestQuestionsToTheTerminal checks the answers to a program's questions: where the cursor is, and which terminal this
// is.
func TestQuestionsToTheTerminal(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	says(t, s.on(`stty -echo -icanon; printf 'abc\033[6n'; IFS= read -rsd R where; printf '\033[c'; IFS= read -rsd c what; printf '%q %q\n' `+
		`"$where" "$what"`),
		`'\E[1;4' $'\E[?6`)
}

func TestPython(t *testing.T) {
	t.Parallel()
	has(t, "python3")
	s := newSession(t)
	says(t, s.on("python3 -q"), ">>>", "[still running as job 1")
	says(t, s.feed("6*7\n", "^42"), "42\n")
	says(t, s.feed("for i in range(3):\n    print('line', i)\n\n", "line 2"), "line 0\nline 1\nline 2")
	says(t, s.feed("import getpass; print(len(getpass.getpass('key: ')))\n", "key: "), "key:")
	says(t, s.feed("abcd\n", "^4"), "4\n>>>")
	says(t, s.feed("", "", "ctrl-d"), "[job 1 ended after", "[exit code 0]")
}

func TestDebugger(t *testing.T) {
	t.Parallel()
	has(t, "gdb", "sh")
	s := newSession(t)
	says(t, s.on("gdb -q -nx /bin/sh"), "(gdb)", "[still running as job 1")
	says(t, s.feed("set startup-with-shell off\nprint 6*7\n", `\$1 = 42`), "$1 = 42")
	says(t, s.feed("quit\n", "", "enter"), "[job 1 ended after")
}

func TestPager(t *testing.T) {
	t.Parallel()
	has(t, "less", "seq")
	s := newSession(t)
	got := s.on("seq 500 > list; less list")
	says(t, got, "1\n2\n3\n", "\n39\n", "[still running as job 1")
	says(t, s.feed("", "", "pgdn"), "\n78\n")
	says(t, s.feed("", "", "end"), "\n500\n")
	says(t, s.feed("/^77$\n", ""), "77\n")
	says(t, s.feed("", "", "q"), "[job 1 ended after")
}

func TestEditor(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	if err := os.WriteFile(s.path("f.txt"), []byte("one\ntwo\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, editor := range []string{"vim", "nano", "vi"} {
		if _, err := exec.LookPath(editor); err != nil {
			continue
		}
		t.Run(editor, func(t *testing.T) {
			says(t, s.on(editor+" f.txt"), "one\n", "two\n", "still running as job")
			if editor == "nano" {
				s.feed("new ", "", "down")
				s.feed("", "", "ctrl-o")
				s.feed("", "", "enter")
				says(t, s.feed("", "", "ctrl-x"), "ended after")
			} else {
				says(t, s.feed("inew ", "", "esc"), "new one")
				says(t, s.feed(":wq\n", ""), "ended after")
			}
		})
		data, err := os.ReadFile(s.path("f.txt"))
		if err != nil || !strings.HasPrefix(string(data), "new one\n") {
			t.Errorf("%s has written %q, %v", editor, data, err)
		}
		return
	}
	t.Skip("SKIPPED: there is no vim, nano or vi here")
}

func TestDatabase(t *testing.T) {
	t.Parallel()
	has(t, "psql")
	s := newSession(t)
	says(t, s.on("psql --version"), "psql")
}

// TestCurses drives a program that owns the whole screen and wants single keys.
func TestCurses(t *testing.T) {
	t.Parallel()
	has(t, "python3")
	s := newSession(t)
	program := `import curses
def main(w):
    w.keypad(True)
    n = 0
    while True:
        w.addstr(20, 50, "count %d  " % n)
        k = w.getch()
        if k == curses.KEY_UP: n += 1
        elif k == curses.KEY_F5: n += 10
        elif k == ord("q"): return
curses.wrapper(main)
print("left")
`
	if err := os.WriteFile(s.path("c.py"), []byte(program), 0o644); err != nil {
		t.Fatal(err)
	}
	says(t, s.on("python3 c.py"), "\n"+strings.Repeat(" ", 50)+"count 0\n", "[still running as job 1")
	says(t, s.feed("", "", "up", "up", "f5"), "count 12\n", "[cursor in line 21, column ")
	says(t, s.feed("q", "nothing, but the end"), "left", "[exit code 0]]")
}

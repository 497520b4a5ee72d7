//go:build unix

package tools_test

import (
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
)

// postgres starts a real server that listens on a socket in its own folder. It returns the folder and the beginning of
// a command that talks to it.
func postgres(t *testing.T) (dir, as string) {
	t.Helper()
	has(t, "psql")
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pg_ctl")
	if found == nil {
		t.Skip("SKIPPED: there is no server of PostgreSQL here")
	}
	bin := filepath.Dir(found[len(found)-1])
	dir, err := os.MkdirTemp("", "pg") // its sockets want a short path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if os.Getuid() == 0 { // the server refuses to run as root
		if _, err := user.Lookup("postgres"); err != nil {
			t.Skip("SKIPPED: the server does not run as root, and there is no user postgres")
		}
		has(t, "runuser")
		as = "runuser -u postgres -- "
		if out, err := exec.Command("chown", "postgres", dir).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	run := func(line string) {
		t.Helper()
		cmd := exec.Command("sh", "-c", as+line)
		cmd.Dir = dir
		if out, err := cmd.Output(); err != nil {
			t.Fatalf("%s: %v: %s", line, err, out)
		}
	}
	run(bin + "/initdb -D " + dir + "/data -A trust -U postgres")
	run(bin + "/pg_ctl -D " + dir + "/data -w -l " + dir + "/log -o \"-k " + dir + " -c listen_addresses=\" start >/dev/null")
	t.Cleanup(func() { run(bin + "/pg_ctl -D " + dir + "/data -w -m immediate stop") })
	return dir, as
}

// TestPsql talks to a real database on a terminal.
func TestPsql(t *testing.T) {
	t.Parallel()
	dir, as := postgres(t)
	s := newSession(t)
	says(t, s.on("PAGER=cat "+strings.TrimSpace(as)+" psql -h "+dir+" -U postgres"), "postgres=#")
	says(t, s.feed("create table things (name text); insert into things values ('lamp');\n", "INSERT 0 1"), "CREATE TABLE")
	says(t, s.feed("select * from things;\n", `\(1 row\)`), "lamp")
	says(t, s.feed("\\q\n", ""), "[job 1 ended after", "exit code 0")
}

package command

import (
	"bytes"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/inspan/inspan/internal/front/console"
	"github.com/inspan/inspan/internal/install/setup"
)

// manDir is where TestManPages leaves its pages; scripts/release takes them from there.
var manDir = flag.String("man", "", "folder to write the man pages to")

// prints runs the command and returns its output.
func prints(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	t.Setenv("INSPAN_CONFIG_DIR", t.TempDir())
	t.Setenv("INSPAN_STATE_DIR", t.TempDir())
	var o, e bytes.Buffer
	code = Program{}.Main(args, strings.NewReader(""), &o, &e)
	return code, o.String(), e.String()
}

// TestManPages checks that every command has a man page with the content of its help.
func TestManPages(t *testing.T) {
	dir := t.TempDir()
	if *manDir != "" {
		dir = *manDir
	}
	root := (&command{in: strings.NewReader(""), console: &console.Console{Out: io.Discard, Err: io.Discard}}).root()
	root.DisableAutoGenTag = true
	for _, cmd := range root.Commands() {
		cmd.Hidden = cmd.GroupID == "" // those that few need have a page too
	}
	if err := doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "inspan " + setup.Version(), Manual: "inspan"}, dir); err != nil {
		t.Fatal(err)
	}
	var each func(cmd *cobra.Command)
	each = func(cmd *cobra.Command) {
		if !cmd.IsAvailableCommand() && cmd != root {
			return
		}
		name := strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".1"
		page, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
			return
		}
		for _, section := range []string{".SH NAME", ".SH SYNOPSIS"} {
			if !bytes.Contains(page, []byte(section)) {
				t.Errorf("%s lacks %s", name, section)
			}
		}
		renders(t, filepath.Join(dir, name))
		for _, sub := range cmd.Commands() {
			each(sub)
		}
	}
	each(root)
}

// renders holds that the man program has nothing to complain of, where there is one.
func renders(t *testing.T, page string) {
	t.Helper()
	if _, err := exec.LookPath("groff"); err != nil {
		return
	}
	out, err := exec.CommandContext(t.Context(), "groff", "-man", "-Tutf8", "-ww", "-z", page).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("%s: %v\n%s", filepath.Base(page), err, out)
	}
}

// TestCompletions checks that the scripts for shells are there, and that the shell at hand reads them.
func TestCompletions(t *testing.T) {
	for shell, want := range map[string]string{
		"bash": "__start_inspan", "zsh": "#compdef inspan", "fish": "complete -c inspan", "powershell": "Register-ArgumentCompleter",
	} {
		code, out, errs := prints(t, "completion", shell)
		if code != 0 || errs != "" || !strings.Contains(out, want) {
			t.Errorf("%s: code %d, %s%.300s", shell, code, errs, out)
		}
		if _, err := exec.LookPath(shell); err != nil || shell == "powershell" {
			continue
		}
		check := exec.CommandContext(t.Context(), shell, "-n")
		check.Stdin = strings.NewReader(out)
		if said, err := check.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", shell, err, said)
		}
	}
}

// TestVersionCheck looks for a newer release with one request, which reveals nothing about its sender.
func TestVersionCheck(t *testing.T) {
	for body, want := range map[string]string{
		`[{"tag_name":"v0.1.0"},{"tag_name":"v9.9.0-rc.1","prerelease":true},{"tag_name":"v8.0.0","draft":true},{"tag_name":"nightly"}]`: "" +
			"This is up to date; the newest release is v0.1.0.\n",
		`[{"tag_name":"v9.2.0","html_url":"https://a.example/9.2"},{"tag_name":"v9.10.0","html_url":"https://a.example/9.10"}]`: "" +
			"v9.10.0 is available: https://a.example/9.10\nTo update, " + updates() + "\n",
	} {
		var asked []*http.Request
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked = append(asked, r)
			_, _ = io.WriteString(w, body)
		}))
		code, out, errs := prints(t, "version", "--check", "--from", s.URL+"/releases")
		s.Close()
		if code != 0 || errs != "" || !strings.HasSuffix(out, want) || !strings.HasPrefix(out, "inspan "+setup.Version()+" ") {
			t.Errorf("code %d: %s%s", code, out, errs)
		}
		if len(asked) != 1 {
			t.Fatalf("%d requests", len(asked))
		}
		r := asked[0]
		r.Header.Del("Accept-Encoding")
		r.Header.Del("Connection")
		if r.Method != http.MethodGet || r.URL.String() != "/releases" || len(r.Header) != 1 || r.UserAgent() != "inspan" {
			t.Errorf("it sends %s %s %v", r.Method, r.URL, r.Header)
		}
	}
}

// TestVersionCheckFails checks that the failure is reported, and the version is printed all the same.
func TestVersionCheckFails(t *testing.T) {
	status, body := 0, ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	defer s.Close()
	for _, tc := range []struct {
		status     int
		body, want string
	}{
		{404, "", "does not exist (404)"},
		{403, "", "limits requests (403); try again in an hour"},
		{500, "", "answered 500 Internal Server Error"},
		{200, "<html>", "sent no list of releases"},
		{200, "[]", "lists no release yet"},
		{200, `[{"tag_name":"v1.0.0","draft":true}]`, "lists no release yet"},
		{200, strings.Repeat(" ", 5<<20), "the list of releases is too long"},
	} {
		status, body = tc.status, tc.body
		code, out, errs := prints(t, "version", "--check", "--from", s.URL)
		if code != 1 || !strings.HasPrefix(out, "inspan ") || !strings.Contains(errs, tc.want) {
			t.Errorf("%+v: code %d: %s%s", tc, code, out, errs)
		}
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	if code, _, errs := prints(t, "version", "--check", "--from", gone.URL); code != 1 || !strings.Contains(errs, "connection refused") {
		t.Errorf("code %d: %s", code, errs)
	}
}

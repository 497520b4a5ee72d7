package command

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/inspan/inspan/internal/testkit"
)

// reads is a file of the state folder.
func (h home) reads(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(filepath.Dir(h.store().Dir), name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestOtherUserGetsNothing has another user of the machine look for session content, tokens and codes in processes,
// folders, temporary files and at the port, while a detached session with a command, an attached person and the page's
// server run.
func TestOtherUserGetsNothing(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("ANOTHER USER CAN'T BE TRIED HERE: only root can start its processes")
	}
	h := withoutModel(t)
	const word = "amber-lantern-4711"
	for at := h.dir; at != os.TempDir() && at != "/"; at = filepath.Dir(at) {
		if err := os.Chmod(at, 0o755); err != nil { // as a home folder may be
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(h.work, "note"), []byte(word+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	id := h.detaches(t, "--mode", "auto", "bash: cat note; cat note > /tmp/copy\nbash: touch ready; until [ -e go ]; do sleep 0.05; done")
	testkit.WaitFor(t, "the command", func() bool { return h.has("ready") })
	attached := h.attached(t, "attach", id)
	web := h.attached(t, "web", "--no-open", "--listen", "127.0.0.1:0")
	web.Shows("the page is at ", 1)
	address := strings.TrimSpace(h.reads(t, "server.address"))
	token := strings.TrimSpace(h.reads(t, "server.token"))
	// It greps its own command line too, so the words have a bracket there.
	look := func(user uint32) string {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", `cd /
			grep -lasE "$1" /proc/[0-9]*/cmdline /proc/[0-9]*/environ
			grep -rlasE "$1" "$2"
			find /tmp /var/tmp -maxdepth 2 -path '*inspan*' -newer "$2" -type f -readable 2>/dev/null
			for at in / /inbox /page/app.js /metrics /openapi.json /api/v1/board /api/v1/tasks /healthz; do curl -s -m 20 "http://$3$at" | grep -aoE "$1"; done
			curl -s -m 20 -o /dev/null -w '%{http_code}' "http://$3/api/v1/board" | grep 200
			curl -s -m 20 -o /dev/null -w '%{http_code}' -X POST "http://$3/api/v1/codes" | grep 20
			true`, "sh", "[a]mber-lantern|[i]nspan-code-[a-z0-9]{8}|["+token[:1]+"]"+token[1:], h.dir, address)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
		cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatal(err, string(out))
		}
		return string(out)
	}
	if out := look(0); !strings.Contains(out, "log.jsonl") || !strings.Contains(out, "sign-in.html") || !strings.Contains(out, "server.token") {
		t.Fatalf("whoever may see all finds only %s", out)
	}
	if out := look(1234); out != "" {
		t.Errorf("another user gets %s", out)
	}
	if err := os.WriteFile(filepath.Join(h.work, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	attached.Ends(0)
	if err := web.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	web.WaitFor("its end", web.Over)
}

package command

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/kernel/session"
)

// mounted runs a shell script with mounts of its own, as in a container: $INSPAN is the
// command, $STATE the folder of its state. It skips where users may not have namespaces.
func (h home) mounted(t *testing.T, script string) string {
	t.Helper()
	if exec.CommandContext(t.Context(), "unshare", "-Urm", "true").Run() != nil {
		fmt.Fprintln(os.Stderr, "SKIPPED "+t.Name()+": no namespaces for users here")
		t.Skip("no namespaces for users here")
	}
	return h.shell(t, "unshare", "-Urm", "sh", "-c", script)
}

// shell runs a program with the environment of the home and returns all it prints.
func (h home) shell(t *testing.T, argv ...string) string {
	t.Helper()
	cmd := h.command(t.Context())
	path, err := exec.LookPath(argv[0])
	if err != nil {
		t.Skip(err)
	}
	cmd.Path, cmd.Args = path, argv
	cmd.Env = append(cmd.Env, "INSPAN="+h.bin, "STATE="+filepath.Join(h.dir, "state"))
	out, _ := cmd.CombinedOutput()
	return string(out)
}

// scripted runs a task with the scripted model and returns the id of its session.
func (h home) scripted(t *testing.T, task string) string {
	t.Helper()
	out, err := h.command(t.Context(), "run", "--model", "script", "--mode", "yolo", task).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	id, err := h.store().Resolve(t.Context(), "last")
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// TestReadOnlyState checks that a state folder on a read-only disk shows its sessions, and that commands that would
// change them say why they can't.
func TestReadOnlyState(t *testing.T) {
	t.Parallel()
	h := newHome(t, "http://127.0.0.1:1")
	id := h.scripted(t, "bash: echo told-$((40+2))")
	readOnly := `mount --bind "$STATE" "$STATE" && mount -o remount,ro,bind "$STATE" || exit 9; `
	for args, want := range map[string]string{
		"sessions list":           " done ",
		"sessions show last":      "told-42",
		"sessions export last":    "told-42",
		"sessions search told-42": id,
		"sessions fsck":           id + ": ok",
		"sessions fsck --repair":  id + ": ok",
		"cost":                    id,
		"ps":                      "no session is running",
		"resume last again":       "read-only",
		"send last again":         "read-only",
		"run --model script hi":   "read-only",
		"sessions rm --yes last":  "read-only",
		"sessions fork last":      "read-only",
	} {
		out := h.mounted(t, readOnly+`"$INSPAN" `+args+` </dev/null`)
		if !strings.Contains(out, want) || strings.Contains(out, "DAMAGED") || strings.Contains(out, "there is no session") {
			t.Errorf("inspan %s, want %q:\n%s", args, want, out)
		}
	}
}

// TestLargeDamage writes NUL bytes over two thirds of the log of a finished run, and then noise over all of it: the
// damage is reported, nothing is cut, and nothing is resumed.
func TestLargeDamage(t *testing.T) {
	t.Parallel()
	h := newHome(t, "http://127.0.0.1:1")
	id := h.scripted(t, "bash: seq 3000")
	path := filepath.Join(h.store().Dir, id, "log.jsonl")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	nul := bytes.Clone(whole)
	clear(nul[len(nul)/3:])
	_, last, _ := bytes.Cut(whole, []byte("\n"))
	for name, data := range map[string][]byte{
		"NUL from a third on": nul, "only NUL": make([]byte, len(whole)), "noise": bytes.Repeat([]byte("noise\xff"), 7000),
		"without its beginning": last, "one third": whole[:len(whole)/3], "nothing": {},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			for args, want := range map[string]string{
				"sessions show " + id: "damaged", "sessions list": "DAMAGED", "sessions fsck " + id: "damaged",
				"sessions fsck --repair " + id: "damaged", "resume " + id + " again": "damaged", "send " + id + " again": "damaged",
			} {
				out, _ := h.command(t.Context(), strings.Fields(args)...).CombinedOutput()
				if !strings.Contains(string(out), want) || strings.Contains(string(out), ": ok") {
					t.Errorf("inspan %s:\n%s", args, out)
				}
			}
			if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, data) {
				t.Errorf("the log of %d bytes has %d now, %v", len(data), len(now), err)
			}
		})
	}
}

// TestNoBeginning checks that a log that never got its first events, as older versions left them, is neither resumed
// nor offered.
func TestNoBeginning(t *testing.T) {
	t.Parallel()
	h := newHome(t, "http://127.0.0.1:1")
	id := h.scripted(t, "bash: true")
	for name, data := range map[string][]byte{"empty": nil, "NUL": make([]byte, 5000)} {
		if err := os.RemoveAll(filepath.Join(h.store().Dir, id, "lock")); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(h.store().Dir, id, "log.jsonl"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		_, _ = h.command(t.Context(), "send", id, "go on").CombinedOutput() // a version before cut it, and noted that
		for _, args := range [][]string{{"resume", id, "again"}, {"resume", "again, please"}, {"resume", "last", "again"}} {
			out, err := h.command(t.Context(), args...).CombinedOutput()
			if err == nil || bytes.Contains(out, []byte("mode")) && !bytes.Contains(out, []byte("can't be resumed")) {
				t.Errorf("%s: inspan %q:\n%s", name, args, out)
			}
		}
	}
	if _, err := (&session.Store{Dir: h.store().Dir}).List(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestFoldersThatDoNotSync lets the kernel answer EINVAL to every sync of a folder, as some
// file systems do.
func TestFoldersThatDoNotSync(t *testing.T) {
	t.Parallel()
	h := newHome(t, "http://127.0.0.1:1")
	strace, err := exec.LookPath("strace")
	if err != nil || !canInject(t, strace) {
		fmt.Fprintln(os.Stderr, "SKIPPED TestFoldersThatDoNotSync: strace can not trace here")
		t.Skip("strace can not trace here")
	}
	trace, sessions := filepath.Join(h.dir, "trace"), h.store().Dir
	if err := os.MkdirAll(sessions, 0o700); err != nil {
		t.Fatal(err)
	}
	out := h.shell(t, strace, "-f", "--seccomp-bpf", "-qq", "-o", trace, "-P",
		sessions, "-P", h.work, "-e", "trace=fsync", "-e", "inject=fsync:error=EINVAL",
		h.bin, "run", "--model", "script", "--mode", "yolo", `call: write_file {"path":"made","content":"x"}`)
	if seen, err := os.ReadFile(trace); err != nil || !bytes.Contains(seen, []byte("INJECTED")) {
		t.Fatalf("no sync was refused: %v\n%s", err, out)
	}
	if _, err := os.Stat(filepath.Join(h.work, "made")); err != nil || !strings.Contains(out, "done ·") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestStateGoes takes the state folder away from a run, in every way it can go: the run notices and fails, because
// nothing more would be kept.
func TestStateGoes(t *testing.T) {
	t.Parallel()
	const task = "bash: sleep 0.2\nbash: touch ready; while test ! -e gone; do sleep 0.05; done\nbash: echo more"
	for name, takes := range map[string]string{
		"renamed":   `mv "$STATE" "$STATE.away"`,
		"removed":   `rm -rf "$STATE"`,
		"unmounted": `umount -l "$STATE"`,
	} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t, "http://127.0.0.1:1")
			out := h.mounted(t, `mkdir -p "$STATE"; test `+name+` != unmounted || mount -t tmpfs x "$STATE" || exit 9
"$INSPAN" run --model script --mode yolo '`+task+`' & run=$!
for i in $(seq 400); do test -e ready && break; sleep 0.05; done
`+takes+`; touch gone; wait $run; echo "exit $?"`)
			if !strings.Contains(out, "exit 1") || strings.Contains(out, "✓ more") {
				t.Errorf("%s", out)
			}
		})
	}
}

// TestRemoveOnFullDisk removes sessions from a disk without room for a file or for a byte.
func TestRemoveOnFullDisk(t *testing.T) {
	t.Parallel()
	for name, fill := range map[string]string{
		"bytes": `mount -t tmpfs -o size=512k x "$STATE"; never; head -c 9999999 /dev/zero >"$STATE/fill"`,
		"files": `mount -t tmpfs -o nr_inodes=70 x "$STATE"; never; for i in $(seq 100); do touch "$STATE/$i"; done`,
	} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t, "http://127.0.0.1:1")
			out := h.mounted(t, `mkdir -p "$STATE"
never() { "$INSPAN" run --model script --mode yolo 'bash: true'; cd "$STATE/sessions"; ls -d 2* >"$HOME/ids"; cp -r "$(cat "$HOME/ids")" 20261121-131502-k3f9; rm 20261121-131502-k3f9/lease; }
`+fill+` 2>/dev/null
"$INSPAN" sessions rm 20261121-131502-k3f9 "$(cat "$HOME/ids")"; echo "exit $?"; ls | grep "^2"`)
			if !strings.Contains(out, "exit 0") || strings.Count(out, "removed ") != 2 || !strings.HasSuffix(out, "exit 0\n") {
				t.Errorf("%s", out)
			}
		})
	}
}

// TestSmallLimits checks that limits too small for a session are named, with their cure.
func TestSmallLimits(t *testing.T) {
	t.Parallel()
	h := newHome(t, "http://127.0.0.1:1")
	for limit, want := range map[string]string{
		"-n 24": "only 24 files may be open", "-v 1400000": "MB of address space",
	} {
		out := h.shell(t, "sh", "-c", "ulimit "+limit+`; "$INSPAN" run --model script --mode auto 'bash: echo hi'; echo "exit $?"`)
		if !strings.Contains(out, want) || !strings.Contains(out, "ulimit ") || strings.Contains(out, "exit 0") {
			t.Errorf("ulimit %s:\n%s", limit, out)
		}
	}
}

// TestNoHome checks that a user without a home folder needs to name one folder.
func TestNoHome(t *testing.T) {
	t.Parallel()
	h := newHome(t, "http://127.0.0.1:1")
	for variable, want := range map[string]bool{
		"INSPAN_STATE_DIR=" + filepath.Join(h.dir, "a"): true, "INSPAN_CONFIG_DIR=" + filepath.Join(h.dir, "b"): true, "X=y": false,
	} {
		cmd := h.command(t.Context(), "run", "--model", "script", "hello")
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), variable}
		if out, err := cmd.CombinedOutput(); (err == nil) != want || !want && !bytes.Contains(out, []byte("set HOME, or INSPAN_STATE_DIR")) {
			t.Errorf("%s: %v\n%s", variable, err, out)
		}
	}
}

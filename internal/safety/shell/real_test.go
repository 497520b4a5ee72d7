package shell

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestReadsOnlyRead runs every command of the corpus that is called a read
// under a trace, and checks that it wrote nothing, ran nothing that was not in
// its plan and connected to nothing.
func TestReadsOnlyRead(t *testing.T) {
	if testing.Short() {
		t.Skip("runs hundreds of programs")
	}
	for _, tool := range []string{"strace", "git", "bash"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("NOT CHECKED AGAINST REAL PROGRAMS: %s is missing", tool)
		}
	}
	var reads []string
	for _, e := range examples(t) {
		if e.class == Read {
			reads = append(reads, e.command)
		}
	}
	var all sync.WaitGroup
	var missing, ran sync.Map
	const lanes = 4
	for lane := range lanes {
		w := newWorkshop(t)
		all.Go(func() {
			for i := lane; i < len(reads); i += lanes {
				if w.check(t, reads[i]) {
					ran.Store(i, true)
				} else {
					missing.Store(reads[i], true)
				}
			}
		})
	}
	all.Wait()
	done, left := 0, []string{}
	ran.Range(func(any, any) bool { done++; return true })
	missing.Range(func(c, _ any) bool { left = append(left, c.(string)); return true })
	slices.Sort(left)
	t.Logf("%d of %d reads ran; programs are missing here for %q", done, len(reads), left)
}

// workshop is a scratch repository and a home folder.
type workshop struct{ dir, trace string }

func (w workshop) root() string { return filepath.Join(w.dir, "repo") }
func (w workshop) home() string { return filepath.Join(w.dir, "home") }

func newWorkshop(t *testing.T) workshop {
	t.Helper()
	w := workshop{dir: t.TempDir()}
	w.trace = filepath.Join(t.TempDir(), "trace")
	for _, dir := range []string{w.root(), w.home()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	setup := `set -e
git init -q -b main . && git config user.name me && git config user.email me@example.com
mkdir src docs
printf '# Title\nTODO foo\nbar\n' > README.md; printf 'module x\n' > go.mod; printf '{"a": [1, 2]}' > data.json
printf 'a,3\nb,10\n' > data.csv; printf 'package main\n\nfunc main() {\n\tfoo()\n}\n' > src/main.go
cp src/main.go src/util.go; printf 'text\n' > docs/a.md; printf 'text\n' > notes.txt
git add . && git commit -q -m first && printf 'more\n' >> README.md && git diff > p.patch && git commit -qam fix
git branch feature && git tag v1 && git remote add origin /nowhere
printf 'left\n' >> notes.txt && git stash -q
: > --output=pwned.md; : > -opwned.md; : > -i.go; : > -fpwned.go; : > --compress-program=pwned.md; : > src/-opwned.go; : > --pre=pwned
tar cf a.tar src && tar czf a.tgz src && (zip -q a.zip README.md || true) && printf 'changed\n' >> go.mod`
	cmd := exec.Command("bash", "-c", setup)
	cmd.Dir, cmd.Env = w.root(), w.env()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("setup: %v\n%s", err, out)
	}
	return w
}

func (w workshop) env() []string {
	return []string{
		"PATH=/usr/bin:/bin:/usr/sbin:/sbin", "HOME=" + w.home(),
		"GIT_OPTIONAL_LOCKS=0", "GIT_CONFIG_NOSYSTEM=1", "TERM=dumb", "x=value",
	}
}

// check reports whether the programs of the command were there.
func (w workshop) check(t *testing.T, command string) bool {
	plan := Explain(command, Place{Root: w.root(), Cwd: w.root(), Home: w.home()})
	before := w.digest(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	calls := "trace=execve,execveat,open,openat,openat2,creat,connect,bind,unlink,unlinkat,rename,renameat,renameat2,mkdir,mkdirat,rmdir,link,linkat,symlink,symlinkat," +
		"truncate,chmod,fchmod,fchmodat,chown,fchown,fchownat,lchown,mknod,mknodat,utimensat,sethostname,setdomainname,settimeofday,clock_settime,mount,umount2,reboot,setxattr"
	cmd := exec.CommandContext(ctx, "strace", "-f", "-qq", "--seccomp-bpf", "-s", "512", "-e", calls, "-e", "signal=none", "-o", w.trace,
		"bash", "--noprofile", "--norc", "-c", command)
	cmd.Dir, cmd.Env, cmd.WaitDelay = w.root(), w.env(), time.Second
	err := cmd.Run()
	if ctx.Err() != nil {
		t.Errorf("%s: did not end", command)
	}
	trace, readErr := os.ReadFile(w.trace)
	if readErr != nil {
		t.Fatal(readErr)
	}
	for _, bad := range violations(string(trace), allowedPrograms(plan)) {
		t.Errorf("%s: %s", command, bad)
	}
	if after := w.digest(t); after != before {
		t.Errorf("%s: files were changed", command)
	}
	var exit *exec.ExitError
	return !errors.As(err, &exit) || exit.ExitCode() != 127
}

// digest is of all names, modes, times and contents in the workshop.
func (w workshop) digest(t *testing.T) string {
	h := sha256.New()
	err := filepath.WalkDir(w.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintln(h, path, info.Mode(), info.ModTime().UnixNano(), info.Size())
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return string(h.Sum(nil))
}

// helpers are programs that proven readers are known to be made of.
func allowedPrograms(p Plan) []string {
	allowed := []string{"bash"}
	helpers := map[string][]string{
		"tar": {"gzip", "sh"}, "sdiff": {"diff"}, "diff3": {"diff"}, "which": {"which.debianutils", "sh"}, "git": {"git"},
		"egrep": {"grep", "sh"}, "fgrep": {"grep", "sh"}, "zcat": {"gzip", "sh"}, "yq": {"jq", "python3"}, "awk": {"mawk", "gawk"},
	}
	for _, s := range p.Segments {
		words := s.Argv
		if words == nil {
			words = strings.Fields(s.Text)
		}
		for _, word := range words {
			name := filepath.Base(strings.Trim(word, `\'"`))
			allowed = append(append(allowed, name), helpers[name]...)
			if name == "xargs" {
				allowed = append(allowed, "echo")
			}
		}
	}
	return allowed
}

var (
	traced   = regexp.MustCompile(`^\d+ +([a-z0-9_]+)\((.*)\) += (-?\d+|\?)`)
	quoted   = regexp.MustCompile(`"([^"]*)"`)
	writable = regexp.MustCompile(`O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_APPEND`)
)

// violations lists the system calls of a trace that a read must not make.
func violations(trace string, programs []string) []string {
	var out []string
	for line := range strings.Lines(trace) {
		m := traced.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		call, args, result := m[1], m[2], m[3]
		path := ""
		if q := quoted.FindStringSubmatch(args); q != nil {
			path = q[1]
		}
		switch call {
		case "execve", "execveat":
			if result == "0" && !slices.Contains(programs, filepath.Base(path)) {
				out = append(out, "it ran "+path)
			}
		case "open", "openat", "openat2":
			if writable.MatchString(args) && !strings.HasPrefix(path, "/dev/") {
				out = append(out, "it opened "+path+" for writing")
			}
		case "connect":
			if !strings.Contains(args, "nscd/socket") && !strings.Contains(args, "AF_NETLINK") {
				out = append(out, "it connected: "+args)
			}
		case "bind":
			if !strings.Contains(args, "AF_NETLINK") {
				out = append(out, "it bound: "+args)
			}
		default:
			out = append(out, "it called "+strings.TrimSpace(line))
		}
	}
	return out
}

// TestViolations shows that the trace would tell.
func TestViolations(t *testing.T) {
	trace := `10 execve("/usr/bin/ls", ["ls"], 0x7 /* 3 vars */) = 0
10 openat(AT_FDCWD, "README.md", O_RDONLY) = 3
10 openat(AT_FDCWD, "/dev/null", O_WRONLY) = 3
10 execve("/tmp/evil", ["ls"], 0x7 /* 3 vars */) = 0
10 openat(AT_FDCWD, "x", O_WRONLY|O_CREAT, 0666) = -1 EACCES (Permission denied)
10 connect(3, {sa_family=AF_INET, sin_port=htons(53)}, 16) = 0
10 unlink("x") = 0
`
	if got := violations(trace, []string{"ls"}); len(got) != 4 {
		t.Errorf("got %q", got)
	}
}

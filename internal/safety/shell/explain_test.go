package shell

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/tool"
)

func TestSegments(t *testing.T) {
	type seg struct {
		Text, Argv string
		Class      Class
		Depth      int
		Prefix     string
	}
	tests := []struct {
		command string
		want    []seg
	}{
		{"ls -l | wc", []seg{{"ls -l", "ls|-l", Read, 0, "ls"}, {"wc", "wc", Read, 0, "wc"}}},
		{"timeout 5 git push origin", []seg{
			{"timeout 5 git push origin", "timeout|5|git|push|origin", Read, 0, ""},
			{"git push origin", "git|push|origin", Full, 1, "git push"},
		}},
		{`echo "$(npm test)"`, []seg{{`echo "$(npm test)"`, "", Read, 0, "echo"}, {"npm test", "npm|test", Full, 1, "npm test"}}},
		{"sh -c 'ls; go test ./...'", []seg{
			{"sh -c 'ls; go test ./...'", "sh|-c|ls; go test ./...", Read, 0, ""},
			{"ls", "ls", Read, 1, "ls"},
			{"go test ./...", "go|test|./...", Full, 1, "go test"},
		}},
		{"sudo rm -rf x", []seg{{"sudo rm -rf x", "sudo|rm|-rf|x", Full, 0, ""}, {"rm -rf x", "rm|-rf|x", Full, 1, ""}}},
		{"PATH=. git push", []seg{{"PATH=. git push", "git|push", Full, 0, ""}}},
		{"git push > /etc/x", []seg{{"git push > /etc/x", "git|push", Full, 0, ""}}},
		{"docker compose up -d", []seg{{"docker compose up -d", "docker|compose|up|-d", Full, 0, "docker compose up"}}},
		{"npm run build", []seg{{"npm run build", "npm|run|build", Full, 0, "npm run build"}}},
		{"git -c a.b=c push", []seg{{"git -c a.b=c push", "git|-c|a.b=c|push", Full, 0, ""}}},
		{"python3 x.py", []seg{{"python3 x.py", "python3|x.py", Full, 0, ""}}},
		{"./run.sh fast", []seg{{"./run.sh fast", "./run.sh|fast", Full, 0, "./run.sh"}}},
		{"find . -exec rm {} +", []seg{{"find . -exec rm {} +", "find|.|-exec|rm|{}|+", Read, 0, ""}, {"rm .…", "", Full, 1, ""}}},
		{"sort -o /x a", []seg{{"sort -o /x a", "sort|-o|/x|a", Full, 0, ""}}},
		{"uniq a /x", []seg{{"uniq a /x", "uniq|a|/x", Full, 0, ""}}},
		{"mytool --all", []seg{{"mytool --all", "mytool|--all", Full, 0, "mytool"}}},
		{"/usr/bin/mytool", []seg{{"/usr/bin/mytool", "/usr/bin/mytool", Full, 0, ""}}},
		{"$x push", []seg{{"$x push", "", Full, 0, ""}}},
		{"xargs rm", []seg{{"xargs rm", "xargs|rm", Read, 0, ""}, {"rm …", "", Full, 1, ""}}},
		{"go run .", []seg{{"go run .", "go|run|.", Full, 0, ""}}},
		{"f() { rm -r x; }", []seg{{"f() { rm -r x; }", "", Full, 0, ""}, {"rm -r x", "rm|-r|x", Full, 1, ""}}},
		{"ls 'a b' # note", []seg{{"ls 'a b'", "ls|a b", Read, 0, "ls"}}},
	}
	for _, tt := range tests {
		var got []seg
		for _, s := range Explain(tt.command, repo()).Segments {
			got = append(got, seg{s.Text, strings.Join(s.Argv, "|"), s.Class, s.Depth, strings.Join(s.Prefix, " ")})
			if (s.Class == Read) != (s.Why == "") {
				t.Errorf("%s: %q is %s because %q", tt.command, s.Text, s.Class, s.Why)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", tt.command, diff)
		}
	}
}

func TestEffects(t *testing.T) {
	read := func(p string) tool.Effect { return tool.Effect{Kind: tool.Read, Path: p} }
	write := func(p string) tool.Effect { return tool.Effect{Kind: tool.Write, Path: p} }
	execute := func(text string) tool.Effect { return tool.Effect{Kind: tool.Execute, Text: text} }
	host := func(text string) tool.Effect { return tool.Effect{Kind: tool.Network, Text: text} }
	tests := []struct {
		command string
		want    []tool.Effect
	}{
		{"", nil},
		{"echo hi", nil},
		{"cat a ../b /etc/c ~/d", []tool.Effect{read("/srv/repo/a"), read("/srv/b"), read("/etc/c"), read("/home/me/d")}},
		{"cat < a", []tool.Effect{read("/srv/repo/a")}},
		{"cat src/*.go", []tool.Effect{read("/srv/repo/src")}},
		{"cat src/*/../../../x", []tool.Effect{read("/")}},
		{`cat "$x"`, []tool.Effect{read("/")}},
		{`cat "$HOME/.ssh/id"`, []tool.Effect{read("/home/me/.ssh/id")}},
		{"cd src && cat a", []tool.Effect{read("/srv/repo/src/a")}},
		{"cd src; cat a", []tool.Effect{read("/srv/repo/src/a"), read("/srv/repo/a")}},
		{"cd src || cat a", []tool.Effect{read("/srv/repo/a")}},
		{"(cd src); cat a", []tool.Effect{read("/srv/repo/a")}},
		{"cd -; cat a", []tool.Effect{read("/")}},
		{"cd src && cd .. && cat a", []tool.Effect{read("/srv/repo/a")}},
		{"if cd src; then cat a; fi", []tool.Effect{read("/srv/repo/src/a")}},
		{`for f in a b; do cat "$f"; done`, []tool.Effect{read("/srv/repo/a"), read("/srv/repo/b")}},
		{`for f in a b; do cat "$f/../../x"; done`, []tool.Effect{read("/")}},
		{`for f in src/*; do cat "$f"; done`, []tool.Effect{read("/srv/repo/src")}},
		{"grep -f pat x in", []tool.Effect{read("/srv/repo/pat"), read("/srv/repo/x"), read("/srv/repo/in")}},
		{"grep foo in", []tool.Effect{read("/srv/repo/in")}},
		{"grep -r foo", []tool.Effect{read("/srv/repo")}},
		{"rg --files /etc", []tool.Effect{read("/etc")}},
		{"ls", []tool.Effect{read("/srv/repo")}},
		{"tar tf x.tar a", []tool.Effect{read("/srv/repo/x.tar")}},
		{"find src -exec cat {} +", []tool.Effect{read("/srv/repo/src")}},
		{"diff <(sort a) b", []tool.Effect{read("/srv/repo/b"), read("/srv/repo/a")}},
		{"git diff /etc/a /etc/b", []tool.Effect{read("/srv/repo"), read("/etc/a"), read("/etc/b")}},
		{"env", nil}, // its own environment, which is made from a list,
		{"sort -o out in", []tool.Effect{write("/srv/repo/out"), read("/srv/repo/in")}},
		{"ls > out 2>/dev/null", []tool.Effect{write("/srv/repo/out"), read("/srv/repo")}},
		{"cp a b", []tool.Effect{write("/srv/repo/b"), read("/srv/repo/a")}},
		{"make", []tool.Effect{execute("make")}},
		{"curl -s https://me@example.com:8080/x", []tool.Effect{execute("curl -s https://me@example.com:8080/x"), host("example.com")}},
		{"curl -s localhost:8123/x", []tool.Effect{execute("curl -s localhost:8123/x"), host("localhost")}},
		{
			"curl -sd '{\"to\":1}' -d http://example.com '[::1]:80'",
			[]tool.Effect{execute("curl -sd '{\"to\":1}' -d http://example.com '[::1]:80'"), host("[::1]")},
		},
		{"wget -qO- 127.0.0.1", []tool.Effect{execute("wget -qO- 127.0.0.1"), host("127.0.0.1")}},
		{"nc -z localhost 80", []tool.Effect{execute("nc -z localhost 80"), host("localhost")}},
		{"curl -o localhost example.com", []tool.Effect{execute("curl -o localhost example.com"), host("*")}},
		{"curl localhost.example.com", []tool.Effect{execute("curl localhost.example.com"), host("*")}},
		{"git clone git@example.com:a/b", []tool.Effect{execute("git clone git@example.com:a/b"), host("example.com")}},
		{"git push", []tool.Effect{execute("git push"), host("*")}},
		{"ssh me@example.com ls", []tool.Effect{execute("ssh me@example.com ls"), host("example.com")}},
		{"cat </dev/tcp/example.com/80", []tool.Effect{execute("cat </dev/tcp/example.com/80"), host("example.com")}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, Explain(tt.command, repo()).Effects); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", tt.command, diff)
		}
	}
}

// TestGit checks that a plan says when it rests on the repository.
func TestGit(t *testing.T) {
	for command, want := range map[string]bool{"ls": false, "git status": true, "echo $(git log -1)": true, "git --version": false} {
		if got := Explain(command, repo()).Git; got != want {
			t.Errorf("%s: Git is %v", command, got)
		}
	}
}

func TestPlaces(t *testing.T) {
	tests := []struct {
		command string
		at      Place
		want    Class
	}{
		{"touch a", Place{}, Full},
		{"touch a", Place{Cwd: "/srv/repo"}, Full},
		{"touch a", Place{Root: "/srv/repo", Cwd: "/srv/repo/sub"}, Workspace},
		{"touch a", Place{Root: "/srv/repo", Cwd: "/srv/repository"}, Full},
		{"touch /srv/repository/a", repo(), Full},
		{"git status", Place{Root: "/srv/repo", Cwd: "/srv/repo/sub"}, Full},
		{"git status", Place{}, Full},
		{"ls ~", Place{Root: "/srv/repo", Cwd: "/srv/repo"}, Read},
	}
	for _, tt := range tests {
		if got := Explain(tt.command, tt.at).Class; got != tt.want {
			t.Errorf("%s at %+v: got %s, want %s", tt.command, tt.at, got, tt.want)
		}
	}
}

// TestHostileSizes checks that time grows with the text and not with its square: four times the text may take twelve
// times as long, on a machine where other things happen too.
func TestHostileSizes(t *testing.T) {
	const size = 60 << 10
	for _, piece := range []string{
		"(", "{ ", "[", "$(", "`", "\"$(", "${x:-", "$((", "((", "if ", "while ", "! ", "a;", "a|", "a&&", "a\n", "{a,b}", "{a,", "<(", "$x", "'", "\\", "case ",
		"f() ", "[[ ! ", "a <<x\n", "time ", "{a,b}{c,d} ", "sh -c 'sh -c ", "xargs ", "env ", "for i in a; do ", "x=", ">a ", "a*", "[[ ( ", "$((1+", "exec ", "\u00e9",
		"eval ", "eval a;", "flock x ", "env -S ", "alias a=b;", "alias a=alias\\ a=", "strace ", "trap ", "parallel ::: ", "git -c alias.a=b a;", "exec -a ", "sed e ", "git bisect run ",
	} {
		measure := func(size int) (Plan, time.Duration) {
			start := processorTime()
			p := Explain(strings.Repeat(piece, size/len(piece)), repo())
			return p, processorTime() - start
		}
		_, quarter := measure(size / 4)
		p, whole := measure(size)
		if whole > 12*quarter+time.Second {
			t.Errorf("%q repeated took %v, a quarter of it %v", piece, whole, quarter)
		}
		if p.Class == Read && slices.ContainsFunc(p.Segments, func(s Segment) bool { return s.Class != Read }) {
			t.Errorf("%q repeated is read", piece)
		}
	}
	if p := Explain(strings.Repeat("a", maxText+1), repo()); p.Class != Full || len(p.Segments) != 1 {
		t.Errorf("too long: got %s with %d segments", p.Class, len(p.Segments))
	}
}

// TestDenySeesAll checks that rules see commands in unproven lines.
func TestDenySeesAll(t *testing.T) {
	for _, command := range []string{
		"f() { git push; }", "coproc git push", "sudo git push", "select x in a; do git push; done", "x=($(git push))", "echo ${x:=$(git push)}",
		"ls; git push; (", "env -S x; git push", "for ((;;)); do git push; done", "declare x=$(git push)", "ssh-agent git push", "echo $((x[$(git push)]))",
		strings.Repeat("ls;", 5000) + "git push", "sh -c 'sh -c \"git push\"'", "cat <<E\n$(git push)\nE", "let x=$(git push)", "bash -lc 'git push'", "! time git push",
		"((x = $(git push)))", "export A=$(git push)", "case a in b) git push;& c) ;; esac", "find . -execdir git push \\;", "nice -n 5 -- git push", "watch git push",
	} {
		found := false
		for _, s := range Explain(command, repo()).Segments {
			found = found || slices.Equal(s.Argv, []string{"git", "push"})
		}
		if !found {
			t.Errorf("%.80s: git push is not among the segments", command)
		}
	}
}

// TestHeld checks that git below the root reads where walls hold whatever it meets there.
func TestHeld(t *testing.T) {
	held := repo()
	held.Held = true
	for command, want := range map[string]Class{
		"git -C sub log": Read, "cd sub && git status --short": Read, "env -i git diff": Read, "cd sub; git log": Read,
		"git -C .. log": Full, "cd /srv && git log": Full, `git -C "$x" log`: Full, "git -C sub push": Full, "git --git-dir=sub log": Full,
	} {
		if got := Explain(command, held).Class; got != want {
			t.Errorf("%s: %v, want %v", command, got, want)
		}
		if got := Explain(command, repo()).Class; got != Full {
			t.Errorf("%s: %v without walls", command, got)
		}
	}
}

func BenchmarkExplain(b *testing.B) {
	command := `cd src && grep -rn "func main" --include='*.go' . | head -20 && git log --oneline -5 -- main.go; wc -l x`
	b.ReportAllocs()
	for b.Loop() {
		Explain(command, repo())
	}
}

// TestHomeThatIsSet checks that no claim is made about the target of ~ in a text that sets HOME.
func TestHomeThatIsSet(t *testing.T) {
	for command, known := range map[string]bool{
		"export HOME=/etc; cat ~/x":              false,
		"HOME=/etc; cat $HOME/x":                 false,
		"unset HOME && cat ~/x":                  false,
		"read HOME < f; cat ~/x":                 false,
		"eval 'HOME=/etc'; cat ~/x":              false,
		"env HOME=/etc sh -c 'cat ~/x'":          false,
		"HOME=/etc bash -c 'cat ~/x'":            false,
		"printf -v HOME /etc; cat ~/x":           false,
		"for HOME in /etc; do cat ~/x; done":     false,
		": ${HOME:=/etc}; ./run; cat ~/x":        false,
		"./run $HOME; cat ~/x":                   true,
		"./run \"${HOME}/y\"; cat ~/x":           true,
		"GOHOME=/etc HOMES=1 ./run; cat ~/x":     true,
		"grep HOME f; cat ~/x":                   true,
		"echo 'ENV HOME=/app' > f; cat ~/x":      true,
		"JAVA_HOME=/opt/java ./run; cat $HOME/x": true,
	} {
		var read []string
		for _, e := range Explain(command, repo()).Effects {
			if e.Kind == tool.Read {
				read = append(read, e.Path)
			}
		}
		if slices.Contains(read, "/home/me/x") != known || slices.Contains(read, "/") == known {
			t.Errorf("%s: reads %q", command, read)
		}
	}
}

// TestWhyAShellIsNotProven checks that the reason names the script that a shell runs, or its input.
func TestWhyAShellIsNotProven(t *testing.T) {
	for line, want := range map[string]string{
		"sh deploy.sh prod": "sh runs deploy.sh, whose content is not judged",
		"bash -e ./x.sh":    "bash runs ./x.sh, whose content is not judged",
		"sh":                "sh runs commands from its input",
	} {
		if got := Explain(line, Place{Root: "/w", Cwd: "/w"}).Segments[0].Why; got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

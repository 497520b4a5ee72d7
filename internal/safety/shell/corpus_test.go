package shell

import (
	"bufio"
	"os"
	"slices"
	"strings"
	"testing"
)

type example struct {
	class   Class
	command string
	why     string
}

func (e example) String() string { return string(e.class) + " " + e.command + "  " + e.why }

func examples(t testing.TB) []example {
	t.Helper()
	f, err := os.Open("testdata/commands.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	signs := strings.NewReplacer("␤", "\n", "␉", "\t", "␍", "\r", "␀", "\x00")
	var out []example
	for sc := bufio.NewScanner(f); sc.Scan(); {
		if strings.HasPrefix(sc.Text(), "#") {
			continue
		}
		fields := strings.Split(sc.Text(), "\t")
		if len(fields) != 3 || !slices.Contains([]string{"read", "workspace", "full"}, fields[0]) || !strings.HasPrefix(fields[2], "#") {
			t.Fatalf("bad line %q", sc.Text())
		}
		out = append(out, example{Class(fields[0]), signs.Replace(fields[1]), fields[2]})
	}
	return out
}

func repo() Place { return Place{Root: "/srv/repo", Cwd: "/srv/repo", Home: "/home/me"} }

// TestCorpus checks the two important numbers: commands classed as weaker than they are, which must be 0, and needless
// questions.
func TestCorpus(t *testing.T) {
	weight := map[Class]int{Read: 0, Workspace: 1, Full: 2}
	count, allows, asks := map[Class]int{}, 0, 0
	for _, e := range examples(t) {
		count[e.class]++
		p := Explain(e.command, repo())
		switch got := weight[p.Class] - weight[e.class]; {
		case got < 0:
			allows++
			t.Errorf("false allow: %s: got %s", e, p.Class)
		case got > 0:
			asks++
			t.Errorf("needless ask: %s: got %s (%s)", e, p.Class, reason(p))
		}
	}
	t.Logf("shell: %d read, %d workspace, %d full; %d false allows, %d needless asks",
		count[Read], count[Workspace], count[Full], allows, asks)
}

func reason(p Plan) string {
	for _, s := range p.Segments {
		if s.Class == p.Class {
			return s.Text + ": " + s.Why
		}
	}
	return ""
}

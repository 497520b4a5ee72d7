package oracle

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pkoukk/tiktoken-go"
	tiktoken_loader "github.com/pkoukk/tiktoken-go-loader"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/llm"
)

// Most tokens (o200k) of the system prompt and the tools of a session with nothing set, with
// a person and without.
const (
	mostAttended   = 3000
	mostUnattended = 3000
)

// row is a part of the prompt and its size.
type row struct {
	name   string
	tokens int
}

// parts returns the parts of the prompt of a new session in a folder, the largest first; self is what program built.
func parts(t testing.TB, self string, unattended bool) (rows []row, total int) {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("INSPAN_CONFIG_DIR", filepath.Join(home, "config"))
	t.Setenv("INSPAN_STATE_DIR", filepath.Join(home, "state"))
	a, err := app.Load(self)
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("../..") // a repository with enough in it to use up what the facts may take
	if err != nil {
		t.Fatal(err)
	}
	host := a.Host(app.Options{Model: "script", Unattended: unattended}, func(string) {})
	s, err := host.New(context.Background(), root)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	tiktoken.SetBpeLoader(tiktoken_loader.NewOfflineLoader())
	codec, err := tiktoken.GetEncoding("o200k_base")
	if err != nil {
		t.Fatal(err)
	}
	add := func(name string, texts ...string) {
		n := 0
		for _, text := range texts {
			n += len(codec.Encode(text, nil, nil))
		}
		rows, total = append(rows, row{name, n}), total+n
	}
	tools := []llm.ToolSpec(nil)
	for e, err := range host.Events(context.Background(), s.Status().Session) {
		if err != nil {
			t.Fatal(err)
		}
		switch b := e.Body.(type) {
		case event.Added:
			if !strings.HasSuffix(b.Source, ".md") { // instructions are the project's
				add(b.Source, b.Text)
			}
		case event.Switched:
			if b.Tools != nil {
				tools = b.Tools
			}
		}
	}
	for _, spec := range tools {
		add(spec.Name, spec.Name, spec.Description, string(spec.Schema))
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(b.tokens, a.tokens) })
	return rows, total
}

func TestPromptIsSmall(t *testing.T) {
	self := testkit.Command(t)
	for _, tt := range []struct {
		unattended bool
		most       int
	}{{false, mostAttended}, {true, mostUnattended}} {
		rows, total := parts(t, self, tt.unattended)
		if total > tt.most || total < 1000 {
			t.Errorf("unattended %v: %d tokens, %d allowed: %v", tt.unattended, total, tt.most, rows)
		}
	}
}

// BenchmarkPrompt prints the size of each part of the prompt, in tokens.
func BenchmarkPrompt(b *testing.B) {
	self := testkit.Command(b)
	for _, unattended := range []bool{false, true} {
		name := map[bool]string{false: "attended", true: "unattended"}[unattended]
		b.Run(name, func(b *testing.B) {
			rows, total := parts(b, self, unattended)
			for b.Loop() {
			}
			for _, r := range rows {
				b.ReportMetric(float64(r.tokens), strings.ReplaceAll(r.name, " ", "_"))
			}
			b.ReportMetric(float64(total), "total")
		})
	}
}

package command

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// mostHops is the longest way from main to the model that a newcomer is asked to follow.
const mostHops = 9

// TestHops prints the way of a request from main to the model, as the stack of one that is
// under way shows it. docs/ARCHITECTURE.md lists exactly these functions.
func TestHops(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	got := append([]string{"main"}, hops(stack(t))...)
	for i, h := range got {
		t.Logf("%d. %s", i+1, h)
	}
	if len(got) > mostHops {
		t.Errorf("%d functions from main to the model, at most %d are allowed", len(got), mostHops)
	}
	_, section, _ := strings.Cut(string(doc), "## A prompt, from the shell to the wire\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var told []string
	for _, m := range regexp.MustCompile("(?m)^\\d+\\. `([^`]+)`").FindAllStringSubmatch(section, -1) {
		told = append(told, m[1])
	}
	if diff := cmp.Diff(got, told); diff != "" {
		t.Errorf("docs/ARCHITECTURE.md tells of another way (-is +told):\n%s", diff)
	}
}

// stack runs the command with a model at a server, and returns the stacks of all goroutines
// while the server has its request.
func stack(t *testing.T) string {
	t.Helper()
	var stacks string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		buf := make([]byte, 1<<20)
		stacks = string(buf[:runtime.Stack(buf, true)])
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: {\"choices\":[{\"delta\":{\"content\":\"Hi.\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}))
	defer server.Close()
	home := t.TempDir()
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"} {
		t.Setenv(name, home)
	}
	settings := fmt.Sprintf("model = \"near/test\"\nsandbox.off = true\n[providers.near]\nkind = \"openai\"\nbase_url = %q\n", server.URL+"/v1")
	if err := os.Mkdir(filepath.Join(home, "inspan"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "inspan", "config.toml"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	var out strings.Builder
	if code := (Program{}).Main([]string{"run", "hello"}, strings.NewReader(""), &out, &out); code != 0 || stacks == "" {
		t.Fatalf("exit code %d: %s", code, out.String())
	}
	return stacks
}

// hops are the functions of ours from Program.Main to the first model, outermost first, without
// packages, pointers and the numbers of closures. What is around a model passes the request on by the same method.
func hops(stacks string) []string {
	var out []string
	for _, goroutine := range strings.Split(stacks, "\n\n") {
		if !strings.Contains(goroutine, "/internal/front/command.Program.Main(") {
			continue
		}
		for _, m := range regexp.MustCompile(`(?m)^github\.com/inspan/inspan\S*\(`).FindAllString(goroutine, -1) {
			out = append(out, hop(strings.TrimSuffix(m, "(")))
		}
	}
	slices.Reverse(out)
	out = out[slices.Index(out, "Program.Main"):]
	model := slices.IndexFunc(out, func(h string) bool { return strings.HasSuffix(h, ".Stream") })
	return append(out[:model], "Model.Stream")
}

// hop is the name of a function in a stack: of one that was inlined, the last.
func hop(frame string) string {
	name := frame[strings.LastIndexByte(frame, '/')+1:]
	_, name, _ = strings.Cut(name, ".")
	name = regexp.MustCompile(`(\.func\d+|-range\d+|\.\d+)+$`).ReplaceAllString(name, "")
	methods := regexp.MustCompile(`\(\*(\w+)\)\.(\w+)`).FindAllStringSubmatch(name, -1)
	if len(methods) == 0 {
		return name
	}
	last := methods[len(methods)-1]
	return last[1] + "." + last[2]
}

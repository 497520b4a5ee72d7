package oracle

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/testkit"
)

var update = flag.Bool("update", false, "write steps.golden anew, from what the Go client does")

// A script is one run of the steps in testdata/steps.txt, and their shared values.
type script struct {
	*desk
	repository, commit string // a repository of this machine, and its first commit
	kept
}

// A step performs one step with the Go client, and returns its outcome. It panics with a failure.
type step func(ctx context.Context, s *script) string

// A failure is the error of a step.
type failure struct{ error }

// must returns a response of the client. It has everything that the client's types call required.
func must[T any](v T, err error) T {
	if err != nil {
		panic(failure{err})
	}
	if fields := lacking(v); len(fields) > 0 {
		panic(failure{fmt.Errorf("%T: %s", v, strings.Join(fields, "; "))})
	}
	return v
}

// outcome describes the result of a step: names and values, alternating.
func outcome(pairs ...any) string {
	var out []string
	for i := 0; i < len(pairs); i += 2 {
		value := fmt.Sprint(pairs[i+1])
		if list, ok := pairs[i+1].([]string); ok {
			value = strings.Join(list, " ")
		}
		out = append(out, fmt.Sprintf("%v=%s", pairs[i], value))
	}
	return strings.Join(out, ", ")
}

// no is how a request was refused. One that was not is a failure.
func no(err error) string {
	var api *anthropic.Error
	if !errors.As(err, &api) {
		panic(failure{fmt.Errorf("it was not refused: %v", err)})
	}
	var body struct {
		Error struct{ Type, Message string }
	}
	if err := json.Unmarshal([]byte(api.RawJSON()), &body); err != nil || api.RequestID == "" {
		panic(failure{fmt.Errorf("%d %s without an id of the request: %v", api.StatusCode, api.RawJSON(), err)})
	}
	return fmt.Sprintf("%d %s %q", api.StatusCode, body.Error.Type, body.Error.Message)
}

// refusal is false for calls that return something else.
func refusal[T any](_ T, err error) string { return no(err) }

// named are the steps in their order.
func named(t *testing.T) (names []string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "steps.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if name, proves, ok := strings.Cut(line, ": "); ok && proves != "" && !strings.HasPrefix(line, "#") {
			names = append(names, name)
		}
	}
	if len(names) < 40 {
		t.Fatalf("%d steps, want 40 at least", len(names))
	}
	return names
}

// ids of objects are random, and those of events have the random id of a session's log.
var ids = regexp.MustCompile(`\b[a-z]+_(?:[a-z]+_)?(?:[0-9a-z]{26}|\d{8}-\d{6}-[0-9a-z]+)(?:[_.][0-9a-z]+)*\b`)

// held compares the outcomes of the steps with the golden file, or writes it.
func (s *script) held(lines []string, anew bool) {
	s.t.Helper()
	names, count := map[string]string{}, map[string]int{}
	got := ids.ReplaceAllStringFunc(strings.Join(lines, "\n")+"\n", func(id string) string {
		if names[id] == "" {
			kind, _, _ := strings.Cut(id, "_")
			count[kind]++
			names[id] = fmt.Sprintf("%s_%d", kind, count[kind])
		}
		return names[id]
	})
	for _, machine := range []string{s.url, s.dir} {
		got = strings.ReplaceAll(got, machine, "HERE")
	}
	golden := filepath.Join("testdata", "steps.golden")
	if anew {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			s.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		s.t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		s.t.Errorf("what came of the steps (+) is not what the golden file says (-):\n%s\n%s", diff, strings.Join(s.said(), "\n"))
	}
}

// newScript starts a server and makes the files that steps find on its machine.
func newScript(t *testing.T) *script {
	s := &script{desk: &desk{served: serve(t)}}
	s.repository = filepath.Join(s.folder(), "repo")
	git := func(args ...string) string {
		args = append([]string{"-C", s.folder(), "-c", "user.name=a", "-c", "user.email=a@b.c"}, args...)
		out, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "-q", "repo")
	git("-C", "repo", "commit", "-q", "--allow-empty", "-m", "the first")
	s.commit = git("-C", "repo", "rev-parse", "HEAD")
	git("-C", "repo", "commit", "-q", "--allow-empty", "-m", "the second")
	return s
}

// TestStepsByGo has the official Go client do the steps, and holds all answers against the types of the official
// SDK for TypeScript.
func TestStepsByGo(t *testing.T) {
	names, all := named(t), map[string]step{}
	for _, some := range []map[string]step{
		agentSteps(), sessionSteps(), askingSteps(), threadSteps(), moreSteps(), outcomeSteps(), deploymentSteps(),
		memorySteps(), fileSteps(), vaultSteps(), skillSteps(), webhookSteps(), lastSteps(),
	} {
		maps.Copy(all, some)
	}
	if len(all) != len(names) {
		t.Errorf("there are %d steps, and %d have names", len(all), len(names))
	}
	s := newScript(t)
	var lines []string
	for i, name := range names {
		lines = append(lines, fmt.Sprintf("%02d %s: %s", i+1, name, s.does(i+1, name, all[name])))
	}
	s.held(lines, *update)
	t.Logf("%d steps", len(lines))
	t.Run("types of TypeScript", s.answers.typed)
}

// does does a step, in a minute at most.
func (s *script) does(number int, name string, do step) string {
	s.t.Helper()
	ctx, end := context.WithTimeout(s.t.Context(), testkit.Patience)
	defer end()
	defer func() {
		switch failed := recover().(type) {
		case nil:
		case failure:
			s.t.Fatalf("step %02d, %s: %v\n%s", number, name, failed, strings.Join(s.said(), "\n"))
		default:
			panic(failed)
		}
	}()
	if do == nil {
		s.t.Fatalf("step %02d, %s: the client has none of this name", number, name)
	}
	return do(ctx, s)
}

// TestStepsByPython lets the official Python client do the same steps. It asks its parent for actions that only the
// parent can perform.
func TestStepsByPython(t *testing.T) {
	interpreter, names := python(t), named(t)
	version := must(exec.CommandContext(t.Context(), interpreter, "-c", "import anthropic; print(anthropic.__version__)").Output())
	t.Logf("version %s", version)
	s := newScript(t)
	client := exec.CommandContext(t.Context(), interpreter, filepath.Join("testdata", "steps.py"), s.url, s.token, s.repository, s.commit)
	var failed strings.Builder
	client.Stderr = &failed
	stdin := must(client.StdinPipe())
	stdout := must(client.StdoutPipe())
	if err := client.Start(); err != nil {
		t.Fatal(err)
	}
	var lines, methods []string
	for out := bufio.NewScanner(stdout); out.Scan(); {
		if method, told := strings.CutPrefix(out.Text(), "method "); told {
			methods = append(methods, method)
			continue
		}
		if out.Text() != "kill the server" {
			lines = append(lines, out.Text())
			continue
		}
		s.again()
		if _, err := io.WriteString(stdin, "\n"); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.Wait(); err != nil {
		next := slices.Concat(names, []string{"the end"})[min(len(lines), len(names))]
		t.Fatalf("step %02d, %s: %v\n%s\n%s", len(lines)+1, next, err, failed.String(), strings.Join(s.said(), "\n"))
	}
	s.held(lines, false)
	t.Logf("%d steps", len(lines))
	heldMethods(t, methods)
}

// heldMethods compares how the methods of the Python client were used with the golden file, or writes it. Resources
// without a used method are listed as one, because they are no part of Managed Agents.
func heldMethods(t *testing.T, methods []string) {
	t.Helper()
	unused := func(line string) bool { return strings.HasSuffix(line, ": not used") }
	resource := func(line string) string { return line[:strings.LastIndex(line, ".")] }
	top := func(line string) string { return strings.Join(strings.SplitN(line, ".", 3)[:2], ".") }
	var got []string
	others, strict := map[string]int{}, 0
	for _, line := range methods {
		alike := func(other string) bool { return resource(other) == resource(line) && !unused(other) }
		switch {
		case slices.ContainsFunc(methods, alike):
			got = append(got, line)
		default:
			others[top(line)]++
		}
		if strings.HasSuffix(line, ": strict") {
			strict++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(others)) {
		got = append(got, fmt.Sprintf("%s: %d methods that the server has not", name, others[name]))
	}
	t.Logf("%d methods with strict answers\n%s", strict, strings.Join(got, "\n"))
	golden := filepath.Join("testdata", "methods.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(strings.Join(got, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(strings.TrimSpace(string(want)), "\n"), got); diff != "" {
		t.Errorf("the methods of the client (+) are not those of the golden file (-):\n%s", diff)
	}
	if i := slices.IndexFunc(got, unused); i >= 0 {
		t.Errorf("no step has %s", got[i])
	}
}

// again kills the server and starts another at its address.
func (s *served) again() {
	address := strings.TrimPrefix(s.url, "http://")
	s.stop()
	s.start(address)
}

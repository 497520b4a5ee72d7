package bench_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/lab/bench"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/internal/world/sandbox"
)

func TestMain(m *testing.M) {
	if ran, code := sandbox.Keeper(); ran {
		os.Exit(code)
	}
	if filepath.Base(os.Args[0]) == "pi" {
		os.Exit(forgetful())
	}
	os.Exit(m.Run())
}

// forgetful is a harness, called like pi, that keeps nothing but the last command, which it runs again when it resumes.
func forgetful() int {
	if slices.Contains(os.Args, "--version") {
		fmt.Println("pi 1")
		return 0
	}
	var models struct {
		Providers map[string]struct{ BaseURL string }
	}
	home := os.Getenv("PI_CODING_AGENT_DIR")
	raw, err := os.ReadFile(filepath.Join(home, "models.json"))
	if err != nil || json.Unmarshal(raw, &models) != nil {
		return 1
	}
	messages, last := "", filepath.Join(home, "last")
	if slices.Contains(os.Args, "--continue") {
		if command, err := os.ReadFile(last); err == nil && exec.Command("sh", "-c", string(command)).Run() != nil {
			return 1
		}
	}
	for {
		body := `{"model":"m","stream":true,"messages":[` + strings.TrimSuffix(messages, ",") + `],"tools":[{"type":"function","function":` +
			`{"name":"bash","parameters":{"properties":{"command":{"type":"string"}}}}}]}`
		res, err := http.Post(models.Providers["bench"].BaseURL+"/chat/completions", "application/json", strings.NewReader(body))
		if err != nil {
			return 1
		}
		var said bytes.Buffer
		_, err = said.ReadFrom(res.Body)
		res.Body.Close()
		command := commandIn(said.String())
		switch {
		case err != nil:
			return 1
		case command == "":
			return 0
		}
		if os.WriteFile(last, []byte(command), 0o600) != nil {
			return 1
		}
		out, err := exec.Command("sh", "-c", command).Output()
		if err != nil {
			return 1
		}
		text, _ := json.Marshal(string(out))
		messages += `{"role":"tool","content":` + string(text) + `},`
	}
}

// commandIn returns the command that a stream of chat completions calls for; empty if none.
func commandIn(stream string) string {
	for line := range strings.Lines(stream) {
		var chunk struct {
			Choices []struct {
				Delta struct {
					Calls []struct{ Function struct{ Arguments string } } `json:"tool_calls"`
				}
			}
		}
		if json.Unmarshal([]byte(strings.TrimPrefix(line, "data: ")), &chunk) == nil && len(chunk.Choices) > 0 &&
			len(chunk.Choices[0].Delta.Calls) > 0 {
			var args struct{ Command string }
			_ = json.Unmarshal([]byte(chunk.Choices[0].Delta.Calls[0].Function.Arguments), &args)
			return args.Command
		}
	}
	return ""
}

// TestBench measures inspan itself, a harness that forgets, one that fails and one that is missing. It distinguishes
// them, and leaves nothing behind.
func TestBench(t *testing.T) {
	built := testkit.Command(t)
	programs, temp := t.TempDir(), t.TempDir()
	for _, name := range []string{"sh", "bash", "sleep", "git"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(programs, name)); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(programs, "pi")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(programs, "claude"), []byte("#!/bin/sh\necho Please log in.\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", programs)
	t.Setenv("TMPDIR", temp)
	var told []string
	runs := 3
	if testing.Short() {
		runs = 1
	}
	b := bench.Bench{
		Program: built, Runs: runs, Only: []string{"inspan", "pi", "claude", "gemini"}, OnProgress: func(line string) { told = append(told, line) },
	}
	list, err := b.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bench.Result{}
	for _, one := range list {
		got[one.Name] = one
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v %v", left, err)
	}
	if !strings.Contains(strings.Join(told, "\n"), "inspan: "+built+" run '...'") {
		t.Errorf("it does not say what it runs: %q", told)
	}
	if one := got["inspan"]; len(one.Failed) > 0 || !strings.Contains(one.Version, "0.") {
		t.Errorf("%+v", one)
	}
	want := map[string]float64{"start": -1, "turn": -1, "resume": -1, "long": -1, "lost": 0, "twice": 0}
	if _, err := os.Stat("/proc/self/smaps_rollup"); err == nil {
		want["memory"] = -1
	}
	for name, value := range want { // -1: any that is more than 0
		f := figureOf(got["inspan"], name)
		if len(f.Values) != runs || value < 0 && f.Least <= 0 || value == 0 && f.Most != 0 {
			t.Errorf("inspan: %s: %+v", name, f)
		}
	}
	if lost, twice := figureOf(got["pi"], "lost"), figureOf(got["pi"], "twice"); lost.Least != 3 || twice.Median != 1 {
		t.Errorf("who forgets: %+v %+v", lost, twice)
	}
	if why := strings.Join(got["pi"].Failed, "\n"); !strings.Contains(why, "long: 200 of 200 results are not in the next request") {
		t.Errorf("who forgets fails with %q", why)
	}
	if why := got["claude"].Failed; len(why) != 1 || !strings.Contains(why[0], "code 3 before its first request: Please log in.") {
		t.Errorf("who fails: %q", why)
	}
	if one := got["gemini"]; one.Command != "" || len(one.Figures)+len(one.Failed) > 0 {
		t.Errorf("who is not there: %+v", one)
	}
	b.Only = []string{"insapn"}
	if _, err := b.Run(t.Context()); err == nil || !strings.Contains(err.Error(), `did you mean "inspan"?`) {
		t.Errorf("a wrong name: %v", err)
	}
}

func figureOf(one bench.Result, name string) bench.Figure {
	for _, f := range one.Figures {
		if f.Name == name {
			return f
		}
	}
	return bench.Figure{}
}

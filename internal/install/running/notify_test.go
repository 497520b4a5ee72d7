package running_test

import (
	"context"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/tool"
)

// followed runs an agent whose notifier has the settings until it stops or asks, and closes it.
func followed(t *testing.T, set config.Notify, agent *inspan.Agent, saw func(event.Event)) {
	t.Helper()
	n := &running.Notifier{Installation: &config.Installation{Config: config.Config{Notify: set}}}
	end := n.Follow(agent)
	follow := agent.Lifecycle.Stored
	agent.Lifecycle.Stored = func(s *inspan.Session, e event.Event) { follow(s, e); saw(e) }
	s, err := agent.Open(t.Context(), event.NewMemory("s"))
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range s.Run(t.Context(), event.Say("go")) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := end(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestNotifiesOnce checks that a person who was called for a question is called for the next, and not for the first
// again.
func TestNotifiesOnce(t *testing.T) {
	got := make(chan string, 9)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- string(body)
	}))
	defer hook.Close()
	note := tool.New("note", "notes", func(context.Context, *tool.Call, struct{}) (tool.Result, error) { return tool.Text(""), nil })
	note.Effects = func(context.Context, *tool.Call) ([]tool.Effect, error) {
		return []tool.Effect{{Kind: tool.Write, Path: "/w/a"}}, nil
	}
	two := llm.Parts{llm.Call{Name: "note", Args: []byte(`{}`)}, llm.Call{Name: "note", Args: []byte(`{}`)}}
	agent := &inspan.Agent{Model: &script.Model{Steps: []script.Step{{Parts: two}}}, Tools: []tool.Tool{note}, Env: tool.Env{Root: "/w"}}
	asked := 0
	followed(t, config.Notify{URL: hook.URL, After: 1}, agent, func(e event.Event) {
		if _, asks := e.Body.(event.Waiting); asks {
			asked++
			if body := <-got; !strings.Contains(body, `"text":"note asks"`) {
				t.Errorf("called with %s", body)
			}
		}
	})
	if asked != 2 || len(got) > 0 {
		t.Errorf("asked %d times, and %d calls are left", asked, len(got))
	}
}

// TestTell checks that a text is sent to the address and the topic of the settings, and that it is an error if it
// reaches none.
func TestTell(t *testing.T) {
	var got []string
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if got = append(got, string(body)); r.URL.Path == "/full" {
			w.WriteHeader(http.StatusInsufficientStorage)
		}
	}))
	defer hook.Close()
	tell := func(set config.Notify) error {
		got = nil
		n := &running.Notifier{Installation: &config.Installation{Config: config.Config{Notify: set}}}
		return n.Tell(t.Context(), inspan.Status{Session: "s1", Root: "/w/shop"}, "two\x1b[2J\nlines")
	}
	if err := tell(config.Notify{URL: hook.URL, Ntfy: hook.URL, To: []string{config.NotifyDesktop}}); err != nil || len(got) != 2 ||
		!strings.Contains(got[0], `"event":"message","text":"two[2J\nlines","title":"shop","session":"s1"`) || got[1] != "two[2J\nlines" {
		t.Errorf("%v, %q", err, got)
	}
	err := tell(config.Notify{To: []string{config.NotifyDesktop}})
	if err == nil || !strings.Contains(err.Error(), "set url or ntfy") || len(got) != 0 {
		t.Errorf("%v, %q", err, got)
	}
	if err := tell(config.Notify{URL: hook.URL + "/full"}); err == nil || !strings.Contains(err.Error(), "url: status 507") {
		t.Error(err)
	}
}

// refusing is a model whose vendor answers with an error.
type refusing struct{ message string }

func (refusing) Info() llm.Info { return llm.Info{Provider: "p", Model: "m"} }

func (r refusing) Stream(context.Context, llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		yield(llm.Chunk{}, &llm.Error{Provider: "p", Status: http.StatusUnauthorized, Kind: llm.KindAuth, Message: r.message})
	}
}

// TestNotifiesWithoutMarkup checks that a vendor's text brings neither markup nor escapes to a desktop.
func TestNotifiesWithoutMarkup(t *testing.T) {
	if runtime.GOOS == "darwin" {
		t.Skip("osascript shows notifications there")
	}
	dir := t.TempDir()
	body := "#!/bin/sh\nprintf '%s' \"$4\" >" + filepath.Join(dir, "got") + "\n"
	if err := os.WriteFile(filepath.Join(dir, "notify-send"), []byte(body), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	agent := &inspan.Agent{Model: refusing{`<a href="x">key</a> & \n`}, Env: tool.Env{Root: "/w"}}
	followed(t, config.Notify{To: []string{config.NotifyDesktop}}, agent, func(event.Event) {})
	got, err := os.ReadFile(filepath.Join(dir, "got"))
	if said := string(got); !strings.HasPrefix(said, "failed: ") || !strings.Contains(said, "key") || strings.ContainsAny(said, `<>&\`) || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

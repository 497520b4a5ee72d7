package journeys_test

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/tool"
)

// TestNothingIsKeptUnjudged checks that a process outlives its session only if its call was judged for that.
func TestNothingIsKeptUnjudged(t *testing.T) {
	write, keep := tool.Effect{Kind: tool.Write, Path: "/w/out"}, tool.Effect{Kind: tool.Keep, Text: "x"}
	for _, effects := range [][]tool.Effect{{write}, {write, keep}} {
		procs := &starter{}
		starts := tool.New("start", "Starts something.", func(ctx context.Context, c *tool.Call, _ struct{}) (tool.Result, error) {
			_, err := c.Env.Procs.Start(ctx, tool.Command{Args: []string{"x"}, Keep: true})
			return tool.Result{}, err
		})
		starts.Effects = func(context.Context, *tool.Call) ([]tool.Effect, error) { return effects, nil }
		model, err := script.Parse([]byte("-- reply --\ncall: start {}\n-- reply --\ndone\n"))
		if err != nil {
			t.Fatal(err)
		}
		agent := inspan.Agent{
			Model: model, Tools: []tool.Tool{starts}, Mode: "auto", Env: tool.Env{Root: "/w", Procs: procs},
			Rules: []inspan.Rule{{Action: tool.Allow, Text: "write"}, {Action: tool.Allow, Text: "keep(*)"}},
		}
		for _, err := range agent.Run(t.Context(), "go") {
			if err != nil {
				t.Fatal(err)
			}
		}
		if started := procs.box != nil; started != (len(effects) == 2) {
			t.Errorf("judged by %v, started %t", effects, started)
		}
	}
}

// TestBoxIsNoWiderThanTheVerdict checks that a tool which finds, when it runs, that more would happen than it was
// judged by, starts nothing.
func TestBoxIsNoWiderThanTheVerdict(t *testing.T) {
	walls := tool.Walls{Read: true, Workspace: true, Hosts: true, Throwaway: true}
	read, write := tool.Effect{Kind: tool.Read, Path: "/w/a"}, tool.Effect{Kind: tool.Write, Path: "/w/out"}
	host := tool.Effect{Kind: tool.Network, Text: "example.com"}
	tests := tool.Effect{Kind: tool.Execute, Text: "go test", Throwaway: true}
	for _, tc := range []struct {
		name    string
		effects []tool.Effect
		mode    tool.Mode
		walls   tool.Walls
		box     tool.Box
		want    tool.Level // of the process; "refused" if it must not start
	}{
		{"reads", []tool.Effect{read}, "auto", walls, tool.Box{Level: tool.BoxRead}, tool.BoxRead},
		{"asks for nothing", []tool.Effect{read}, "auto", walls, tool.Box{}, tool.BoxRead},
		{"would write", []tool.Effect{read}, "auto", walls, tool.Box{Level: tool.BoxWorkspace}, "refused"},
		{"would be free", []tool.Effect{read}, "auto", walls, tool.Box{Level: tool.BoxNone}, "refused"},
		{"no walls here", []tool.Effect{read}, "auto", tool.Walls{}, tool.Box{Level: tool.BoxNone}, tool.BoxNone},
		{"free by mode", []tool.Effect{read}, "yolo", walls, tool.Box{Level: tool.BoxNone}, tool.BoxNone},
		{"writes", []tool.Effect{write}, "auto", walls, tool.Box{Level: tool.BoxWorkspace, Write: []string{"/w/out/x"}}, tool.BoxWorkspace},
		{"writes elsewhere", []tool.Effect{write}, "auto", walls, tool.Box{Level: tool.BoxWorkspace, Write: []string{"/etc"}}, "refused"},
		{"reads elsewhere", []tool.Effect{write}, "auto", walls, tool.Box{Level: tool.BoxWorkspace, Read: []string{"/home/ann/x"}}, "refused"},
		{"its host", []tool.Effect{host}, "yolo", walls, tool.Box{Level: tool.BoxWorkspace, Hosts: []string{"example.com"}}, tool.BoxWorkspace},
		{"another host", []tool.Effect{host}, "yolo", walls, tool.Box{Level: tool.BoxWorkspace, Hosts: []string{"example.org"}}, "refused"},
		{"any host", []tool.Effect{host}, "yolo", walls, tool.Box{Level: tool.BoxWorkspace, Hosts: []string{"*"}}, "refused"},
		{
			"what it does is thrown away",
			[]tool.Effect{tests},
			"plan", walls,
			tool.Box{Level: tool.BoxWorkspace, Throwaway: true},
			tool.BoxWorkspace,
		},
		{"it would stay", []tool.Effect{tests}, "plan", walls, tool.Box{Level: tool.BoxWorkspace}, "refused"},
		{"it would stay by default", []tool.Effect{tests}, "plan", walls, tool.Box{}, "refused"},
		{"it would be free", []tool.Effect{tests}, "plan", walls, tool.Box{Level: tool.BoxNone}, "refused"},
		{"anything", []tool.Effect{{Kind: tool.External}}, "yolo", walls, tool.Box{Level: tool.BoxNone}, tool.BoxNone},
	} {
		t.Run(tc.name, func(t *testing.T) {
			procs, refused := &starter{}, false
			starts := tool.New("start", "Starts something.", func(ctx context.Context, c *tool.Call, _ struct{}) (tool.Result, error) {
				_, err := c.Env.Procs.Start(ctx, tool.Command{Args: []string{"x"}, Box: tc.box})
				refused = errors.Is(err, fs.ErrPermission)
				return tool.Result{}, err
			})
			starts.Effects = func(context.Context, *tool.Call) ([]tool.Effect, error) { return tc.effects, nil }
			model, err := script.Parse([]byte("-- reply --\ncall: start {}\n-- reply --\ndone\n"))
			if err != nil {
				t.Fatal(err)
			}
			agent := inspan.Agent{
				Model: model, Tools: []tool.Tool{starts}, Mode: tc.mode,
				Env: tool.Env{Root: "/w", Procs: procs, Walls: tc.walls, Throwaway: true}, Rules: []inspan.Rule{{Action: tool.Allow, Text: "write"}},
			}
			for e, err := range agent.Run(t.Context(), "go") {
				if err != nil {
					t.Fatal(err)
				}
				if j, ok := e.Body.(event.Judged); ok && j.Action != tool.Allow {
					t.Fatalf("%s by %s: %s", j.Action, j.By, j.Reason)
				}
			}
			got := tool.Level("refused")
			if procs.box != nil {
				got = procs.box.Level
			}
			if got != tc.want || refused != (tc.want == "refused") {
				t.Errorf("level %q, refused %t; want %q", got, refused, tc.want)
			}
		})
	}
}

// asked keeps the address of the request that went out.
type asked struct{ url string }

func (a *asked) Do(req *http.Request) (*http.Response, error) {
	a.url = req.URL.String()
	return nil, errors.New("asked")
}

// TestRequestsGoWhereTheVerdictSays checks that a tool reaches no host that its call was not judged by.
func TestRequestsGoWhereTheVerdictSays(t *testing.T) {
	for _, tc := range []struct {
		effects string // host of the effect; "none" for a call that only reads
		url     string
		goes    bool
	}{
		{"example.com", "https://example.com/a", true},
		{"example.com", "https://EXAMPLE.com./a", true},
		{"example.com", "http://example.com:8080/a", true},
		{"example.com:443", "https://example.com/a", true},
		{"example.com:443", "https://example.com:8443/a", false},
		{"example.com:443", "http://example.com/a", false},
		{"example.com", "https://www.example.com/a", false},
		{"*.example.com", "https://www.example.com/a", true},
		{"", "https://example.org", true},
		{"none", "https://example.com", false},
	} {
		t.Run(tc.effects+" "+tc.url, func(t *testing.T) {
			out, refused := &asked{}, false
			get := tool.New("get", "Gets something.", func(ctx context.Context, c *tool.Call, _ struct{}) (tool.Result, error) {
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, tc.url, nil)
				if err != nil {
					return tool.Result{}, err
				}
				_, err = c.Env.HTTP.Do(req) //nolint:bodyclose // there is none
				refused = errors.Is(err, fs.ErrPermission)
				return tool.Result{}, err
			})
			get.Effects = func(context.Context, *tool.Call) ([]tool.Effect, error) {
				if tc.effects == "none" {
					return []tool.Effect{{Kind: tool.Read, Path: "/w/a"}}, nil
				}
				return []tool.Effect{{Kind: tool.Network, Text: tc.effects}}, nil
			}
			model, err := script.Parse([]byte("-- reply --\ncall: get {}\n-- reply --\ndone\n"))
			if err != nil {
				t.Fatal(err)
			}
			agent := inspan.Agent{Model: model, Tools: []tool.Tool{get}, Mode: "yolo", Env: tool.Env{Root: "/w", HTTP: out}}
			for _, err := range agent.Run(t.Context(), "go") {
				if err != nil {
					t.Fatal(err)
				}
			}
			if (out.url != "") != tc.goes || refused == tc.goes {
				t.Errorf("went to %q, refused %t", out.url, refused)
			}
		})
	}
}

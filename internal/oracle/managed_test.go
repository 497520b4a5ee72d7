package oracle

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/param"
	"github.com/anthropics/anthropic-sdk-go/packages/ssestream"
)

// served is the command as it serves, and the official client of it.
type served struct {
	t      *testing.T
	dir    string
	url    string
	token  string
	client anthropic.Client
	cmd    *exec.Cmd
	steps  int

	mu     sync.Mutex
	warned []string // what it has said
}

// serve builds the command and starts its server with the offline model.
func serve(t *testing.T) *served {
	t.Helper()
	s := &served{t: t, dir: t.TempDir()}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(s.dir, "inspan"), "./cmd/inspan")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	s.start("127.0.0.1:0")
	t.Cleanup(s.stop)
	return s
}

var servesAt = regexp.MustCompile(`serving tasks at (http://[^/]+)/`)

func (s *served) start(listen string) {
	s.t.Helper()
	s.cmd = exec.Command(filepath.Join(s.dir, "inspan"), "serve", "--model", "script", "--mode", "auto", "--listen", listen, "--drain", "1s")
	s.cmd.Env = append(os.Environ(), "INSPAN_CONFIG_DIR="+filepath.Join(s.dir, "config"), "INSPAN_STATE_DIR="+filepath.Join(s.dir, "state"))
	s.cmd.Dir = s.dir
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	address := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(stderr)
		for lines.Scan() {
			s.mu.Lock()
			s.warned = append(s.warned, lines.Text())
			s.mu.Unlock()
			if m := servesAt.FindStringSubmatch(lines.Text()); m != nil {
				address <- m[1]
			}
		}
		close(address)
	}()
	s.url = <-address
	token, err := os.ReadFile(filepath.Join(s.dir, "state", "server.token"))
	if err != nil || s.url == "" {
		s.t.Fatalf("the server does not begin: %q, %v", s.url, err)
	}
	s.token = strings.TrimSpace(string(token))
	s.client = anthropic.NewClient(option.WithBaseURL(s.url), option.WithAPIKey(s.token), option.WithMaxRetries(0))
}

func (s *served) stop() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// step is one of the script that the client runs. Each takes a minute at most.
func (s *served) step(name string, f func(ctx context.Context) error) {
	s.t.Helper()
	ctx, end := context.WithTimeout(s.t.Context(), time.Minute)
	defer end()
	if err := f(ctx); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.t.Fatalf("step %d, %s: %v\n%s", s.steps+1, name, err, strings.Join(s.warned, "\n"))
	}
	s.steps++
}

// refused reports an error unless a request was refused with the status, and a reason that holds a
// text.
func refused(err error, status int, why string) error {
	var api *anthropic.Error
	if !errors.As(err, &api) {
		return fmt.Errorf("it was not refused: %v", err)
	}
	if api.StatusCode != status || !strings.Contains(api.RawJSON(), why) || api.RequestID == "" {
		return fmt.Errorf("%d %s %q, want %d with %q", api.StatusCode, api.RawJSON(), api.RequestID, status, why)
	}
	return nil
}

type sessionEvent = anthropic.BetaManagedAgentsStreamSessionEventsUnion

// want reports an error unless two values are the same.
func want[T comparable](what string, got, want T) error {
	if got != want {
		return fmt.Errorf("%s is %v, want %v", what, got, want)
	}
	return nil
}

func message(text string) anthropic.BetaManagedAgentsEventParamsUnion {
	return anthropic.BetaManagedAgentsEventParamsUnion{OfUserMessage: &anthropic.BetaManagedAgentsUserMessageEventParams{
		Type: anthropic.BetaManagedAgentsUserMessageEventParamsTypeUserMessage,
		Content: []anthropic.BetaManagedAgentsUserMessageEventParamsContentUnion{{
			OfText: &anthropic.BetaManagedAgentsTextBlockParam{Type: anthropic.BetaManagedAgentsTextBlockTypeText, Text: text},
		}},
	}}
}

// send sends events to a session.
func (s *served) send(ctx context.Context, session string, events ...anthropic.BetaManagedAgentsEventParamsUnion) error {
	_, err := s.client.Beta.Sessions.Events.Send(ctx, session, anthropic.BetaSessionEventSendParams{Events: events})
	return err
}

// until reads a stream until an event of a type comes, and returns all up to it.
func until(stream *ssestream.Stream[sessionEvent], kind string) (out []sessionEvent, err error) {
	for stream.Next() {
		e := stream.Current()
		if out = append(out, e); e.Type == kind {
			return out, nil
		}
	}
	return out, fmt.Errorf("the stream ends before %s: %v; it had %v", kind, stream.Err(), kinds(out))
}

func kinds(events []sessionEvent) (out []string) {
	for _, e := range events {
		out = append(out, e.Type)
	}
	return out
}

// find is the first event of a type.
func find(events []sessionEvent, kind string) sessionEvent {
	for _, e := range events {
		if e.Type == kind {
			return e
		}
	}
	return sessionEvent{}
}

// TestManagedByGo has the official Go client run a script of steps against the command.
func TestManagedByGo(t *testing.T) {
	s := serve(t)
	c := &s.client
	var agent *anthropic.BetaManagedAgentsAgent
	var env *anthropic.BetaEnvironment
	var session *anthropic.BetaManagedAgentsSession
	var stream *ssestream.Stream[sessionEvent]
	var err error
	allow := anthropic.BetaManagedAgentsAgentToolset20260401Params{Type: "agent_toolset_20260401"}

	s.step("create an agent", func(ctx context.Context) error {
		agent, err = c.Beta.Agents.New(ctx, anthropic.BetaAgentNewParams{
			Name: "helper", Model: anthropic.BetaManagedAgentsModelConfigParams{ID: "script"}, System: param.NewOpt("Be brief."),
			Tools:    []anthropic.BetaAgentNewParamsToolUnion{{OfAgentToolset20260401: &allow}},
			Metadata: map[string]string{"team": "a"},
		})
		if err != nil {
			return err
		}
		return errors.Join(
			want("version", agent.Version, 1),
			want("system", agent.System, "Be brief."),
			want("team", agent.Metadata["team"], "a"),
		)
	})
	s.step("a name of the vendor stands for the server's own model", func(ctx context.Context) error {
		a, err := c.Beta.Agents.New(
			ctx,
			anthropic.BetaAgentNewParams{Name: "other", Model: anthropic.BetaManagedAgentsModelConfigParams{ID: "claude-opus-5-5"}},
		)
		if err != nil {
			return err
		}
		return want("model", string(a.Model.ID), "claude-opus-5-5")
	})
	s.step("an agent without a name is refused", func(ctx context.Context) error {
		_, err := c.Beta.Agents.New(ctx, anthropic.BetaAgentNewParams{Model: anthropic.BetaManagedAgentsModelConfigParams{ID: "script"}})
		return refused(err, 400, "name")
	})
	s.step("read an agent", func(ctx context.Context) error {
		a, err := c.Beta.Agents.Get(ctx, agent.ID, anthropic.BetaAgentGetParams{})
		if err != nil {
			return err
		}
		return want("name", a.Name, "helper")
	})
	s.step("update an agent", func(ctx context.Context) error {
		agent, err = c.Beta.Agents.Update(ctx, agent.ID, anthropic.BetaAgentUpdateParams{
			Version: param.NewOpt[int64](1), Description: param.NewOpt("helps"),
		})
		if err != nil {
			return err
		}
		return errors.Join(want("version", agent.Version, 2), want("description", agent.Description, "helps"), want("name", agent.Name, "helper"))
	})
	s.step("an update of an old version is refused", func(ctx context.Context) error {
		_, err := c.Beta.Agents.Update(ctx, agent.ID, anthropic.BetaAgentUpdateParams{Version: param.NewOpt[int64](1), Name: param.NewOpt("x")})
		return refused(err, 409, "version")
	})
	s.step("list the versions of an agent", func(ctx context.Context) error {
		page, err := c.Beta.Agents.Versions.List(ctx, agent.ID, anthropic.BetaAgentVersionListParams{Limit: param.NewOpt[int64](1)})
		if err != nil {
			return err
		}
		next, err := page.GetNextPage()
		if err != nil {
			return err
		}
		return errors.Join(want("first", page.Data[0].Version, 2), want("second", next.Data[0].Version, 1), want("next", next.NextPage, ""))
	})
	s.step("list agents page by page", func(ctx context.Context) error {
		pages, n := c.Beta.Agents.ListAutoPaging(ctx, anthropic.BetaAgentListParams{Limit: param.NewOpt[int64](1)}), 0
		for pages.Next() {
			n++
		}
		return errors.Join(pages.Err(), want("agents", n, 2))
	})
	s.step("create an environment", func(ctx context.Context) error {
		env, err = c.Beta.Environments.New(ctx, anthropic.BetaEnvironmentNewParams{
			Name: "box",
			Config: anthropic.BetaEnvironmentNewParamsConfigUnion{
				OfCloud: &anthropic.BetaCloudConfigParams{
					Networking: anthropic.BetaCloudConfigParamsNetworkingUnion{OfUnrestricted: &anthropic.BetaUnrestrictedNetworkParam{}},
				},
			},
		})
		if err != nil {
			return err
		}
		return want("type", env.Config.Type, "cloud")
	})
	s.step("update and list environments", func(ctx context.Context) error {
		if env, err = c.Beta.Environments.Update(
			ctx,
			env.ID,
			anthropic.BetaEnvironmentUpdateParams{Description: param.NewOpt("one")},
		); err != nil {
			return err
		}
		list, err := c.Beta.Environments.List(ctx, anthropic.BetaEnvironmentListParams{})
		if err != nil {
			return err
		}
		return errors.Join(want("environments", len(list.Data), 1), want("description", list.Data[0].Description, "one"))
	})
	s.step("create a session", func(ctx context.Context) error {
		session, err = c.Beta.Sessions.New(ctx, anthropic.BetaSessionNewParams{
			Agent: anthropic.BetaSessionNewParamsAgentUnion{OfString: param.NewOpt(agent.ID)}, EnvironmentID: env.ID, Title: param.NewOpt("first"),
			Metadata: map[string]string{"k": "v"},
		})
		if err != nil {
			return err
		}
		return errors.Join(
			want("status", string(session.Status), "idle"),
			want("version", session.Agent.Version, 2),
			want("title", session.Title, "first"),
		)
	})
	s.step("open the stream", func(ctx context.Context) error {
		stream = c.Beta.Sessions.Events.StreamEvents(t.Context(), session.ID, anthropic.BetaSessionEventStreamParams{
			EventDeltas: []anthropic.BetaManagedAgentsDeltaType{"agent.message", "agent.thinking"},
		})
		return stream.Err()
	})
	defer func() { stream.Close() }()
	s.step("a message is answered, with previews", func(ctx context.Context) error {
		if err := s.send(ctx, session.ID, message("reason: hm\nsay: hello there")); err != nil {
			return err
		}
		got, err := until(stream, "session.status_idle")
		if err != nil {
			return err
		}
		var previews anthropic.BetaManagedAgentsEventAccumulator
		previewed := ""
		for _, e := range got {
			previews.Accumulate(e)
			if e.Type == "event_delta" {
				previewed = previews.AgentMessageText(e.EventID)
			}
		}
		said := find(got, "agent.message")
		start := find(got, "event_start")
		return errors.Join(
			want("preview", previewed, said.AsAgentMessage().Content[0].Text),
			want("text", said.AsAgentMessage().Content[0].Text, "hello there"),
			want("first", got[0].Type, "user.message"),
			want("running", got[1].Type, "session.status_running"),
			want("thinking", start.AsEventStart().Event.ID, find(got, "agent.thinking").ID),
			want("end", find(got, "session.status_idle").AsSessionStatusIdle().StopReason.Type, "end_turn"),
			want(
				"request",
				find(got, "span.model_request_end").AsSpanModelRequestEnd().ModelRequestStartID,
				find(got, "span.model_request_start").ID,
			),
		)
	})
	s.step("a tool runs", func(ctx context.Context) error {
		if err := s.send(ctx, session.ID, message("bash: echo made > file")); err != nil {
			return err
		}
		got, err := until(stream, "session.status_idle")
		use, result := find(got, "agent.tool_use").AsAgentToolUse(), find(got, "agent.tool_result").AsAgentToolResult()
		return errors.Join(err, want("name", use.Name, "bash"), want("permission", string(use.EvaluatedPermission), "allow"),
			want("result of", result.ToolUseID, use.ID), want("error", result.IsError, false))
	})
	s.step("a file is read in the toolset's words", func(ctx context.Context) error {
		if err := s.send(ctx, session.ID, message("read: file")); err != nil {
			return err
		}
		got, err := until(stream, "session.status_idle")
		use := find(got, "agent.tool_use").AsAgentToolUse()
		return errors.Join(err, want("name", use.Name, "read"), want("input", fmt.Sprint(use.Input["file_path"]), "file"),
			want("result", strings.Contains(find(got, "agent.tool_result").RawJSON(), "made"), true))
	})
	s.step("the list has what the stream had", func(ctx context.Context) error {
		var ids, streamed []string
		pages := c.Beta.Sessions.Events.ListAutoPaging(ctx, session.ID, anthropic.BetaSessionEventListParams{Limit: param.NewOpt[int64](3)})
		for pages.Next() {
			ids = append(ids, pages.Current().ID)
		}
		again := c.Beta.Sessions.Events.StreamEvents(
			ctx,
			session.ID,
			anthropic.BetaSessionEventStreamParams{},
			option.WithHeader("Last-Event-ID", ids[0]),
		)
		defer again.Close()
		for len(streamed) < len(ids)-1 && again.Next() {
			streamed = append(streamed, again.Current().ID)
		}
		return errors.Join(pages.Err(), again.Err(), want("ids", fmt.Sprint(streamed), fmt.Sprint(ids[1:])))
	})
	s.step("events are filtered and ordered", func(ctx context.Context) error {
		page, err := c.Beta.Sessions.Events.List(ctx, session.ID, anthropic.BetaSessionEventListParams{
			Order: "desc", Types: []anthropic.BetaManagedAgentsSessionEventType{"user.message"},
		})
		if err != nil {
			return err
		}
		return errors.Join(want("messages", len(page.Data), 3), want("last", page.Data[0].AsUserMessage().Content[0].Text, "read: file"))
	})
	s.step("an image reaches the conversation", func(ctx context.Context) error {
		m := message("say: seen")
		m.OfUserMessage.Content = append(m.OfUserMessage.Content, anthropic.BetaManagedAgentsUserMessageEventParamsContentUnion{
			OfImage: &anthropic.BetaManagedAgentsImageBlockParam{Type: "image", Source: anthropic.BetaManagedAgentsImageBlockSourceUnionParam{
				OfBase64: &anthropic.BetaManagedAgentsBase64ImageSourceParam{Type: "base64", MediaType: "image/png", Data: pixel},
			}},
		}, anthropic.BetaManagedAgentsUserMessageEventParamsContentUnion{
			OfDocument: &anthropic.BetaManagedAgentsDocumentBlockParam{
				Type: "document",
				Source: anthropic.BetaManagedAgentsDocumentBlockSourceUnionParam{
					OfText: &anthropic.BetaManagedAgentsPlainTextDocumentSourceParam{Type: "text", MediaType: "text/plain", Data: "a plan"},
				},
			},
		})
		if err := s.send(ctx, session.ID, m); err != nil {
			return err
		}
		got, err := until(stream, "session.status_idle")
		if err != nil {
			return err
		}
		return want("image", find(got, "user.message").AsUserMessage().Content[1].AsImage().Source.Data, pixel)
	})
	s.step("a system message begins nothing, and is heard", func(ctx context.Context) error {
		err := s.send(
			ctx,
			session.ID,
			anthropic.BetaManagedAgentsEventParamsUnion{OfSystemMessage: &anthropic.BetaManagedAgentsSystemMessageEventParams{
				Type: "system.message", Content: []anthropic.BetaManagedAgentsSystemContentBlockParam{{Type: "text", Text: "Mind the gap."}},
			}},
		)
		if err != nil {
			return err
		}
		got, err := until(stream, "system.message")
		return errors.Join(err, want("events", len(got), 1))
	})
	s.step("an interrupt ends a run", func(ctx context.Context) error {
		if err := s.send(ctx, session.ID, message("bash: sleep 600")); err != nil {
			return err
		}
		if _, err := until(stream, "agent.tool_use"); err != nil {
			return err
		}
		running, err := c.Beta.Sessions.Get(ctx, session.ID, anthropic.BetaSessionGetParams{})
		if err != nil {
			return err
		}
		err = s.send(
			ctx,
			session.ID,
			anthropic.BetaManagedAgentsEventParamsUnion{
				OfUserInterrupt: &anthropic.BetaManagedAgentsUserInterruptEventParams{Type: "user.interrupt"},
			},
		)
		if err != nil {
			return err
		}
		got, err := until(stream, "session.status_idle")
		return errors.Join(
			err,
			want("status", string(running.Status), "running"),
			want("interrupt", find(got, "user.interrupt").Type, "user.interrupt"),
		)
	})
	s.step("the server is killed and goes on", func(ctx context.Context) error {
		address := strings.TrimPrefix(s.url, "http://")
		s.stop()
		s.start(address)
		stream.Close()
		if stream = c.Beta.Sessions.Events.StreamEvents(t.Context(), session.ID, anthropic.BetaSessionEventStreamParams{}); stream.Err() != nil {
			return stream.Err()
		}
		if err := s.send(ctx, session.ID, message("say: still here")); err != nil {
			return err
		}
		got, err := until(stream, "session.status_idle")
		return errors.Join(err, want("message", find(got, "agent.message").AsAgentMessage().Content[0].Text, "still here"))
	})
	s.step("update a session", func(ctx context.Context) error {
		session, err = c.Beta.Sessions.Update(
			ctx,
			session.ID,
			anthropic.BetaSessionUpdateParams{Title: param.NewOpt("second"), Metadata: map[string]string{"l": "w"}},
		)
		if err != nil {
			return err
		}
		got, err := until(stream, "session.updated")
		return errors.Join(err, want("title", session.Title, "second"), want("metadata", len(session.Metadata), 2),
			want("told", find(got, "session.updated").AsSessionUpdated().Title, "second"))
	})
	s.step("give a session other tools: one asks, one is the client's", func(ctx context.Context) error {
		session, err = c.Beta.Sessions.Update(
			ctx,
			session.ID,
			anthropic.BetaSessionUpdateParams{Agent: anthropic.BetaManagedAgentsSessionAgentUpdateParam{
				Tools: []anthropic.BetaManagedAgentsSessionAgentUpdateToolUnionParam{{
					OfAgentToolset20260401: &anthropic.BetaManagedAgentsAgentToolset20260401Params{
						Type: "agent_toolset_20260401",
						Configs: []anthropic.BetaManagedAgentsAgentToolConfigParamsUnion{
							{
								OfBash: &anthropic.BetaManagedAgentsBashToolConfigParams{
									PermissionPolicy: anthropic.BetaManagedAgentsBashToolConfigParamsPermissionPolicyUnion{
										OfAlwaysAsk: &anthropic.BetaManagedAgentsAlwaysAskPolicyParam{Type: "always_ask"},
									},
								},
							},
							{OfWrite: &anthropic.BetaManagedAgentsWriteToolConfigParams{Enabled: param.NewOpt(false)}},
						},
					},
				}, {OfCustom: &anthropic.BetaManagedAgentsCustomToolParams{
					Type:        "custom",
					Name:        "weather",
					Description: "Tells the weather.",
					InputSchema: anthropic.BetaManagedAgentsCustomToolInputSchemaParam{
						Properties: map[string]any{"city": map[string]any{"type": "string"}},
					},
				}}},
			}},
		)
		if err != nil {
			return err
		}
		return want("tools", len(session.Agent.Tools), 2)
	})
	var asked string
	s.step("a call asks", func(ctx context.Context) error {
		if err := s.send(ctx, session.ID, message("bash: echo asked")); err != nil {
			return err
		}
		got, err := until(stream, "session.status_idle")
		if err != nil {
			return err
		}
		use := find(got, "agent.tool_use").AsAgentToolUse()
		stop := find(got, "session.status_idle").AsSessionStatusIdle().StopReason
		asked = use.ID
		return errors.Join(want("permission", string(use.EvaluatedPermission), "ask"), want("reason", stop.Type, "requires_action"),
			want("waits for", strings.Join(stop.EventIDs, " "), use.ID))
	})
	confirm := func(id, result, why string) anthropic.BetaManagedAgentsEventParamsUnion {
		p := &anthropic.BetaManagedAgentsUserToolConfirmationEventParams{
			Type:      "user.tool_confirmation",
			ToolUseID: id,
			Result:    anthropic.BetaManagedAgentsUserToolConfirmationEventParamsResult(result),
		}
		if why != "" {
			p.DenyMessage = param.NewOpt(why)
		}
		return anthropic.BetaManagedAgentsEventParamsUnion{OfUserToolConfirmation: p}
	}
	s.step("it is confirmed", func(ctx context.Context) error {
		if err := s.send(ctx, session.ID, confirm(asked, "allow", "")); err != nil {
			return err
		}
		got, err := until(stream, "session.status_idle")
		return errors.Join(err, want("confirmation", find(got, "user.tool_confirmation").AsUserToolConfirmation().ToolUseID, asked),
			want("result", strings.Contains(find(got, "agent.tool_result").RawJSON(), "asked"), true))
	})
	s.step("a second confirmation is refused", func(ctx context.Context) error {
		return errors.Join(refused(s.send(ctx, session.ID, confirm(asked, "allow", "")), 409, "no answer"),
			refused(s.send(ctx, session.ID, confirm("sevt_none", "allow", "")), 404, "sevt_none"))
	})
	s.step("a call is denied, with a reason for the model", func(ctx context.Context) error {
		if err := s.send(ctx, session.ID, message("bash: echo denied")); err != nil {
			return err
		}
		got, err := until(stream, "session.status_idle")
		if err != nil {
			return err
		}
		if err := s.send(ctx, session.ID, confirm(find(got, "agent.tool_use").ID, "deny", "too loud")); err != nil {
			return err
		}
		got, err = until(stream, "session.status_idle")
		return errors.Join(err, want("reason", strings.Contains(find(got, "agent.tool_result").RawJSON(), "too loud"), true),
			want("error", find(got, "agent.tool_result").AsAgentToolResult().IsError, true))
	})
	s.step("a tool that is off is denied", func(ctx context.Context) error {
		if err := s.send(ctx, session.ID, message(`call: write_file {"path":"x","content":"y"}`)); err != nil {
			return err
		}
		got, err := until(stream, "session.status_idle")
		use := find(got, "agent.tool_use").AsAgentToolUse()
		return errors.Join(err, want("name", use.Name, "write"), want("permission", string(use.EvaluatedPermission), "deny"))
	})
	for _, failed := range []bool{false, true} {
		s.step(fmt.Sprintf("the client runs a tool of its own, failed: %v", failed), func(ctx context.Context) error {
			if err := s.send(ctx, session.ID, message(`call: weather {"city":"Oslo"}`)); err != nil {
				return err
			}
			got, err := until(stream, "session.status_idle")
			if err != nil {
				return err
			}
			use := find(got, "agent.custom_tool_use").AsAgentCustomToolUse()
			err = s.send(
				ctx,
				session.ID,
				anthropic.BetaManagedAgentsEventParamsUnion{OfUserCustomToolResult: &anthropic.BetaManagedAgentsUserCustomToolResultEventParams{
					Type:            "user.custom_tool_result",
					CustomToolUseID: use.ID,
					IsError:         param.NewOpt(failed),
					Content: []anthropic.BetaManagedAgentsUserCustomToolResultEventParamsContentUnion{
						{OfText: &anthropic.BetaManagedAgentsTextBlockParam{Type: "text", Text: "rain"}},
					},
				}},
			)
			if err != nil {
				return err
			}
			got, err = until(stream, "session.status_idle")
			result := find(got, "user.custom_tool_result").AsUserCustomToolResult()
			return errors.Join(err, want("city", fmt.Sprint(use.Input["city"]), "Oslo"), want("result of", result.CustomToolUseID, use.ID),
				want("text", result.Content[0].Text, "rain"), want("error", result.IsError, failed), want("name", use.Name, "weather"))
		})
	}
	s.step("a subagent is a thread", func(ctx context.Context) error {
		lead, err := c.Beta.Agents.New(ctx, anthropic.BetaAgentNewParams{
			Name: "lead", Model: anthropic.BetaManagedAgentsModelConfigParams{ID: "script"},
			Tools: []anthropic.BetaAgentNewParamsToolUnion{{OfAgentToolset20260401: &allow}},
			Multiagent: anthropic.BetaManagedAgentsMultiagentParamsUnion{OfCoordinator: &anthropic.BetaManagedAgentsMultiagentCoordinatorParams{
				Type: "coordinator", Agents: []anthropic.BetaManagedAgentsMultiagentRosterEntryParamsUnion{{
					OfBetaManagedAgentsMultiagentSelfs: &anthropic.BetaManagedAgentsMultiagentSelfParams{Type: "self"},
				}},
			}},
		})
		if err != nil {
			return err
		}
		p, err := c.Beta.Sessions.New(
			ctx,
			anthropic.BetaSessionNewParams{Agent: anthropic.BetaSessionNewParamsAgentUnion{OfString: param.NewOpt(lead.ID)}, EnvironmentID: env.ID},
		)
		if err != nil {
			return err
		}
		stream := c.Beta.Sessions.Events.StreamEvents(ctx, p.ID, anthropic.BetaSessionEventStreamParams{})
		defer stream.Close()
		if err := s.send(ctx, p.ID, message(`call: spawn_agent {"task":"say: part done"}`)); err != nil {
			return err
		}
		got, err := until(stream, "session.status_idle")
		if err != nil {
			return err
		}
		created := find(got, "session.thread_created").AsSessionThreadCreated()
		threads, err := c.Beta.Sessions.Threads.List(ctx, p.ID, anthropic.BetaSessionThreadListParams{})
		if err != nil {
			return err
		}
		thread, err := c.Beta.Sessions.Threads.Get(ctx, created.SessionThreadID, anthropic.BetaSessionThreadGetParams{SessionID: p.ID})
		if err != nil {
			return err
		}
		events, err := c.Beta.Sessions.Threads.Events.List(ctx, thread.ID, anthropic.BetaSessionThreadEventListParams{SessionID: p.ID})
		if err != nil {
			return err
		}
		said := ""
		for _, e := range events.Data {
			if e.Type == "agent.message" {
				said = e.AsAgentMessage().Content[0].Text
			}
		}
		follow := c.Beta.Sessions.Threads.Events.StreamEvents(ctx, thread.ID, anthropic.BetaSessionThreadEventStreamParams{SessionID: p.ID},
			option.WithHeader("Last-Event-ID", events.Data[0].ID))
		defer follow.Close()
		resumed := follow.Next() && follow.Current().ID == events.Data[1].ID
		archived, err := c.Beta.Sessions.Threads.Archive(ctx, thread.ID, anthropic.BetaSessionThreadArchiveParams{SessionID: p.ID})
		if err != nil {
			return err
		}
		return errors.Join(
			want("threads", len(threads.Data), 2),
			want("parent", thread.ParentThreadID, threads.Data[0].ID),
			want("said", said, "part done"),
			want("resumed", resumed, true),
			want("archived", archived.ArchivedAt.IsZero(), false),
			want("received", find(got, "agent.thread_message_received").AsAgentThreadMessageReceived().FromSessionThreadID, thread.ID),
		)
	})
	s.step("the usage is counted", func(ctx context.Context) error {
		session, err = c.Beta.Sessions.Get(ctx, session.ID, anthropic.BetaSessionGetParams{})
		return errors.Join(err, want("tokens", session.Usage.InputTokens > 0 && session.Usage.OutputTokens > 0, true))
	})
	s.step("sessions are listed and filtered", func(ctx context.Context) error {
		one, err := c.Beta.Sessions.List(ctx, anthropic.BetaSessionListParams{AgentID: param.NewOpt(agent.ID), Statuses: []string{"idle"}})
		if err != nil {
			return err
		}
		none, err := c.Beta.Sessions.List(
			ctx,
			anthropic.BetaSessionListParams{AgentID: param.NewOpt(agent.ID), AgentVersion: param.NewOpt[int64](1)},
		)
		if err != nil {
			return err
		}
		return errors.Join(want("sessions", len(one.Data), 1), want("of version 1", len(none.Data), 0))
	})
	s.step("a session with a pinned version and a first message", func(ctx context.Context) error {
		p, err := c.Beta.Sessions.New(ctx, anthropic.BetaSessionNewParams{
			EnvironmentID: env.ID,
			Agent: anthropic.BetaSessionNewParamsAgentUnion{OfBetaManagedAgentsAgents: &anthropic.BetaManagedAgentsAgentParams{
				Type: "agent", ID: agent.ID, Version: param.NewOpt[int64](1),
			}},
			InitialEvents: []anthropic.BetaSessionNewParamsInitialEventUnion{{OfUserMessage: message("say: at once").OfUserMessage}},
		})
		if err != nil {
			return err
		}
		events, err := s.settled(ctx, p.ID)
		return errors.Join(err, want("version", p.Agent.Version, 1), want("answer", slices.Contains(events, "agent.message"), true))
	})
	s.step("a session with overrides", func(ctx context.Context) error {
		o, err := c.Beta.Sessions.New(ctx, anthropic.BetaSessionNewParams{
			EnvironmentID: env.ID,
			Agent: anthropic.BetaSessionNewParamsAgentUnion{
				OfBetaManagedAgentsAgentWithOverridess: &anthropic.BetaManagedAgentsAgentWithOverridesParams{
					Type: "agent_with_overrides", ID: agent.ID, System: param.NewOpt("Be loud."),
				},
			},
		})
		if err != nil {
			return err
		}
		return want("system", o.Agent.System, "Be loud.")
	})
	s.step("what comes twice with a key counts once", func(ctx context.Context) error {
		key := option.WithHeader("Idempotency-Key", "once")
		p := anthropic.BetaSessionNewParams{
			Agent:         anthropic.BetaSessionNewParamsAgentUnion{OfString: param.NewOpt(agent.ID)},
			EnvironmentID: env.ID,
		}
		a, err := c.Beta.Sessions.New(ctx, p, key)
		if err != nil {
			return err
		}
		b, err := c.Beta.Sessions.New(ctx, p, key)
		if err != nil {
			return err
		}
		events := anthropic.BetaSessionEventSendParams{Events: []anthropic.BetaManagedAgentsEventParamsUnion{message("say: once")}}
		var ids []string
		for range 2 {
			sent, err := c.Beta.Sessions.Events.Send(ctx, a.ID, events, option.WithHeader("Idempotency-Key", "message"))
			if err != nil {
				return err
			}
			ids = append(ids, sent.Data[0].ID)
		}
		all, err := s.settled(ctx, a.ID)
		n := len(slices.DeleteFunc(all, func(k string) bool { return k != "user.message" }))
		return errors.Join(err, want("session", a.ID, b.ID), want("event", ids[0], ids[1]), want("messages", n, 1))
	})
	s.step("a stranger is refused", func(ctx context.Context) error {
		_, err := c.Beta.Agents.Get(ctx, agent.ID, anthropic.BetaAgentGetParams{}, option.WithAPIKey("sk-none"))
		var api *anthropic.Error
		if !errors.As(err, &api) {
			return fmt.Errorf("it was not refused: %v", err)
		}
		return want("status", api.StatusCode, http.StatusUnauthorized)
	})
	for _, graded := range []struct {
		verdict, result string
		ends            int
	}{{"satisfied", "satisfied", 1}, {"needs_revision", "max_iterations_reached", 2}, {"no verdict", "failed", 1}} {
		s.step("an outcome is graded: "+graded.result, func(ctx context.Context) error {
			o, err := c.Beta.Sessions.New(ctx, anthropic.BetaSessionNewParams{
				Agent: anthropic.BetaSessionNewParamsAgentUnion{OfString: param.NewOpt(agent.ID)}, EnvironmentID: env.ID,
			})
			if err != nil {
				return err
			}
			stream := c.Beta.Sessions.Events.StreamEvents(ctx, o.ID, anthropic.BetaSessionEventStreamParams{})
			defer stream.Close()
			if err := s.send(
				ctx,
				o.ID,
				anthropic.BetaManagedAgentsEventParamsUnion{OfUserDefineOutcome: &anthropic.BetaManagedAgentsUserDefineOutcomeEventParams{
					Type: "user.define_outcome", Description: "Make a file.", MaxIterations: param.NewOpt[int64](2),
					Rubric: anthropic.BetaManagedAgentsUserDefineOutcomeEventParamsRubricUnion{OfText: &anthropic.BetaManagedAgentsTextRubricParams{
						Type: "text", Content: `say: {"result":"` + graded.verdict + `","explanation":"so it is"}`,
					}},
				}},
			); err != nil {
				return err
			}
			got, err := until(stream, "session.status_idle")
			if err != nil {
				return err
			}
			ends, result := 0, ""
			for _, e := range got {
				if e.Type == "span.outcome_evaluation_end" {
					ends, result = ends+1, e.AsSpanOutcomeEvaluationEnd().Result
				}
			}
			if o, err = c.Beta.Sessions.Get(ctx, o.ID, anthropic.BetaSessionGetParams{}); err != nil {
				return err
			}
			defined := find(got, "user.define_outcome").AsUserDefineOutcome()
			return errors.Join(
				want("evaluations", ends, graded.ends),
				want("result", result, graded.result),
				want("status", string(o.Status), "idle"),
				want(
					"outcome",
					o.OutcomeEvaluations[0].OutcomeID,
					defined.OutcomeID,
				),
				want("at the session", o.OutcomeEvaluations[0].Result, graded.result),
				want("runs", strings.Count(fmt.Sprint(kinds(got)), "session.status_running"), 1),
			)
		})
	}
	s.step("archive a session: its stream ends", func(ctx context.Context) error {
		archived, err := c.Beta.Sessions.Archive(ctx, session.ID, anthropic.BetaSessionArchiveParams{})
		if err != nil {
			return err
		}
		if _, err := until(stream, "session.status_terminated"); err != nil {
			return err
		}
		return errors.Join(want("archived", archived.ArchivedAt.IsZero(), false), want("ended", stream.Next(), false),
			refused(s.send(ctx, session.ID, message("x")), 409, "archived"))
	})
	s.step("delete a session", func(ctx context.Context) error {
		if _, err := c.Beta.Sessions.Delete(ctx, session.ID, anthropic.BetaSessionDeleteParams{}); err != nil {
			return err
		}
		_, err := c.Beta.Sessions.Get(ctx, session.ID, anthropic.BetaSessionGetParams{})
		return refused(err, 404, session.ID)
	})
	s.step("archive an agent: no session begins with it", func(ctx context.Context) error {
		if agent, err = c.Beta.Agents.Archive(ctx, agent.ID, anthropic.BetaAgentArchiveParams{}); err != nil {
			return err
		}
		_, err := c.Beta.Sessions.New(
			ctx,
			anthropic.BetaSessionNewParams{Agent: anthropic.BetaSessionNewParamsAgentUnion{OfString: param.NewOpt(agent.ID)}, EnvironmentID: env.ID},
		)
		return errors.Join(want("archived", agent.ArchivedAt.IsZero(), false), refused(err, 409, "archived"))
	})
	s.step("archive and delete an environment", func(ctx context.Context) error {
		if _, err := c.Beta.Environments.Archive(ctx, env.ID, anthropic.BetaEnvironmentArchiveParams{}); err != nil {
			return err
		}
		_, err := c.Beta.Environments.Delete(ctx, env.ID, anthropic.BetaEnvironmentDeleteParams{})
		return err
	})
	t.Logf("%d steps", s.steps)
}

// settled waits until a session has done what it was told, and returns the types of its events.
func (s *served) settled(ctx context.Context, session string) (all []string, err error) {
	for {
		page, err := s.client.Beta.Sessions.Events.List(ctx, session, anthropic.BetaSessionEventListParams{Limit: param.NewOpt[int64](1000)})
		if err != nil {
			return nil, err
		}
		all = nil
		for _, e := range page.Data {
			all = append(all, e.Type)
		}
		if n := len(all); n > 0 && all[n-1] == "session.status_idle" {
			return all, nil
		}
	}
}

// pixel is a picture.
var pixel = base64.StdEncoding.EncodeToString(
	[]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89" +
		"\x00\x00\x00\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\x00\x05\x00\x01\xff\x89\x99=\x1d\x00\x00\x00\x00IEND\xaeB`\x82"),
)

// pythonClient is the version of the official Python client.
const pythonClient = "anthropic==2.14.0"

// python is an interpreter that has the official client, from a folder of the user's cache.
func python(t *testing.T) string {
	t.Helper()
	base, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("SKIPPED: the official Python client is not tried, because there is no python3")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	venv := filepath.Join(cache, "inspan-oracle", strings.ReplaceAll(pythonClient, "==", "-"))
	python := filepath.Join(venv, "bin", "python")
	if exec.CommandContext(t.Context(), python, "-c", "import anthropic").Run() == nil {
		return python
	}
	for _, args := range [][]string{{base, "-m", "venv", "--clear", venv}, {python, "-m", "pip", "install", "--quiet", pythonClient}} {
		if out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Skipf("SKIPPED: the official Python client is not tried, because it can't be installed: %v\n%s", err, out)
		}
	}
	return python
}

// TestManagedByPython has the official Python client run a script of steps against the command.
func TestManagedByPython(t *testing.T) {
	interpreter := python(t)
	s := serve(t)
	out, err := exec.CommandContext(t.Context(), interpreter, filepath.Join("testdata", "managed.py"), s.url, s.token).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, strings.Join(s.said(), "\n"))
	}
	t.Logf("%s", out)
}

// said is what the server has warned of.
func (s *served) said() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.warned)
}

// TestManagedReconnects cuts a stream at events at random and resumes it behind the last that came:
// none is lost and none comes twice.
func TestManagedReconnects(t *testing.T) {
	s := serve(t)
	c := &s.client
	ctx, end := context.WithTimeout(t.Context(), 3*time.Minute)
	defer end()
	agent, err := c.Beta.Agents.New(ctx, anthropic.BetaAgentNewParams{
		Name:  "helper",
		Model: anthropic.BetaManagedAgentsModelConfigParams{ID: "script"},
		Tools: []anthropic.BetaAgentNewParamsToolUnion{
			{OfAgentToolset20260401: &anthropic.BetaManagedAgentsAgentToolset20260401Params{Type: "agent_toolset_20260401"}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	env, err := c.Beta.Environments.New(ctx, anthropic.BetaEnvironmentNewParams{Name: "box"})
	if err != nil {
		t.Fatal(err)
	}
	session, err := c.Beta.Sessions.New(
		ctx,
		anthropic.BetaSessionNewParams{Agent: anthropic.BetaSessionNewParamsAgentUnion{OfString: param.NewOpt(agent.ID)}, EnvironmentID: env.ID},
	)
	if err != nil {
		t.Fatal(err)
	}
	const runs = 12
	talked := make(chan error, 1)
	talk := func() {
		var err error
		for i := 0; i < runs && err == nil; i++ {
			if err = s.send(ctx, session.ID, message(strings.Repeat("bash: true\n", 5)+"say: over")); err == nil {
				_, err = s.settled(ctx, session.ID)
			}
		}
		talked <- err
	}
	r := rand.New(rand.NewPCG(1, 2))
	var got []string
	cuts, idle := 0, 0
	for idle < runs {
		var resume []option.RequestOption
		if len(got) > 0 {
			resume = append(resume, option.WithHeader("Last-Event-ID", got[len(got)-1]))
		}
		stream := c.Beta.Sessions.Events.StreamEvents(ctx, session.ID, anthropic.BetaSessionEventStreamParams{
			EventDeltas: []anthropic.BetaManagedAgentsDeltaType{"agent.message"},
		}, resume...)
		if cuts == 0 {
			go talk()
		}
		for n := r.IntN(6); n >= 0 && idle < runs && stream.Next(); {
			e := stream.Current()
			if e.ID == "" {
				continue // a preview
			}
			got = append(got, e.ID)
			if e.Type == "session.status_idle" {
				idle++
			}
			n--
		}
		if stream.Err() != nil {
			t.Fatal(stream.Err())
		}
		stream.Close()
		cuts++
	}
	if err := <-talked; err != nil {
		t.Fatal(err)
	}
	var all []string
	pages := c.Beta.Sessions.Events.ListAutoPaging(ctx, session.ID, anthropic.BetaSessionEventListParams{Limit: param.NewOpt[int64](1000)})
	for pages.Next() {
		all = append(all, pages.Current().ID)
	}
	if pages.Err() != nil {
		t.Fatal(pages.Err())
	}
	if !slices.Equal(all, got) {
		t.Errorf("%d events came, of %d", len(got), len(all))
	}
	t.Logf("%d cuts, %d events, none lost and none twice", cuts, len(got))
}

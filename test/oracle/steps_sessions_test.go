package oracle

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/param"
	"github.com/anthropics/anthropic-sdk-go/packages/ssestream"
)

// kept holds the values that steps leave for later ones.
type kept struct {
	helper     *anthropic.BetaManagedAgentsAgent
	box        *anthropic.BetaEnvironment
	first      *anthropic.BetaManagedAgentsSession
	asked      string // a call that asks
	lead       *anthropic.BetaManagedAgentsSession
	thread     string
	deployment *anthropic.BetaManagedAgentsDeployment
	run        *anthropic.BetaManagedAgentsDeploymentRun
	store      *anthropic.BetaManagedAgentsMemoryStore
	memory     *anthropic.BetaManagedAgentsMemory
	file       *anthropic.BetaFileMetadata
	filed      *anthropic.BetaManagedAgentsSession
	vault      *anthropic.BetaManagedAgentsVault
	credential *anthropic.BetaManagedAgentsCredential
	skill      *anthropic.BetaSkill
	version    *anthropic.BetaSkillVersion
	hooks      *hooks
}

// model is that of all agents here.
func model(id string) anthropic.BetaManagedAgentsModelConfigParams {
	return anthropic.BetaManagedAgentsModelConfigParams{ID: anthropic.BetaManagedAgentsModel(id)}
}

// toolset is the vendor's, as it is.
func toolset() *anthropic.BetaManagedAgentsAgentToolset20260401Params {
	return &anthropic.BetaManagedAgentsAgentToolset20260401Params{Type: "agent_toolset_20260401"}
}

// of is an agent by its id.
func of(agent string) anthropic.BetaSessionNewParamsAgentUnion {
	return anthropic.BetaSessionNewParamsAgentUnion{OfString: param.NewOpt(agent)}
}

// agentSteps are those of agents and environments.
func agentSteps() map[string]step {
	return map[string]step{
		"create an agent": func(ctx context.Context, s *script) string {
			s.helper = must(s.client.Beta.Agents.New(ctx, anthropic.BetaAgentNewParams{
				Name: "helper", Model: model("script"), System: param.NewOpt("Be brief."),
				Tools:    []anthropic.BetaAgentNewParamsToolUnion{{OfAgentToolset20260401: toolset()}},
				Metadata: map[string]string{"team": "a"},
			}))
			return outcome("agent", s.helper.ID, "version", s.helper.Version, "system", s.helper.System, "team", s.helper.Metadata["team"])
		},
		"name a model of the vendor": func(ctx context.Context, s *script) string {
			a := must(s.client.Beta.Agents.New(ctx, anthropic.BetaAgentNewParams{Name: "other", Model: model("claude-opus-5-5")}))
			return outcome("agent", a.ID, "model", a.Model.ID)
		},
		"refuse an unknown field": func(ctx context.Context, s *script) string {
			p := anthropic.BetaAgentNewParams{Name: "x", Model: model("script")}
			return refusal(s.client.Beta.Agents.New(ctx, p, option.WithJSONSet("nmae", 1)))
		},
		"read an agent": func(ctx context.Context, s *script) string {
			a := must(s.client.Beta.Agents.Get(ctx, s.helper.ID, anthropic.BetaAgentGetParams{}))
			return outcome("agent", a.ID, "name", a.Name)
		},
		"update an agent": func(ctx context.Context, s *script) string {
			s.helper = must(s.client.Beta.Agents.Update(ctx, s.helper.ID, anthropic.BetaAgentUpdateParams{
				Version: param.NewOpt[int64](1), Description: param.NewOpt("helps"),
			}))
			return outcome("version", s.helper.Version, "description", s.helper.Description, "name", s.helper.Name)
		},
		"refuse an update of an old version": func(ctx context.Context, s *script) string {
			return refusal(s.client.Beta.Agents.Update(ctx, s.helper.ID, anthropic.BetaAgentUpdateParams{
				Version: param.NewOpt[int64](1), Name: param.NewOpt("x"),
			}))
		},
		"list the versions of an agent": func(ctx context.Context, s *script) string {
			var got []string
			pages := s.client.Beta.Agents.Versions.ListAutoPaging(ctx, s.helper.ID, anthropic.BetaAgentVersionListParams{Limit: param.NewOpt[int64](1)})
			for pages.Next() {
				got = append(got, fmt.Sprint(pages.Current().Version))
			}
			return outcome("versions", must(got, pages.Err()))
		},
		"list agents": func(ctx context.Context, s *script) string {
			var got []string
			pages := s.client.Beta.Agents.ListAutoPaging(ctx, anthropic.BetaAgentListParams{Limit: param.NewOpt[int64](1)})
			for pages.Next() {
				got = append(got, pages.Current().ID)
			}
			return outcome("agents", must(got, pages.Err()))
		},
		"create an environment": func(ctx context.Context, s *script) string {
			s.box = must(s.client.Beta.Environments.New(ctx, anthropic.BetaEnvironmentNewParams{
				Name: "box",
				Config: anthropic.BetaEnvironmentNewParamsConfigUnion{OfCloud: &anthropic.BetaCloudConfigParams{
					Networking: anthropic.BetaCloudConfigParamsNetworkingUnion{OfUnrestricted: &anthropic.BetaUnrestrictedNetworkParam{}},
				}},
			}))
			s.agent, s.env = s.helper.ID, s.box.ID
			return outcome("environment", s.box.ID, "type", s.box.Config.Type, "network", s.box.Config.Networking.Type)
		},
		"update and list environments": func(ctx context.Context, s *script) string {
			must(s.client.Beta.Environments.Update(ctx, s.env, anthropic.BetaEnvironmentUpdateParams{Description: param.NewOpt("one")}))
			list := must(s.client.Beta.Environments.List(ctx, anthropic.BetaEnvironmentListParams{}))
			return outcome("environments", len(list.Data), "description", list.Data[0].Description)
		},
		"limit a network": func(ctx context.Context, s *script) string {
			environments := s.client.Beta.Environments
			made := must(environments.New(ctx, anthropic.BetaEnvironmentNewParams{
				Name: "limited", Config: anthropic.BetaEnvironmentNewParamsConfigUnion{OfCloud: &anthropic.BetaCloudConfigParams{
					Networking: anthropic.BetaCloudConfigParamsNetworkingUnion{OfLimited: &anthropic.BetaLimitedNetworkParams{}},
				}},
			}))
			n := must(environments.Get(ctx, made.ID, anthropic.BetaEnvironmentGetParams{})).Config.Networking
			gone := must(environments.Delete(ctx, made.ID, anthropic.BetaEnvironmentDeleteParams{}))
			return outcome("network", n.Type, "hosts", len(n.AllowedHosts), "managers", n.AllowPackageManagers, "servers", n.AllowMCPServers,
				"deleted", gone.ID)
		},
	}
}

// follow opens the stream of a session.
func (s *script) follow(ctx context.Context, session string) *ssestream.Stream[sessionEvent] {
	return s.client.Beta.Sessions.Events.StreamEvents(ctx, session, anthropic.BetaSessionEventStreamParams{
		EventDeltas: []anthropic.BetaManagedAgentsDeltaType{"agent.message", "agent.thinking"},
	})
}

// tells sends events to a session, and returns the streamed events until it is idle.
func (s *script) tells(ctx context.Context, session string, events ...anthropic.BetaManagedAgentsEventParamsUnion) []sessionEvent {
	stream := s.follow(ctx, session)
	defer stream.Close()
	must(0, s.send(ctx, session, events...))
	return must(until(stream, "session.status_idle"))
}

// stored are the types of events but of previews.
func stored(events []sessionEvent) []string {
	return slices.DeleteFunc(kinds(events), func(kind string) bool { return kind == "event_start" || kind == "event_delta" })
}

// sessionSteps are those of sessions and their events.
func sessionSteps() map[string]step {
	return map[string]step{
		"create a session": func(ctx context.Context, s *script) string {
			s.first = must(s.client.Beta.Sessions.New(ctx, anthropic.BetaSessionNewParams{
				Agent: of(s.agent), EnvironmentID: s.env, Title: param.NewOpt("first"), Metadata: map[string]string{"k": "v"},
			}))
			return outcome("session", s.first.ID, "status", s.first.Status, "version", s.first.Agent.Version, "title", s.first.Title,
				"k", s.first.Metadata["k"])
		},
		"stream an answer with previews": func(ctx context.Context, s *script) string {
			got := s.tells(ctx, s.first.ID, message("reason: hm\nsay: hello there"))
			var previews anthropic.BetaManagedAgentsEventAccumulator
			previewed := ""
			for _, e := range got {
				previews.Accumulate(e)
				if e.Type == "event_delta" {
					previewed = previews.AgentMessageText(e.EventID)
				}
			}
			start := find(got, "event_start").AsEventStart().Event
			return outcome("events", stored(got), "first preview", start.ID, "thinking", find(got, "agent.thinking").ID, "previewed", previewed,
				"text", find(got, "agent.message").AsAgentMessage().Content[0].Text,
				"ended", find(got, "span.model_request_end").AsSpanModelRequestEnd().ModelRequestStartID,
				"request", find(got, "span.model_request_start").ID,
				"stop", find(got, "session.status_idle").AsSessionStatusIdle().StopReason.Type)
		},
		"run a tool": func(ctx context.Context, s *script) string {
			got := s.tells(ctx, s.first.ID, message("bash: echo made > file"))
			use, result := find(got, "agent.tool_use").AsAgentToolUse(), find(got, "agent.tool_result").AsAgentToolResult()
			return outcome("events", stored(got), "tool", use.Name, "permission", use.EvaluatedPermission, "call", use.ID, "result of", result.ToolUseID,
				"error", result.IsError)
		},
		"read a file": func(ctx context.Context, s *script) string {
			got := s.tells(ctx, s.first.ID, message("read: file"))
			use := find(got, "agent.tool_use").AsAgentToolUse()
			return outcome("tool", use.Name, "file_path", use.Input["file_path"],
				"made", strings.Contains(find(got, "agent.tool_result").AsAgentToolResult().Content[0].Text, "made"))
		},
		"list what was streamed": func(ctx context.Context, s *script) string {
			var listed, streamed []string
			pages := s.client.Beta.Sessions.Events.ListAutoPaging(ctx, s.first.ID, anthropic.BetaSessionEventListParams{Limit: param.NewOpt[int64](3)})
			for pages.Next() {
				listed = append(listed, pages.Current().ID)
			}
			must(0, pages.Err())
			again := s.client.Beta.Sessions.Events.StreamEvents(ctx, s.first.ID, anthropic.BetaSessionEventStreamParams{},
				option.WithHeader("Last-Event-ID", listed[0]))
			defer again.Close()
			for len(streamed) < len(listed)-1 && again.Next() {
				streamed = append(streamed, again.Current().ID)
			}
			return outcome("listed", len(listed), "streamed behind the first", len(streamed), "the same", slices.Equal(streamed, listed[1:]))
		},
		"filter events": func(ctx context.Context, s *script) string {
			page := must(s.client.Beta.Sessions.Events.List(ctx, s.first.ID, anthropic.BetaSessionEventListParams{
				Order: "desc", Types: []anthropic.BetaManagedAgentsSessionEventType{"user.message"},
			}))
			return outcome("messages", len(page.Data), "last", page.Data[0].AsUserMessage().Content[0].Text)
		},
		"send an image and a document": func(ctx context.Context, s *script) string {
			m := message("say: seen")
			m.OfUserMessage.Content = append(m.OfUserMessage.Content, anthropic.BetaManagedAgentsUserMessageEventParamsContentUnion{
				OfImage: &anthropic.BetaManagedAgentsImageBlockParam{Type: "image", Source: anthropic.BetaManagedAgentsImageBlockSourceUnionParam{
					OfBase64: &anthropic.BetaManagedAgentsBase64ImageSourceParam{Type: "base64", MediaType: "image/png", Data: pixel},
				}},
			}, anthropic.BetaManagedAgentsUserMessageEventParamsContentUnion{
				OfDocument: &anthropic.BetaManagedAgentsDocumentBlockParam{Type: "document", Source: anthropic.BetaManagedAgentsDocumentBlockSourceUnionParam{
					OfText: &anthropic.BetaManagedAgentsPlainTextDocumentSourceParam{Type: "text", MediaType: "text/plain", Data: "a plan"},
				}},
			})
			said := find(s.tells(ctx, s.first.ID, m), "user.message").AsUserMessage().Content
			return outcome("blocks", []string{said[0].Type, said[1].Type, said[2].Type}, "the same image", said[1].AsImage().Source.Data == pixel,
				"document", strings.Contains(said[2].Text, "a plan"))
		},
		"send a system message": func(ctx context.Context, s *script) string {
			stream := s.follow(ctx, s.first.ID)
			defer stream.Close()
			must(0, s.send(ctx, s.first.ID, anthropic.BetaManagedAgentsEventParamsUnion{OfSystemMessage: &anthropic.BetaManagedAgentsSystemMessageEventParams{
				Type: "system.message", Content: []anthropic.BetaManagedAgentsSystemContentBlockParam{{Type: "text", Text: "Mind the gap."}},
			}}))
			got := must(until(stream, "system.message"))
			return outcome("events", stored(got), "status", must(s.client.Beta.Sessions.Get(ctx, s.first.ID, anthropic.BetaSessionGetParams{})).Status)
		},
		"interrupt a run": func(ctx context.Context, s *script) string {
			stream := s.follow(ctx, s.first.ID)
			defer stream.Close()
			must(0, s.send(ctx, s.first.ID, message("bash: sleep 600")))
			must(until(stream, "agent.tool_use"))
			running := must(s.client.Beta.Sessions.Get(ctx, s.first.ID, anthropic.BetaSessionGetParams{}))
			must(0, s.send(ctx, s.first.ID, anthropic.BetaManagedAgentsEventParamsUnion{
				OfUserInterrupt: &anthropic.BetaManagedAgentsUserInterruptEventParams{Type: "user.interrupt"},
			}))
			got := must(until(stream, "session.status_idle"))
			return outcome("status", running.Status, "interrupt", find(got, "user.interrupt").ID,
				"results", strings.Count(strings.Join(kinds(got), " "), "agent.tool_result"),
				"stop", find(got, "session.status_idle").AsSessionStatusIdle().StopReason.Type)
		},
		"kill the server": func(ctx context.Context, s *script) string {
			s.again()
			got := s.tells(ctx, s.first.ID, message("say: still here"))
			return outcome("text", find(got, "agent.message").AsAgentMessage().Content[0].Text)
		},
		"update a session": func(ctx context.Context, s *script) string {
			stream := s.follow(ctx, s.first.ID)
			defer stream.Close()
			s.first = must(s.client.Beta.Sessions.Update(ctx, s.first.ID, anthropic.BetaSessionUpdateParams{
				Title: param.NewOpt("second"), Metadata: map[string]string{"l": "w"},
			}))
			got := must(until(stream, "session.updated"))
			return outcome("title", s.first.Title, "metadata", len(s.first.Metadata), "told", find(got, "session.updated").AsSessionUpdated().Title)
		},
	}
}

// confirm answers a call that asks.
func confirm(id, result, why string) anthropic.BetaManagedAgentsEventParamsUnion {
	p := &anthropic.BetaManagedAgentsUserToolConfirmationEventParams{
		Type: "user.tool_confirmation", ToolUseID: id, Result: anthropic.BetaManagedAgentsUserToolConfirmationEventParamsResult(result),
	}
	if why != "" {
		p.DenyMessage = param.NewOpt(why)
	}
	return anthropic.BetaManagedAgentsEventParamsUnion{OfUserToolConfirmation: p}
}

// askingSteps are those of calls that wait for the client.
func askingSteps() map[string]step {
	forecast := func(ctx context.Context, s *script, failed bool) string {
		use := find(s.tells(ctx, s.first.ID, message(`call: weather {"city":"Oslo"}`)), "agent.custom_tool_use").AsAgentCustomToolUse()
		got := s.tells(ctx, s.first.ID, anthropic.BetaManagedAgentsEventParamsUnion{
			OfUserCustomToolResult: &anthropic.BetaManagedAgentsUserCustomToolResultEventParams{
				Type: "user.custom_tool_result", CustomToolUseID: use.ID, IsError: param.NewOpt(failed),
				Content: []anthropic.BetaManagedAgentsUserCustomToolResultEventParamsContentUnion{
					{OfText: &anthropic.BetaManagedAgentsTextBlockParam{Type: "text", Text: "rain"}},
				},
			},
		})
		result := find(got, "user.custom_tool_result").AsUserCustomToolResult()
		return outcome("tool", use.Name, "city", use.Input["city"], "call", use.ID, "result of", result.CustomToolUseID,
			"text", result.Content[0].Text, "error", result.IsError, "events", stored(got))
	}
	return map[string]step{
		"give a session other tools": func(ctx context.Context, s *script) string {
			asks := &anthropic.BetaManagedAgentsBashToolConfigParams{
				PermissionPolicy: anthropic.BetaManagedAgentsBashToolConfigParamsPermissionPolicyUnion{
					OfAlwaysAsk: &anthropic.BetaManagedAgentsAlwaysAskPolicyParam{Type: "always_ask"},
				},
			}
			set := toolset()
			set.Configs = []anthropic.BetaManagedAgentsAgentToolConfigParamsUnion{
				{OfBash: asks}, {OfWrite: &anthropic.BetaManagedAgentsWriteToolConfigParams{Enabled: param.NewOpt(false)}},
			}
			s.first = must(s.client.Beta.Sessions.Update(ctx, s.first.ID, anthropic.BetaSessionUpdateParams{
				Agent: anthropic.BetaManagedAgentsSessionAgentUpdateParam{Tools: []anthropic.BetaManagedAgentsSessionAgentUpdateToolUnionParam{
					{OfAgentToolset20260401: set},
					{OfCustom: &anthropic.BetaManagedAgentsCustomToolParams{
						Type: "custom", Name: "weather", Description: "Tells the weather.",
						InputSchema: anthropic.BetaManagedAgentsCustomToolInputSchemaParam{
							Properties: map[string]any{"city": map[string]any{"type": "string"}},
						},
					}},
				}},
			}))
			return outcome("tools", len(s.first.Agent.Tools))
		},
		"let a call ask": func(ctx context.Context, s *script) string {
			got := s.tells(ctx, s.first.ID, message("bash: echo asked"))
			use, stop := find(got, "agent.tool_use").AsAgentToolUse(), find(got, "session.status_idle").AsSessionStatusIdle().StopReason
			s.asked = use.ID
			return outcome("call", use.ID, "permission", use.EvaluatedPermission, "stop", stop.Type, "waits for", stop.EventIDs)
		},
		"confirm a call": func(ctx context.Context, s *script) string {
			got := s.tells(ctx, s.first.ID, confirm(s.asked, "allow", ""))
			return outcome("events", stored(got), "confirmed", find(got, "user.tool_confirmation").AsUserToolConfirmation().ToolUseID,
				"asked", strings.Contains(find(got, "agent.tool_result").AsAgentToolResult().Content[0].Text, "asked"))
		},
		"confirm a call again": func(ctx context.Context, s *script) string {
			return outcome("again", no(s.send(ctx, s.first.ID, confirm(s.asked, "allow", ""))),
				"unknown", no(s.send(ctx, s.first.ID, confirm("sevt_none", "allow", ""))))
		},
		"deny a call": func(ctx context.Context, s *script) string {
			use := find(s.tells(ctx, s.first.ID, message("bash: echo denied")), "agent.tool_use")
			got := s.tells(ctx, s.first.ID, confirm(use.ID, "deny", "too loud"))
			result := find(got, "agent.tool_result").AsAgentToolResult()
			return outcome("error", result.IsError, "reason", strings.Contains(result.Content[0].Text, "too loud"))
		},
		"call a tool that is off": func(ctx context.Context, s *script) string {
			got := s.tells(ctx, s.first.ID, message(`call: write_file {"path":"x","content":"y"}`))
			use := find(got, "agent.tool_use").AsAgentToolUse()
			return outcome("tool", use.Name, "permission", use.EvaluatedPermission, "error", find(got, "agent.tool_result").AsAgentToolResult().IsError)
		},
		"answer a tool of the client's": func(ctx context.Context, s *script) string { return forecast(ctx, s, false) },
		"fail a tool of the client's":   func(ctx context.Context, s *script) string { return forecast(ctx, s, true) },
	}
}

// threadSteps are those of subagents.
func threadSteps() map[string]step {
	return map[string]step{
		"delegate to a subagent": func(ctx context.Context, s *script) string {
			lead := must(s.client.Beta.Agents.New(ctx, anthropic.BetaAgentNewParams{
				Name: "lead", Model: model("script"), Tools: []anthropic.BetaAgentNewParamsToolUnion{{OfAgentToolset20260401: toolset()}},
				Multiagent: anthropic.BetaManagedAgentsMultiagentParamsUnion{OfCoordinator: &anthropic.BetaManagedAgentsMultiagentCoordinatorParams{
					Type: "coordinator", Agents: []anthropic.BetaManagedAgentsMultiagentRosterEntryParamsUnion{{
						OfBetaManagedAgentsMultiagentSelfs: &anthropic.BetaManagedAgentsMultiagentSelfParams{Type: "self"},
					}},
				}},
			}))
			s.lead = must(s.client.Beta.Sessions.New(ctx, anthropic.BetaSessionNewParams{Agent: of(lead.ID), EnvironmentID: s.env}))
			got := s.tells(ctx, s.lead.ID, message(`call: spawn_agent {"task":"say: part done"}`))
			s.thread = find(got, "session.thread_created").AsSessionThreadCreated().SessionThreadID
			return outcome("thread", s.thread,
				"received from", find(got, "agent.thread_message_received").AsAgentThreadMessageReceived().FromSessionThreadID)
		},
		"read a thread": func(ctx context.Context, s *script) string {
			threads := must(s.client.Beta.Sessions.Threads.List(ctx, s.lead.ID, anthropic.BetaSessionThreadListParams{}))
			thread := must(s.client.Beta.Sessions.Threads.Get(ctx, s.thread, anthropic.BetaSessionThreadGetParams{SessionID: s.lead.ID}))
			events := must(s.client.Beta.Sessions.Threads.Events.List(ctx, s.thread, anthropic.BetaSessionThreadEventListParams{SessionID: s.lead.ID}))
			said := ""
			for _, e := range events.Data {
				if e.Type == "agent.message" {
					said = e.AsAgentMessage().Content[0].Text
				}
			}
			behind := s.client.Beta.Sessions.Threads.Events.StreamEvents(ctx, s.thread, anthropic.BetaSessionThreadEventStreamParams{SessionID: s.lead.ID},
				option.WithHeader("Last-Event-ID", events.Data[0].ID))
			defer behind.Close()
			return outcome("threads", len(threads.Data), "its parent is the first", thread.ParentThreadID == threads.Data[0].ID, "said", said,
				"resumed", behind.Next() && behind.Current().ID == events.Data[1].ID)
		},
		"archive a thread": func(ctx context.Context, s *script) string {
			got := must(s.client.Beta.Sessions.Threads.Archive(ctx, s.thread, anthropic.BetaSessionThreadArchiveParams{SessionID: s.lead.ID}))
			return outcome("archived", !got.ArchivedAt.IsZero())
		},
	}
}

// moreSteps are those of sessions that begin otherwise, and of lists.
func moreSteps() map[string]step {
	return map[string]step{
		"count the usage": func(ctx context.Context, s *script) string {
			got := must(s.client.Beta.Sessions.Get(ctx, s.first.ID, anthropic.BetaSessionGetParams{}))
			return outcome("input", got.Usage.InputTokens > 0, "output", got.Usage.OutputTokens > 0)
		},
		"list sessions": func(ctx context.Context, s *script) string {
			idle := must(s.client.Beta.Sessions.List(ctx, anthropic.BetaSessionListParams{AgentID: param.NewOpt(s.agent), Statuses: []string{"idle"}}))
			old := must(s.client.Beta.Sessions.List(ctx, anthropic.BetaSessionListParams{
				AgentID: param.NewOpt(s.agent), AgentVersion: param.NewOpt[int64](1),
			}))
			return outcome("idle", len(idle.Data), "of version 1", len(old.Data))
		},
		"begin with a message": func(ctx context.Context, s *script) string {
			p := must(s.client.Beta.Sessions.New(ctx, anthropic.BetaSessionNewParams{
				EnvironmentID: s.env,
				Agent: anthropic.BetaSessionNewParamsAgentUnion{OfBetaManagedAgentsAgents: &anthropic.BetaManagedAgentsAgentParams{
					Type: "agent", ID: s.agent, Version: param.NewOpt[int64](1),
				}},
				InitialEvents: []anthropic.BetaSessionNewParamsInitialEventUnion{{OfUserMessage: message("say: at once").OfUserMessage}},
			}))
			return outcome("version", p.Agent.Version, "events", must(s.settled(ctx, p.ID)))
		},
		"override an agent": func(ctx context.Context, s *script) string {
			o := must(s.client.Beta.Sessions.New(ctx, anthropic.BetaSessionNewParams{
				EnvironmentID: s.env,
				Agent: anthropic.BetaSessionNewParamsAgentUnion{
					OfBetaManagedAgentsAgentWithOverridess: &anthropic.BetaManagedAgentsAgentWithOverridesParams{
						Type: "agent_with_overrides", ID: s.agent, System: param.NewOpt("Be loud."),
					},
				},
			}))
			return outcome("system", o.Agent.System)
		},
		"send twice with a key": func(ctx context.Context, s *script) string {
			var sessions, events []string
			for range 2 {
				p := anthropic.BetaSessionNewParams{Agent: of(s.agent), EnvironmentID: s.env}
				sessions = append(sessions, must(s.client.Beta.Sessions.New(ctx, p, option.WithHeader("Idempotency-Key", "once"))).ID)
			}
			for range 2 {
				p := anthropic.BetaSessionEventSendParams{Events: []anthropic.BetaManagedAgentsEventParamsUnion{message("say: once")}}
				sent := must(s.client.Beta.Sessions.Events.Send(ctx, sessions[0], p, option.WithHeader("Idempotency-Key", "message")))
				events = append(events, sent.Data[0].ID)
			}
			return outcome("sessions", sessions, "messages", events, "events", must(s.settled(ctx, sessions[0])))
		},
		"refuse a stranger": func(ctx context.Context, s *script) string {
			return refusal(s.client.Beta.Agents.Get(ctx, s.agent, anthropic.BetaAgentGetParams{}, option.WithAPIKey("sk-none")))
		},
	}
}

// outcomeSteps are those of outcomes that are graded.
func outcomeSteps() map[string]step {
	grade := func(verdict string) step {
		return func(ctx context.Context, s *script) string {
			o := must(s.session(ctx))
			got := s.tells(ctx, o.ID, anthropic.BetaManagedAgentsEventParamsUnion{OfUserDefineOutcome: &anthropic.BetaManagedAgentsUserDefineOutcomeEventParams{
				Type: "user.define_outcome", Description: "Make a file.", MaxIterations: param.NewOpt[int64](2),
				Rubric: anthropic.BetaManagedAgentsUserDefineOutcomeEventParamsRubricUnion{OfText: &anthropic.BetaManagedAgentsTextRubricParams{
					Type: "text", Content: `say: {"result":"` + verdict + `","explanation":"so it is"}`,
				}},
			}})
			var results []string
			for _, e := range got {
				if e.Type == "span.outcome_evaluation_end" {
					results = append(results, e.AsSpanOutcomeEvaluationEnd().Result)
				}
			}
			o = must(s.client.Beta.Sessions.Get(ctx, o.ID, anthropic.BetaSessionGetParams{}))
			return outcome("verdicts", results, "defined", find(got, "user.define_outcome").AsUserDefineOutcome().OutcomeID,
				"graded", o.OutcomeEvaluations[0].OutcomeID, "result", o.OutcomeEvaluations[0].Result, "status", o.Status,
				"runs", strings.Count(strings.Join(kinds(got), " "), "session.status_running"))
		}
	}
	return map[string]step{
		"grade an outcome that is reached":     grade("satisfied"),
		"grade an outcome that needs revision": grade("needs_revision"),
		"grade without a verdict":              grade("no verdict"),
	}
}

// lastSteps are those of the end.
func lastSteps() map[string]step {
	return map[string]step{
		"hand a session to a worker": func(ctx context.Context, s *script) string {
			environments, work := s.client.Beta.Environments, s.client.Beta.Environments.Work
			workers := must(environments.New(ctx, anthropic.BetaEnvironmentNewParams{
				Name: "workers", Config: anthropic.BetaEnvironmentNewParamsConfigUnion{OfSelfHosted: new(anthropic.NewBetaSelfHostedConfigParams())},
			})).ID
			session := must(s.client.Beta.Sessions.New(ctx, anthropic.BetaSessionNewParams{Agent: of(s.agent), EnvironmentID: workers})).ID
			must(0, s.send(ctx, session, message("bash: echo there")))
			var item *anthropic.BetaSelfHostedWork
			for item == nil || item.ID == "" {
				var err error
				if item, err = work.Poll(ctx, workers, anthropic.BetaEnvironmentWorkPollParams{BlockMs: param.NewOpt[int64](999)}); err != nil {
					panic(failure{err})
				}
			}
			depth := must(work.Stats(ctx, workers, anthropic.BetaEnvironmentWorkStatsParams{})).Depth
			listed := slices.ContainsFunc(must(work.List(ctx, workers, anthropic.BetaEnvironmentWorkListParams{})).Data,
				func(w anthropic.BetaSelfHostedWork) bool { return w.ID == item.ID })
			acked := must(work.Ack(ctx, item.ID, anthropic.BetaEnvironmentWorkAckParams{EnvironmentID: workers}))
			beat := must(work.Heartbeat(ctx, item.ID, anthropic.BetaEnvironmentWorkHeartbeatParams{
				EnvironmentID: workers, ExpectedLastHeartbeat: param.NewOpt("NO_HEARTBEAT"),
			}))
			updated := must(work.Update(ctx, item.ID, anthropic.BetaEnvironmentWorkUpdateParams{
				EnvironmentID:                   workers,
				BetaSelfHostedWorkUpdateRequest: anthropic.BetaSelfHostedWorkUpdateRequestParam{Metadata: map[string]string{"host": "a"}},
			}))
			held := must(work.Get(ctx, item.ID, anthropic.BetaEnvironmentWorkGetParams{EnvironmentID: workers}))
			stopped := must(work.Stop(ctx, item.ID, anthropic.BetaEnvironmentWorkStopParams{
				EnvironmentID: workers, BetaSelfHostedWorkStopRequest: anthropic.BetaSelfHostedWorkStopRequestParam{Force: param.NewOpt(true)},
			}))
			must(0, s.send(ctx, session, anthropic.BetaManagedAgentsEventParamsUnion{
				OfUserInterrupt: &anthropic.BetaManagedAgentsUserInterruptEventParams{Type: "user.interrupt"},
			}))
			must(s.settled(ctx, session))
			must(s.client.Beta.Sessions.Archive(ctx, session, anthropic.BetaSessionArchiveParams{}))
			return outcome("work", item.ID, "of", item.Data.ID, "the session", session, "queued", depth, "listed", listed,
				"acknowledged", acked.AcknowledgedAt != "", "extended", beat.LeaseExtended, "metadata", updated.Metadata["host"],
				"held", held.State, "then", stopped.State,
				"deleted", must(environments.Delete(ctx, workers, anthropic.BetaEnvironmentDeleteParams{})).ID)
		},
		"archive a session": func(ctx context.Context, s *script) string {
			stream := s.follow(ctx, s.first.ID)
			defer stream.Close()
			archived := must(s.client.Beta.Sessions.Archive(ctx, s.first.ID, anthropic.BetaSessionArchiveParams{}))
			must(until(stream, "session.status_terminated"))
			return outcome("archived", !archived.ArchivedAt.IsZero(), "streams on", stream.Next(), "send", no(s.send(ctx, s.first.ID, message("x"))))
		},
		"delete a session": func(ctx context.Context, s *script) string {
			gone := must(s.client.Beta.Sessions.Delete(ctx, s.first.ID, anthropic.BetaSessionDeleteParams{}))
			return outcome("deleted", gone.ID, "read", refusal(s.client.Beta.Sessions.Get(ctx, s.first.ID, anthropic.BetaSessionGetParams{})))
		},
		"archive an agent": func(ctx context.Context, s *script) string {
			got := must(s.client.Beta.Agents.Archive(ctx, s.agent, anthropic.BetaAgentArchiveParams{}))
			return outcome("archived", !got.ArchivedAt.IsZero(), "begin", refusal(s.session(ctx)))
		},
		"archive and delete an environment": func(ctx context.Context, s *script) string {
			got := must(s.client.Beta.Environments.Archive(ctx, s.env, anthropic.BetaEnvironmentArchiveParams{}))
			gone := must(s.client.Beta.Environments.Delete(ctx, s.env, anthropic.BetaEnvironmentDeleteParams{}))
			return outcome("archived", got.ArchivedAt != "", "deleted", gone.ID)
		},
	}
}

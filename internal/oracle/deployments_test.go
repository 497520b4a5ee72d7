package oracle

import (
	"context"
	"errors"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"
)

// TestDeploymentsByGo has the official Go client deploy an agent.
func TestDeploymentsByGo(t *testing.T) {
	s := serve(t)
	c := &s.client
	var agent *anthropic.BetaManagedAgentsAgent
	var env *anthropic.BetaEnvironment
	var d *anthropic.BetaManagedAgentsDeployment
	var run *anthropic.BetaManagedAgentsDeploymentRun
	var err error
	say := &anthropic.BetaManagedAgentsUserMessageEventParams{
		Type: anthropic.BetaManagedAgentsUserMessageEventParamsTypeUserMessage,
		Content: []anthropic.BetaManagedAgentsUserMessageEventParamsContentUnion{{
			OfText: &anthropic.BetaManagedAgentsTextBlockParam{Type: anthropic.BetaManagedAgentsTextBlockTypeText, Text: "say: by itself"},
		}},
	}
	params := func() anthropic.BetaDeploymentNewParams {
		return anthropic.BetaDeploymentNewParams{
			Name: "nightly", Agent: anthropic.BetaDeploymentNewParamsAgentUnion{OfString: param.NewOpt(agent.ID)}, EnvironmentID: env.ID,
			InitialEvents: []anthropic.BetaManagedAgentsDeploymentInitialEventParamsUnion{
				{OfSystemMessage: &anthropic.BetaManagedAgentsSystemMessageEventParams{
					Type: "system.message", Content: []anthropic.BetaManagedAgentsSystemContentBlockParam{{Type: "text", Text: "Be brief."}},
				}},
				{OfUserMessage: say},
			},
			Schedule: anthropic.BetaManagedAgentsScheduleParams{Type: "cron", Expression: "30 2 * * 1-5", Timezone: "Europe/Berlin"},
			Metadata: map[string]string{"team": "a"},
		}
	}
	s.step("create an agent and an environment", func(ctx context.Context) error {
		if agent, err = c.Beta.Agents.New(
			ctx,
			anthropic.BetaAgentNewParams{Name: "helper", Model: anthropic.BetaManagedAgentsModelConfigParams{ID: "script"}},
		); err != nil {
			return err
		}
		env, err = c.Beta.Environments.New(ctx, anthropic.BetaEnvironmentNewParams{Name: "box"})
		return err
	})
	s.step("create a deployment", func(ctx context.Context) error {
		if d, err = c.Beta.Deployments.New(ctx, params()); err != nil {
			return err
		}
		return errors.Join(
			want("status", string(d.Status), "active"), want("version", d.Agent.Version, 1), want("team", d.Metadata["team"], "a"),
			want("expression", d.Schedule.Expression, "30 2 * * 1-5"), want("zone", d.Schedule.Timezone, "Europe/Berlin"),
			want("upcoming", len(d.Schedule.UpcomingRunsAt), 5), want("last", d.Schedule.LastRunAt.IsZero(), true),
			want("begins with", d.InitialEvents[1].AsUserMessage().Content[0].Text, "say: by itself"),
		)
	})
	s.step("a schedule that is none is refused", func(ctx context.Context) error {
		p := params()
		p.Schedule.Expression = "@daily"
		_, err := c.Beta.Deployments.New(ctx, p)
		return refused(err, 400, "schedule.expression")
	})
	s.step("read, update and list deployments", func(ctx context.Context) error {
		if d, err = c.Beta.Deployments.Update(ctx, d.ID, anthropic.BetaDeploymentUpdateParams{
			Description: param.NewOpt("each night"),
			Schedule:    anthropic.BetaManagedAgentsScheduleParams{Type: "cron", Expression: "0 3 * * *", Timezone: "UTC"},
		}); err != nil {
			return err
		}
		got, err := c.Beta.Deployments.Get(ctx, d.ID, anthropic.BetaDeploymentGetParams{})
		if err != nil {
			return err
		}
		list, err := c.Beta.Deployments.List(ctx, anthropic.BetaDeploymentListParams{
			AgentID: param.NewOpt(agent.ID), Status: anthropic.BetaManagedAgentsDeploymentStatusActive,
		})
		if err != nil {
			return err
		}
		return errors.Join(want("description", got.Description, "each night"), want("hour", got.Schedule.UpcomingRunsAt[0].Hour(), 3),
			want("deployments", len(list.Data), 1))
	})
	s.step("run a deployment now", func(ctx context.Context) error {
		if run, err = c.Beta.Deployments.Run(ctx, d.ID, anthropic.BetaDeploymentRunParams{}); err != nil {
			return err
		}
		return errors.Join(want("trigger", run.TriggerContext.Type, "manual"), want("session", run.SessionID != "", true), want("of", run.DeploymentID, d.ID))
	})
	s.step("its session has what it begins with", func(ctx context.Context) error {
		session, err := c.Beta.Sessions.Get(ctx, run.SessionID, anthropic.BetaSessionGetParams{})
		if err != nil {
			return err
		}
		kinds, err := s.settled(ctx, run.SessionID)
		if err != nil {
			return err
		}
		return errors.Join(want("deployment", session.DeploymentID, d.ID), want("system", kinds[0], "system.message"), want("said", kinds[1], "user.message"))
	})
	s.step("pause and unpause", func(ctx context.Context) error {
		p, err := c.Beta.Deployments.Pause(ctx, d.ID, anthropic.BetaDeploymentPauseParams{})
		if err != nil {
			return err
		}
		u, err := c.Beta.Deployments.Unpause(ctx, d.ID, anthropic.BetaDeploymentUnpauseParams{})
		if err != nil {
			return err
		}
		return errors.Join(want("paused", string(p.Status), "paused"), want("why", p.PausedReason.Type, "manual"), want("again", string(u.Status), "active"))
	})
	s.step("a run that can't begin has a typed error", func(ctx context.Context) error {
		if _, err := c.Beta.Agents.Archive(ctx, agent.ID, anthropic.BetaAgentArchiveParams{}); err != nil {
			return err
		}
		failed, err := c.Beta.Deployments.Run(ctx, d.ID, anthropic.BetaDeploymentRunParams{})
		if err != nil {
			return err
		}
		_, typed := failed.Error.AsAny().(anthropic.BetaManagedAgentsAgentArchivedRunError)
		return errors.Join(want("error", typed, true), want("session", failed.SessionID, ""))
	})
	s.step("read and list runs", func(ctx context.Context) error {
		got, err := c.Beta.DeploymentRuns.Get(ctx, run.ID, anthropic.BetaDeploymentRunGetParams{})
		if err != nil {
			return err
		}
		n := map[bool]int{}
		for _, failed := range []bool{true, false} {
			list, err := c.Beta.DeploymentRuns.List(ctx, anthropic.BetaDeploymentRunListParams{
				DeploymentID: param.NewOpt(d.ID), HasError: param.NewOpt(failed), TriggerType: "manual",
			})
			if err != nil {
				return err
			}
			n[failed] = len(list.Data)
		}
		return errors.Join(want("run", got.SessionID, run.SessionID), want("failed", n[true], 1), want("others", n[false], 1))
	})
	s.step("archive a deployment", func(ctx context.Context) error {
		if d, err = c.Beta.Deployments.Archive(ctx, d.ID, anthropic.BetaDeploymentArchiveParams{}); err != nil {
			return err
		}
		_, err := c.Beta.Deployments.Run(ctx, d.ID, anthropic.BetaDeploymentRunParams{})
		return errors.Join(want("archived", d.ArchivedAt.IsZero(), false), want("upcoming", len(d.Schedule.UpcomingRunsAt), 0), refused(err, 409, "archived"))
	})
	t.Logf("%d steps", s.steps)
}

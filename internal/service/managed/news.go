package managed

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/service/server"
)

// newsworthy returns all types of events that news can return.
func newsworthy() []string {
	return []string{
		"session.created", "session.updated", "session.archived", "session.deleted",
		"session.status_run_started", "session.status_idled", "session.status_terminated", "session.requires_action",
		"agent.created", "agent.updated", "agent.archived",
		"environment.created", "environment.updated", "environment.archived", "environment.deleted",
		"deployment.created", "deployment.updated", "deployment.archived", "deployment.paused", "deployment.unpaused",
		"deployment_run.succeeded", "deployment_run.failed",
		"memory_store.created", "memory_store.archived", "memory_store.deleted",
		"vault.created", "vault.archived", "vault.deleted",
		"vault_credential.created", "vault_credential.archived", "vault_credential.deleted", "vault_credential.refresh_failed",
	}
}

// news returns the types of the webhook events for a change.
func news(c server.Change) []string {
	switch c.Of {
	case "task":
		if strings.HasPrefix(c.ID, "sesn_") {
			return moved(c)
		}
	case ofRun:
		var k keptRun
		switch {
		case len(c.Before) > 0 || json.Unmarshal(c.After, &k) != nil:
		case k.Error != nil:
			return []string{"deployment_run.failed"}
		default:
			return []string{"deployment_run.succeeded"}
		}
	default:
		kind, _, _ := strings.Cut(strings.TrimPrefix(c.Of, "managed."), ":") // the kind without its parent object
		if kind == "credential" {
			kind = "vault_credential"
		}
		if told := kind + "." + changeOf(c.Before, c.After); slices.Contains(newsworthy(), told) {
			return []string{told}
		}
	}
	return nil
}

// moved returns the session events for a task's change of stage.
func moved(c server.Change) []string {
	switch c.To {
	case server.StageRunning:
		if c.From != server.StageWaiting || c.Was == "" { // it has waited for an answer, not for room
			return []string{"session.status_run_started"}
		}
	case server.StageWaiting:
		if c.Why == "" {
			return []string{"session.status_idled", "session.requires_action"}
		}
	case server.StageIdle:
		if c.From == server.StageRunning {
			return []string{"session.status_idled"}
		}
	case server.StageCompleted, server.StageFailed, server.StageCancelled, server.StageTimedOut:
		return []string{"session.status_terminated"}
	}
	return nil
}

// changeOf names the change of an object; empty means clients see none.
func changeOf(before, after json.RawMessage) string {
	type object struct {
		Updated  time.Time `json:"updated"`
		Archived time.Time `json:"archived"`
		Paused   *struct{} `json:"paused"`
		Failed   time.Time `json:"failed"`
	}
	var was, is object
	switch {
	case len(after) == 0:
		return "deleted"
	case len(before) == 0:
		return "created"
	case json.Unmarshal(before, &was) != nil || json.Unmarshal(after, &is) != nil:
		return ""
	case was.Archived.IsZero() && !is.Archived.IsZero():
		return "archived"
	case was.Failed.IsZero() && !is.Failed.IsZero():
		return "refresh_failed"
	case was.Paused == nil && is.Paused != nil:
		return "paused"
	case was.Paused != nil && is.Paused == nil:
		return "unpaused"
	case !was.Updated.Equal(is.Updated):
		return "updated"
	}
	return ""
}

package console

import (
	"errors"
	"strconv"
	"strings"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/internal/view/cost"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// Exit codes. Their meanings never change.
const (
	ExitDone      = 0
	ExitError     = 1            // the harness itself could not continue
	ExitUsage     = 2            // the command was not understood
	ExitConfig    = 3            // no model, no key, or unreadable settings
	ExitBusy      = running.Busy // another process drives the session
	ExitMaxTurns  = 10
	ExitBudget    = 11
	ExitRefused   = 12
	ExitStuck     = 13
	ExitFailed    = 14 // no usable reply came
	ExitWaiting   = 15 // calls wait for a decision
	ExitMaxTokens = 16
	ExitMaxTime   = 17
	ExitDenied    = 18 // nothing was changed, since nothing was allowed to be
	ExitRate      = 19 // too much in a minute
	ExitCancelled = 130
)

// codes lists the exit codes with the reason and the cause that they stand for.
func codes() []code {
	failed := string(event.ReasonFailed)
	return []code{
		{ExitDone, string(event.ReasonDone), "", "the model answered"},
		{ExitError, "error", "", "inspan could not continue, for example because of a full disk"},
		{ExitUsage, "usage", "", "the command was not understood"},
		{ExitConfig, "config", "", "no model, no key, or unreadable settings"},
		{ExitBusy, "busy", "", "another process drives the session"},
		{ExitMaxTurns, string(event.ReasonMaxTurns), "", "the run reached its limit of turns"},
		{ExitBudget, string(event.ReasonBudget), "", "the session or the day reached its cost limit"},
		{ExitRefused, string(event.ReasonRefused), "", "the model or a filter declined"},
		{ExitStuck, string(event.ReasonStuck), "", "the same call returned the same result repeatedly"},
		{ExitFailed, failed, "", "the model returned no usable reply or no answer that fits --json-schema, or a workflow or goal failed"},
		{ExitWaiting, "waiting", "", "calls wait for a decision"},
		{ExitMaxTokens, string(event.ReasonMaxTokens), "", "the session reached its limit of tokens"},
		{ExitMaxTime, string(event.ReasonMaxTime), "", "the run reached its time limit"},
		{ExitDenied, "denied", "", "every call that would have changed something was denied"},
		{ExitRate, string(event.ReasonRate), "", "the session and its agents spent too much in a minute"},
		{20, failed, llm.KindTransient, "repeated server errors or broken connections"},
		{21, failed, llm.KindRateLimited, "rate limited for longer than inspan retries"},
		{22, failed, llm.KindQuota, "the quota is used up"},
		{23, failed, llm.KindOverloaded, "the provider is overloaded"},
		{24, failed, llm.KindTimeout, "the model did not answer in time"},
		{25, failed, llm.KindStreamCut, "replies broke off repeatedly"},
		{26, failed, llm.KindWindow, "the conversation does not fit the model's context window"},
		{27, failed, llm.KindTooLarge, "the request has too many bytes"},
		{28, failed, llm.KindAuthExpired, "credentials expired and could not be renewed"},
		{29, failed, llm.KindAuth, "credentials are missing or wrong"},
		{30, failed, llm.KindBilling, "the provider requires payment"},
		{31, failed, llm.KindHistory, "the provider rejects the conversation in every form"},
		{32, failed, llm.KindInvalid, "the provider rejects the request"},
		{33, failed, llm.KindNoModel, "the model does not exist"},
		{34, failed, llm.KindNoTools, "the model does not support tools"},
		{35, failed, llm.KindNoReply, "the address did not answer with a model's reply, but for example with a login page"},
		{ExitCancelled, string(event.ReasonCancelled), "", "you or a signal interrupted the run"},
	}
}

type code struct {
	code    int
	reason  string
	cause   llm.Kind
	meaning string
}

// Codes lists the exit codes with their names and meanings, for the help text.
func Codes() [][2]string {
	var rows [][2]string
	for _, c := range codes() {
		name := c.reason
		if c.cause != "" {
			name = string(c.cause)
		}
		rows = append(rows, [2]string{strconv.Itoa(c.code), name + ": " + c.meaning})
	}
	return rows
}

// ModesHelp lists the permission modes, for the help text.
func ModesHelp() string {
	var b strings.Builder
	b.WriteString("Modes:\n")
	w := text.NewTable(&b)
	for _, m := range tool.Modes() {
		w.Row("  "+string(m), m.Doc())
	}
	_ = w.Flush() // into memory
	return strings.TrimSuffix(b.String(), "\n")
}

// ExitCode returns the exit code for the end of a run: its reason, how the request to the model failed, if that
// was it, and an error of the harness.
func ExitCode(reason string, cause llm.Kind, err error) int {
	var misuse words.Misuse
	var driven *inspan.DrivenError
	switch {
	case errors.As(err, &misuse):
		return ExitUsage
	case errors.As(err, &driven):
		return ExitBusy
	case errors.Is(err, config.ErrSettings), errors.Is(err, cost.ErrStrategy):
		return ExitConfig
	}
	exit := ExitError
	for _, c := range codes() {
		if c.reason == reason && (c.cause == "" || c.cause == cause) {
			exit = c.code
		}
	}
	return exit
}

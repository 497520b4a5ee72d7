package console

import (
	"errors"
	"strconv"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/session"
	"github.com/inspan/inspan/llm"
)

// Exit codes. They never change their meaning.
const (
	ExitDone      = 0
	ExitError     = 1 // the harness itself could not go on
	ExitUsage     = 2 // the command was not understood
	ExitConfig    = 3 // no model, no key, or settings that can't be read
	ExitBusy      = 4 // another process drives the session
	ExitMaxTurns  = 10
	ExitBudget    = 11
	ExitRefused   = 12
	ExitStuck     = 13
	ExitFailed    = 14 // no usable reply came
	ExitWaiting   = 15 // calls wait for a decision
	ExitMaxTokens = 16
	ExitMaxTime   = 17
	ExitDenied    = 18 // nothing was changed, as nothing was allowed to be
	ExitCancelled = 130
)

// codes lists the exit codes with the reason and the cause of a run's end that
// they stand for.
func codes() []code {
	failed := string(event.ReasonFailed)
	return []code{
		{ExitDone, string(event.ReasonDone), "", "the model answered"},
		{ExitError, "error", "", "the harness could not go on, such as a full disk"},
		{ExitUsage, "usage", "", "the command was not understood"},
		{ExitConfig, "config", "", "no model, no key, or unreadable settings"},
		{ExitBusy, "busy", "", "another process drives the session"},
		{ExitMaxTurns, string(event.ReasonMaxTurns), "", "the limit of turns was reached"},
		{ExitBudget, string(event.ReasonBudget), "", "a limit of money was reached"},
		{ExitRefused, string(event.ReasonRefused), "", "the model or a filter declined"},
		{ExitStuck, string(event.ReasonStuck), "", "the same call brought the same result again and again"},
		{ExitFailed, failed, "", "the model gave nothing usable"},
		{ExitWaiting, "waiting", "", "calls wait for a decision"},
		{ExitMaxTokens, string(event.ReasonMaxTokens), "", "the limit of tokens was reached"},
		{ExitMaxTime, string(event.ReasonMaxTime), "", "the limit of time was reached"},
		{ExitDenied, "denied", "", "every call that would have changed something was denied"},
		{20, failed, llm.KindTransient, "a server fault or a broken connection, again and again"},
		{21, failed, llm.KindRateLimited, "too many requests, for longer than was waited"},
		{22, failed, llm.KindQuota, "an allowance is used up"},
		{23, failed, llm.KindOverloaded, "the vendor has no capacity now"},
		{24, failed, llm.KindTimeout, "the model did not answer in time"},
		{25, failed, llm.KindStreamCut, "replies broke off, again and again"},
		{26, failed, llm.KindWindow, "the conversation does not fit the model's context window"},
		{27, failed, llm.KindTooLarge, "the request has too many bytes"},
		{28, failed, llm.KindAuthExpired, "credentials have expired and could not be renewed"},
		{29, failed, llm.KindAuth, "credentials are missing or wrong"},
		{30, failed, llm.KindBilling, "the vendor wants payment"},
		{31, failed, llm.KindHistory, "the vendor refuses the conversation, in whatever form"},
		{32, failed, llm.KindInvalid, "the vendor refuses the request"},
		{33, failed, llm.KindNoModel, "there is no such model"},
		{34, failed, llm.KindNoTools, "the model takes no tools"},
		{ExitCancelled, string(event.ReasonCancelled), "", "interrupted by a person or a signal"},
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

// ExitCode returns the exit code for the end of a run: its reason and what the
// model call came to, if it was that. err is the harness's own trouble.
func ExitCode(reason string, cause llm.Kind, err error) int {
	var busy *session.BusyError
	if errors.As(err, &busy) {
		return ExitBusy
	}
	exit := ExitError
	for _, c := range codes() {
		if c.reason == reason && (c.cause == "" || c.cause == cause) {
			exit = c.code
		}
	}
	return exit
}

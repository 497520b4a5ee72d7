package tools

import (
	"regexp"
	"strings"

	"github.com/inspan/inspan/tool"
)

// Messages of git when its repository is closed to it, and when the cause is its settings. They are compiled
// when a text may contain one.
const (
	gitClosed = `(?m)(\.git(/[^\n]*)?|\.lock)['"]?: (Read-only file system|Permission denied|Operation not permitted)$|failed to insert ` +
		`into database$`
	gitSettings = `could not (lock|write) config file|\.git/config'?: (Read-only|Permission|Operation)`
)

// advice returns advice for the case that the sandbox may be why a command failed. Without it a model tries
// tricks.
func (j *job) advice(text string) string {
	if j.box.Throwaway || j.box.Level == tool.BoxNone || j.box.Level == tool.BoxDefault {
		return ""
	}
	// Programs that run git often end with 0 anyway.
	if a := j.gitAdvice(text); a != "" || j.end.code == 0 {
		return a
	}
	for _, sign := range []string{
		"Permission denied", "Read-only file system", "Operation not permitted", "EROFS", "EACCES", "EPERM", "Device or resource busy",
		"Address family not supported",
		"Could not resolve host", "Temporary failure in name resolution", "EAI_AGAIN", "ENOTFOUND", "no such host", "Network is unreachable",
		"network is unreachable", "Connection refused", "dial tcp", "403 Forbidden",
	} {
		if strings.Contains(text, sign) {
			return "\n" + adviceText
		}
	}
	if strings.Contains(text, "No such process") {
		return "\n" + adviceProcesses
	}
	return ""
}

// gitAdvice returns advice for git that could not write its repository.
func (j *job) gitAdvice(text string) string {
	if !strings.Contains(text, ".git") && !strings.Contains(text, "lock") && !strings.Contains(text, "into database") {
		return ""
	}
	switch {
	case regexp.MustCompile(gitSettings).MatchString(text):
		return "\n" + adviceSettings
	case !regexp.MustCompile(gitClosed).MatchString(text):
		return ""
	case j.box.Git:
		return "\n" + adviceNested
	}
	return "\n" + adviceGit
}

const adviceGit = "[.git is read-only here, because this line does not name git: call git in the line itself, as in make && git commit -m x; " +
	"where repositories can't be copied, call it without other programs and with values written out]"

const adviceSettings = "[the settings of the repository are closed in the sandbox, as they can name programs: the person changes them, " +
	"or a call with outside, which needs approval; " +
	"for one command git -c user.name=... -c user.email=... does as well]"

const adviceNested = "[the insides of this repository are closed in the sandbox: it is not the one of the workspace, or git was to write " +
	"what names programs; " +
	"outside reaches it, which needs approval]"

const adviceProcesses = "[in the sandbox each command has process ids of its own; start with background what is to be ended later, and " +
	"end it with the jobs tool]"

const adviceText = "[it ran in a sandbox: it writes below the workspace and in the session's own /tmp, and reaches servers of this " +
	"session on localhost; " +
	"if that is why it failed, make the call again with network (the hosts it needs) or outside (the machine's own /tmp, services and " +
	"devices), which needs approval]"

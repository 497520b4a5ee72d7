package loop

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/tool"
)

// Job is a command that runs in the background.
type Job struct {
	tool.Job
	Reported bool `json:"shown,omitempty"` // the model was asked about it after a final answer
}

// maxUnreportedEnds bounds UnreportedEnds. The oldest are dropped first.
const maxUnreportedEnds = 50

// maxLine bounds the bytes of a command or item in a list.
const maxLine = 120

// defaultJobWait is how many seconds an unattended run waits after its final answer for jobs, unless the lever sets
// another time. A job that is still running then is probably a server: the model was asked, and neither waited for
// it nor kept it.
const defaultJobWait = 5 * 60

// recordJobs records the job or process that a call leaves running, and the ends of jobs that its result reports.
func (s *State) recordJobs(b event.Ended) {
	for _, id := range b.EndedJobs {
		s.Jobs = s.jobsExcept(id)
		before := len(s.UnreportedEnds)
		s.UnreportedEnds = slices.DeleteFunc(slices.Clone(s.UnreportedEnds), func(f event.Finished) bool { return f.Job == id })
		if len(s.UnreportedEnds) == before {
			s.ReportedEnds = append(slices.Clone(s.ReportedEnds), id) // its Finished event is yet to come
		}
	}
	if b.Exit != nil || b.Job != nil {
		s.LeftProcesses, s.LeftReported = b.Left, s.LeftReported && b.Left
	}
	if b.Job == nil {
		return
	}
	ended := slices.ContainsFunc(s.UnreportedEnds, func(f event.Finished) bool { return f.Job == b.Job.ID })
	if !ended && !slices.Contains(b.EndedJobs, b.Job.ID) {
		s.Jobs = append(s.jobsExcept(b.Job.ID), Job{Job: *b.Job})
	}
}

// finished records the end of a job.
func (s *State) finished(b event.Finished) {
	s.Work.finished(b)
	s.Jobs = s.jobsExcept(b.Job)
	if i := slices.Index(s.ReportedEnds, b.Job); i >= 0 {
		s.ReportedEnds = slices.Delete(slices.Clone(s.ReportedEnds), i, i+1)
		return
	}
	if b.Kept {
		return
	}
	s.UnreportedEnds = append(slices.Clone(s.UnreportedEnds), b)
	s.UnreportedEnds = s.UnreportedEnds[max(0, len(s.UnreportedEnds)-maxUnreportedEnds):]
}

func (s *State) jobsExcept(id string) []Job {
	return slices.DeleteFunc(slices.Clone(s.Jobs), func(j Job) bool { return j.ID == id })
}

// jobNews tells the model about ended jobs; empty if it knows of all.
func (s *State) jobNews() string {
	if !s.Levers.Jobs.Active(s.Unattended) {
		return ""
	}
	var lines []string
	for _, f := range s.UnreportedEnds {
		exit := "exit code unknown"
		switch {
		case f.Exit != nil:
			exit = fmt.Sprintf("exit code %d", *f.Exit)
		case f.Error != "":
			exit = "no exit code, " + f.Error
		}
		line := fmt.Sprintf("[job %s has ended: %s, after %.0f seconds", f.Job, exit, f.Seconds)
		if f.Line != "" {
			line += "; last line: " + f.Line
		}
		lines = append(lines, line+"]")
	}
	return strings.Join(lines, "\n")
}

// unkeptJobs returns the running jobs that were not started with keep.
func (s *State) unkeptJobs() []Job {
	return slices.DeleteFunc(slices.Clone(s.Jobs), func(j Job) bool { return j.Keep })
}

// askAboutBackground asks the model, after a final answer, about jobs and processes that are still running. It asks
// about each of them once.
func (s *State) askAboutBackground() (event.Steered, bool) {
	if !s.Levers.Jobs.Active(s.Unattended) {
		return event.Steered{}, false
	}
	var why []event.Why
	var texts []string
	if text := s.askAboutJobs(); text != "" {
		why, texts = append(why, WhyJobs), append(texts, text)
	}
	if s.LeftProcesses && !s.LeftReported && s.Unattended && !s.Keeps {
		text := "A finished command left processes behind, as & or nohup does. They stop when this run ends. "
		if s.NoKeep {
			text += "This run can't keep any of them. If the task needs them afterwards, say so in your answer."
		} else {
			text += "If one must keep running, start it again with background and keep of bash instead of &. Otherwise answer again."
		}
		why, texts = append(why, WhyLeft), append(texts, text)
	}
	return steer(strings.Join(texts, "\n\n"), why...), len(why) > 0
}

// askAboutJobs asks the model what should happen to jobs that still run after its final answer; empty if it was
// asked about each of them.
func (s *State) askAboutJobs() string {
	jobs := s.unkeptJobs()
	if !slices.ContainsFunc(jobs, func(j Job) bool { return !j.Reported }) {
		return ""
	}
	var b strings.Builder
	b.WriteString("You have answered, but these background jobs are still running:\n")
	for _, j := range jobs {
		fmt.Fprintf(&b, "- job %s: %s\n", j.ID, shortLine(j.Command))
	}
	b.WriteString("Use the jobs tool to wait for jobs that the task needs, and to kill jobs that it no longer needs. ")
	switch {
	case s.Keeps:
		b.WriteString("Jobs that still run at the end continue afterwards, unless they have a terminal.")
	case s.Unattended:
		b.WriteString("If you answer again, the run ends and stops them. ")
		if s.NoKeep {
			b.WriteString("This run can't keep jobs, so say in your answer what the task needs afterwards.")
		} else {
			b.WriteString("A job that must keep running has to be started with keep.")
		}
		if len(s.awaitedJobs()) > 0 {
			fmt.Fprintf(&b, " For jobs that exceeded their timeout, the run first waits up to %v.", s.jobWait())
		}
	default:
		b.WriteString("If you answer again, they continue in the background until the session ends.")
	}
	return b.String()
}

// shortLine returns the first line of a text, shortened for a list.
func shortLine(text string) string {
	line, more, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if more != "" {
		line += " …"
	}
	return truncate(line, maxLine)
}

// awaitedJobs returns the jobs that a run waits for: those that went to the background by timeout and are not kept.
// A command that was started in the background is usually a server, which does not end by itself.
func (s *State) awaitedJobs() []Job {
	return slices.DeleteFunc(s.unkeptJobs(), func(j Job) bool { return !j.TimedOut })
}

// awaitsJobs reports whether the run must wait for jobs before it ends.
func (s *State) awaitsJobs() bool {
	return s.Levers.Jobs.Active(s.Unattended) && s.Unattended && !s.Keeps && !s.Run.JobsTimedOut && len(s.awaitedJobs()) > 0
}

// JobDeadline returns until when an answered run waits for its jobs; zero means it doesn't wait. At that time append
// [event.Cancelled] with the limit [event.ReasonDone].
func (s *State) JobDeadline() time.Time {
	if !s.Run.Active || s.Run.Reply != replyAnswer || len(s.Run.Calls) > 0 || !s.awaitsJobs() {
		return time.Time{}
	}
	return s.Run.Answered.Add(s.jobWait())
}

func (s *State) jobWait() time.Duration {
	return time.Duration(s.Levers.Jobs.Strength(defaultJobWait)) * time.Second
}

// DescribeJobWait says which jobs an answered run waits for, and for how long.
func (s *State) DescribeJobWait() string {
	var list []string
	for _, j := range s.awaitedJobs() {
		list = append(list, fmt.Sprintf("job %s (%s)", j.ID, shortLine(j.Command)))
	}
	most, setting := s.jobWait(), "levers.jobs"
	left := time.Duration((s.Limits.Seconds - s.Run.Used()) * float64(time.Second)).Round(time.Second)
	if s.Limits.Seconds > 0 && left < most {
		most, setting = left, "max_time"
	}
	return fmt.Sprintf("waiting for %s, at most %v; %s sets the time", strings.Join(list, ", "), most, setting)
}

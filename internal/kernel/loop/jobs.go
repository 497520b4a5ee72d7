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
	Shown bool `json:"shown,omitempty"` // the model was told about it beside a final answer
}

// maxUntold is how many ended jobs are remembered that the model has not heard of; the oldest are dropped
// first.
const maxUntold = 50

// maxLine is how many bytes of a command or item a list shows.
const maxLine = 120

// patience is how many seconds an unattended run waits beside a final answer for jobs that the model leaves
// running, unless the lever sets another time. A job that does not end by then is a server: the model was
// asked, and chose neither to wait nor to keep it.
const patience = 5 * 60

// left records what a call leaves running, and the job ends that its result reports.
func (s *State) left(b event.Ended) {
	for _, id := range b.EndedJobs {
		s.Jobs = s.jobsBut(id)
		if !s.hear(id) {
			s.Told = append(slices.Clone(s.Told), id) // the result came before the event of the end
		}
	}
	if b.Exit != nil || b.Job != nil {
		s.Busy, s.BusyTold = b.Left, s.BusyTold && b.Left
	}
	if b.Job == nil {
		return
	}
	ended := slices.ContainsFunc(s.Untold, func(f event.Finished) bool { return f.Job == b.Job.ID })
	if !ended && !slices.Contains(b.EndedJobs, b.Job.ID) {
		s.Jobs = append(s.jobsBut(b.Job.ID), Job{Job: *b.Job})
	}
}

// hear drops the news of a job's end because the model knows it. It reports whether there was any.
func (s *State) hear(id string) bool {
	before := len(s.Untold)
	s.Untold = slices.DeleteFunc(slices.Clone(s.Untold), func(f event.Finished) bool { return f.Job == id })
	return len(s.Untold) < before
}

// finished records the end of a job.
func (s *State) finished(b event.Finished) {
	s.Work.finished(b)
	s.Jobs = s.jobsBut(b.Job)
	if i := slices.Index(s.Told, b.Job); i >= 0 {
		s.Told = slices.Delete(slices.Clone(s.Told), i, i+1)
		return
	}
	if b.Kept {
		return
	}
	s.Untold = append(slices.Clone(s.Untold), b)
	s.Untold = s.Untold[max(0, len(s.Untold)-maxUntold):]
}

func (s *State) jobsBut(id string) []Job {
	return slices.DeleteFunc(slices.Clone(s.Jobs), func(j Job) bool { return j.ID == id })
}

// news reports ended jobs; empty if the model knows of all.
func (s *State) news() string {
	if !s.Levers.Jobs.Active(s.Unattended) {
		return ""
	}
	var lines []string
	for _, f := range s.Untold {
		how := "exit code unknown"
		switch {
		case f.Exit != nil:
			how = fmt.Sprintf("exit code %d", *f.Exit)
		case f.Error != "":
			how = "no exit code, " + f.Error
		}
		line := fmt.Sprintf("[job %s has ended: %s, after %.0f seconds", f.Job, how, f.Seconds)
		if f.Line != "" {
			line += "; last line: " + f.Line
		}
		lines = append(lines, line+"]")
	}
	return strings.Join(lines, "\n")
}

// lingering returns the jobs that should not outlive the run.
func (s *State) lingering() []Job {
	return slices.DeleteFunc(slices.Clone(s.Jobs), func(j Job) bool { return j.Keep })
}

// stays tells the model once about each thing that runs beside its final answer.
func (s *State) stays() (event.Steered, bool) {
	if !s.Levers.Jobs.Active(s.Unattended) {
		return event.Steered{}, false
	}
	var why []event.Why
	var texts []string
	if text := s.running(); text != "" {
		why, texts = append(why, event.WhyJobs), append(texts, text)
	}
	if s.Busy && !s.BusyTold && s.Unattended && !s.Keeps {
		text := "A command that has ended left processes behind, as with & or nohup. They end with this run; "
		if s.NoKeep {
			text += "nothing can be kept in this run. If the task needs them afterwards, say so in your answer."
		} else {
			text += "what has to go on afterwards is started by bash with background and keep, not with &. If none has to, answer again."
		}
		why, texts = append(why, event.WhyLeft), append(texts, text)
	}
	return steer(strings.Join(texts, "\n\n"), why...), len(why) > 0
}

// running asks the model what should happen to jobs that run beside its final answer, once for each job.
func (s *State) running() string {
	jobs := s.lingering()
	if !slices.ContainsFunc(jobs, func(j Job) bool { return !j.Shown }) {
		return ""
	}
	var b strings.Builder
	b.WriteString("You have answered, and these background jobs still run:\n")
	for _, j := range jobs {
		fmt.Fprintf(&b, "- job %s: %s\n", j.ID, opening(j.Command))
	}
	b.WriteString("With the jobs tool wait for what the task needs, or kill what it does not need any more. ")
	switch {
	case s.Keeps:
		b.WriteString("What still runs at the end goes on afterwards, unless it has a terminal.")
	case s.Unattended:
		wait := ""
		if len(s.awaited()) > 0 {
			wait = fmt.Sprintf(" Those that took longer than their timeout it waits for first, %v at most.", s.patience())
		}
		fmt.Fprintf(&b, "If you answer again, the run ends and they end with it; %s.%s", keeping(s.NoKeep), wait)
	default:
		b.WriteString("If you answer again, they go on beside the conversation and end with it.")
	}
	return b.String()
}

// keeping says how a job can continue after a run.
func keeping(cannot bool) string {
	if cannot {
		return "none can be kept in this run, so say in your answer what the task needs afterwards"
	}
	return "one that should go on afterwards has to be started with keep"
}

// opening is the beginning of a text, as one line of a list.
func opening(text string) string {
	line, more, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if more != "" {
		line += " …"
	}
	return cut(line, maxLine)
}

// awaited returns the lingering jobs that went to the background by timeout and may end by themselves. A
// command started in the background is usually a server, which does not end; the model was asked what should
// happen to it.
func (s *State) awaited() []Job {
	return slices.DeleteFunc(s.lingering(), func(j Job) bool { return !j.Late })
}

// awaitsJobs reports whether there is a final answer and the run waits for jobs.
func (s *State) awaitsJobs() bool {
	return s.Levers.Jobs.Active(s.Unattended) && s.Unattended && !s.Keeps && !s.Run.Impatient && len(s.awaited()) > 0
}

// Patience returns when the run has waited long enough for its jobs; zero means it doesn't wait. At that time
// append [event.Cancelled] with the limit [event.ReasonDone].
func (s *State) Patience() time.Time {
	if !s.Run.Active || s.Run.Reply != replyAnswer || len(s.Run.Calls) > 0 || !s.awaitsJobs() {
		return time.Time{}
	}
	return s.Run.Answered.Add(s.patience())
}

func (s *State) patience() time.Duration {
	return time.Duration(s.Levers.Jobs.Strength(patience)) * time.Second
}

// Awaited says what an answered run waits for, and for how long.
func (s *State) Awaited() string {
	var list []string
	for _, j := range s.awaited() {
		list = append(list, fmt.Sprintf("job %s (%s)", j.ID, opening(j.Command)))
	}
	most, setting := s.patience(), "levers.jobs"
	if left := time.Duration((s.Limits.Seconds - s.Run.Used()) * float64(time.Second)).Round(time.Second); s.Limits.Seconds > 0 &&
		left < most {
		most, setting = left, "max_time"
	}
	return fmt.Sprintf("waiting for %s, at most %v; %s sets the time", strings.Join(list, ", "), most, setting)
}

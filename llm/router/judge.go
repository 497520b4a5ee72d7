package router

import (
	"context"
	_ "embed"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/inspan/inspan/internal/text"
	"github.com/inspan/inspan/llm"
)

// judgeText tells a judge what to do.
//
//go:embed judge.md
var judgeText string

const (
	purposeJudge = "judge" // of the request to a judge
	judgeTime    = 15 * time.Second
	judgeOutput  = 1024 // tokens, as some think before they answer
	judgeBytes   = 4000 // of the task that a judge reads
)

// judgements are those of the sessions that were judged last, so that a request which is sent
// again is not judged again. Safe for concurrent use.
type judgements struct {
	mu   sync.Mutex
	made map[string]judgement // by session
}

type judgement struct {
	task  string
	score float64
}

// judged asks the judge how hard the task of a request is, and puts that into its features. It
// returns what that took; nil if nobody was asked, or did not say. What goes on with something,
// or is private where the judge may not see it, is not judged.
func (m *Model) judged(ctx context.Context, req llm.Request, f *Features) *llm.Spent {
	if m.Judge == nil || m.Force != "" || f.Step != StepPrompt || f.GoesOn || f.Private != "" && !m.Judge.Local {
		return nil
	}
	at := spoken(req)
	if len(at) == 0 {
		return nil
	}
	task := strings.ToValidUTF8(text.Head(req.Messages[at[len(at)-1]].Parts.Text(), judgeBytes), "")
	info := m.Judge.Model.Info()
	if score, known := m.judgements.get(req.Session, task); known {
		f.judge(score, info)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, judgeTime)
	defer cancel()
	ask := llm.Request{
		System: []string{strings.TrimSpace(judgeText)}, Purpose: purposeJudge, MaxOutput: judgeOutput,
		Messages: []llm.Message{{Role: llm.User, Parts: llm.Say("<task>\n" + task + "\n</task>")}},
	}
	began := time.Now()
	for chunk, err := range m.Judge.Model.Stream(ctx, ask) {
		if err != nil {
			return nil
		}
		if chunk.Reply == nil {
			continue
		}
		if score, ok := verdict(chunk.Reply.Parts.Text()); ok {
			m.judgements.put(req.Session, task, score)
			f.judge(score, info)
		}
		return &llm.Spent{Info: info, Usage: chunk.Reply.Used(ask), Millis: time.Since(began).Milliseconds()}
	}
	return nil
}

// judge puts the word of a judge in the place of our own, but for the failures of the run.
func (f *Features) judge(score float64, by llm.Info) {
	if f.Failing < mostFailing {
		f.Complexity = score
		f.Signs = fmt.Sprintf("judged by %s, %s", by.Route(), f.Signs)
	}
}

// verdict reads the number in an answer: the last one, as some explain themselves first.
func verdict(answer string) (float64, bool) {
	found := regexp.MustCompile(`\b(?:10|[0-9])\b`).FindAllString(answer, -1)
	if len(found) == 0 {
		return 0, false
	}
	n, err := strconv.Atoi(found[len(found)-1])
	return float64(n) / 10, err == nil
}

func (j *judgements) get(session, text string) (float64, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	known, ok := j.made[session]
	return known.score, ok && known.task == text
}

func (j *judgements) put(session, text string, score float64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.made == nil || len(j.made) >= sessions {
		j.made = map[string]judgement{}
	}
	j.made[session] = judgement{text, score}
}

package router

import (
	"context"
	_ "embed"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/llm"
)

// judgeText is the judge's prompt.
//
//go:embed judge.md
var judgeText string

const (
	purposeJudge = "judge" // of the request to a judge
	judgeTime    = 15 * time.Second
	judgeOutput  = 1024 // tokens, because some think before they answer
	judgeBytes   = 4000 // of the task that a judge reads
	judgeHard    = 7    // of 10; the least of a hard task

	judgedHard, judgedEasy = "hard", "easy"
)

// verdict is a judge's answer, and its cost.
type verdict struct {
	says string // judgedHard or judgedEasy; empty means nothing
	took *llm.Spent
}

// judgements caches the verdicts on recent tasks, so that a request that is sent again is not judged again
// before its session has logged the verdict.
type judgements struct {
	mu   sync.Mutex
	made map[string]string // verdicts by session and task
}

// judge asks the judge how hard the task of a request is, at the beginning of an unknown task. It does not ask
// about private text that the judge may not see.
func (m *Model) judge(ctx context.Context, req llm.Request, f Features) verdict {
	if m.Judge == nil || m.Force != "" || m.Begin != "" || f.Step != stepPrompt || f.Pin != "" || f.Stuck || req.Work.Judged != "" ||
		f.Private != "" && !m.Judge.Local {
		return verdict{}
	}
	asked := strings.ToValidUTF8(text.Head(strings.Join(task(req), "\n\n"), judgeBytes), "")
	if asked == "" {
		return verdict{}
	}
	key := req.Session + "\x00" + asked
	m.judgements.mu.Lock()
	says := m.judgements.made[key]
	m.judgements.mu.Unlock()
	if says != "" {
		return verdict{says: says}
	}
	v := m.consult(ctx, asked)
	m.judgements.mu.Lock()
	defer m.judgements.mu.Unlock()
	if m.judgements.made == nil || len(m.judgements.made) >= sessions {
		m.judgements.made = map[string]string{}
	}
	m.judgements.made[key] = v.says
	return v
}

// consult asks the judge.
func (m *Model) consult(ctx context.Context, asked string) verdict {
	ctx, cancel := context.WithTimeout(ctx, judgeTime)
	defer cancel()
	ask := llm.Request{
		System: []string{strings.TrimSpace(judgeText)}, Purpose: purposeJudge, MaxOutput: judgeOutput,
		Messages: []llm.Message{{Role: llm.User, Parts: llm.Say("<task>\n" + asked + "\n</task>")}},
	}
	began := time.Now()
	for chunk, err := range m.Judge.Model.Stream(ctx, ask) {
		if err != nil {
			return verdict{}
		}
		if chunk.Reply != nil {
			took := &llm.Spent{Info: m.Judge.Model.Info(), Usage: chunk.Reply.Used(ask), Millis: time.Since(began).Milliseconds()}
			return verdict{rating(chunk.Reply.Parts.Text()), took}
		}
	}
	return verdict{}
}

// rating reads the number in an answer: the last one, because some models explain themselves first.
func rating(answer string) string {
	found := regexp.MustCompile(`\b(?:10|[0-9])\b`).FindAllString(answer, -1)
	if len(found) == 0 {
		return ""
	}
	if n, _ := strconv.Atoi(found[len(found)-1]); n >= judgeHard {
		return judgedHard
	}
	return judgedEasy
}

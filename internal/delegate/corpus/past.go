package corpus

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/tool"
)

// brought folds an event. It returns the JSON object in the result of the call that the event ends successfully,
// and the tool of the call.
func brought(fold *transcript.Fold, e event.Event) (name, object string) {
	for _, item := range fold.Apply(e) {
		if c, is := item.(*transcript.Call); is && c.State == transcript.Over && c.Ended.Outcome == event.OutcomeOK {
			return c.Call.Name, within(c.Ended.Parts.Text())
		}
	}
	return "", ""
}

// within returns the JSON object between the marks in the result of a call; empty means there is none.
func within(text string) string {
	from, to := strings.IndexByte(text, '{'), strings.LastIndexByte(text, '}')
	if from < 0 || to < from {
		return ""
	}
	return text[from : to+1]
}

// Given decodes the answer in the result of a call of [AnswerTool].
func Given(text string) (a Answer, err error) {
	err = json.Unmarshal([]byte(within(text)), &a)
	return a, err
}

// Answered returns the last answer of a session to its last question, if its quotes were verified or it claims
// nothing, or if a program has set it; nil means there is none. Blobs are those of the session. A question that
// came while another was in progress is handled after that one.
func Answered(ctx context.Context, blobs tool.Blobs, events iter.Seq2[event.Event, error]) (last *Answer, err error) {
	fold, state, runs := transcript.Fold{}, loop.State{}, 0
	for e, err := range events {
		if err == nil {
			err = state.Apply(e)
		}
		if err != nil {
			return last, err
		}
		if n := state.RunCount(); n != runs {
			if runs = n; state.Run.Turn == 0 { // else a stopped run continues
				last = nil
			}
		}
		name, object := brought(&fold, e)
		var a Answer
		if end, is := e.Body.(event.Ended); is && name == ProgramTool {
			set, err := stored(ctx, blobs, end.Store)
			if err != nil {
				return last, err
			}
			last = cmp.Or(set, last)
		}
		if name == AnswerTool && json.Unmarshal([]byte(object), &a) == nil && (a.Verified || a.QuotesVerified || a.Nothing) {
			last = &a
		}
	}
	return last, nil
}

// Changed names the sources of a session that have changed since the session last opened them. Env is the world
// of the session, which is not running.
func (s *Set) Changed(ctx context.Context, env tool.Env, session string, events iter.Seq2[event.Event, error]) (names []string, err error) {
	fold, latest := transcript.Fold{}, map[string]*reading{}
	call := &tool.Call{Session: session, Env: env, Cwd: env.Root}
	for e, err := range events {
		if err != nil {
			return nil, err
		}
		var out struct{ Corpus string }
		if name, object := brought(&fold, e); name != "corpus_list" || json.Unmarshal([]byte(object), &out) != nil || out.Corpus == "" {
			continue
		}
		m, err := s.manifest(ctx, call, out.Corpus)
		if err != nil {
			return nil, err
		}
		r := &reading{set: s, call: call, manifest: m}
		for _, src := range m.Sources {
			latest[src.Name] = r
		}
	}
	for _, name := range slices.Sorted(maps.Keys(latest)) {
		r := latest[name]
		v, err := r.view(ctx, r.byName[name])
		switch {
		case errors.Is(err, ErrChanged), errors.Is(err, fs.ErrNotExist):
			names = append(names, name)
		case err != nil:
			return nil, err
		default:
			_ = v.close(ctx) // it was read only for the check
		}
	}
	return names, nil
}

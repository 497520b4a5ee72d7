package corpus

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

//go:embed ask_pieces.md
var askDoc string

const (
	mostAsked    = 20_000 // pieces of a call
	mostParallel = 8      // concurrent requests
	usualBudget  = 1.0    // default US dollars of a call
	freeRequests = 2_000  // of a call, to a model without a known price
	mostTries    = 2      // of a piece
	mostQuestion = 8_000  // bytes
	mostListed   = 12     // named uncovered ranges and failures
)

type askArgs struct {
	Corpus   string         `json:"corpus,omitempty" jsonschema:"its name; not needed while only one is open"`
	Set      string         `json:"set,omitempty" jsonschema:"name of a set that corpus_pieces made"`
	From     int            `json:"from,omitempty" jsonschema:"number of the first piece of the set"`
	To       int            `json:"to,omitempty" jsonschema:"number behind the last one; all if not given"`
	Pieces   []string       `json:"pieces,omitempty" jsonschema:"or single pieces, such as 3:0-16000"`
	Question string         `json:"question" jsonschema:"what to find in each piece; it stands alone"`
	Schema   map[string]any `json:"schema,omitempty" jsonschema:"JSON Schema of an answer, without references; text if not given"`
	Expect   string         `json:"expect,omitempty" jsonschema:"regular expression; where it matches, no answer counts as failed"`
	Budget   *float64       `json:"budget,omitempty" jsonschema:"most US dollars for this call; 1 if not given"`
}

func (in askArgs) corpus() string { return in.Corpus }

func (s *Set) askTool() tool.Tool {
	return over(s, "ask_pieces", askDoc, func(ctx context.Context, r *reading, in askArgs) (tool.Result, error) { return r.ask(ctx, in) })
}

// chosen returns the pieces of a call.
func (r *reading) chosen(ctx context.Context, in askArgs) (pieces []piece, err error) {
	for _, text := range in.Pieces {
		p, err := parsePiece(text)
		if err != nil {
			return nil, err
		}
		pieces = append(pieces, p)
	}
	if (in.Set == "") == (len(in.Pieces) == 0) {
		return nil, errors.New("give the name of a set, or pieces")
	}
	if in.Set != "" {
		all, err := r.cutSet(ctx, in.Set)
		if err != nil {
			return nil, err
		}
		to := cmp.Or(in.To, len(all.Pieces))
		if in.From < 0 || in.From >= to || to > len(all.Pieces) {
			return nil, fmt.Errorf("the set has %d pieces; from %d to %d is none of it", len(all.Pieces), in.From, to)
		}
		pieces = all.Pieces[in.From:to]
	}
	if len(pieces) > mostAsked {
		return nil, fmt.Errorf("%d pieces are too many for a call; at most %d", len(pieces), mostAsked)
	}
	for _, p := range pieces {
		if err := r.check(p); err != nil {
			return nil, err
		}
		if p.To-p.From > mostPiece || p.To == p.From {
			return nil, fmt.Errorf("piece %v has %d bytes; 1 to %d can be asked about", p, p.To-p.From, mostPiece)
		}
	}
	return pieces, nil
}

// ask makes the small model read pieces, several at a time.
func (r *reading) ask(ctx context.Context, in askArgs) (tool.Result, error) {
	pieces, err := r.chosen(ctx, in)
	if err != nil {
		return tool.Result{}, err
	}
	q, err := newQuestion(in.Question, in.Schema, in.Expect)
	if err != nil {
		return tool.Result{}, err
	}
	model, err := r.set.small(ctx)
	if err != nil {
		return tool.Result{}, err
	}
	purse, err := r.set.purse(model.Info(), in.Budget)
	if err != nil {
		return tool.Result{}, err
	}
	asked := &round{
		reading: r, question: q, model: model, purse: purse, pieces: pieces, said: make([]said, len(pieces)),
		most: max(2, len(pieces)/10), cache: cache{dir: r.set.Cache},
	}
	why := asked.run(ctx)
	if why == nil && 2*asked.failed >= len(pieces) {
		why = fmt.Errorf("%d of %d pieces failed", asked.failed, len(pieces))
	}
	asked.cache.sweep()
	if errors.Is(why, ErrChanged) { // it is unknown to which content the answers belong
		return tool.Result{Cost: purse.close()}, why
	}
	res, err := asked.result()
	res.Cost = purse.close()
	return res, errors.Join(err, why)
}

// said is the result for one piece.
type said struct {
	state  state
	value  json.RawMessage // nil means the piece has no answer
	quotes []quote
	why    string
}

// state is the progress of a piece.
type state int

const (
	open state = iota // not asked yet
	answered
	failed
)

// quote is text of a piece that supports an answer.
type quote struct {
	From int64  `json:"from"`
	To   int64  `json:"to"`
	Text string `json:"quote"`
}

// round is one call that asks about pieces.
type round struct {
	*reading
	question question
	model    llm.Model
	purse    *purse
	pieces   []piece
	most     int // number of failures that stops further requests
	cache    cache

	mu     sync.Mutex
	said   []said
	failed int
	cached int
	asked  int
	why    error // why no more requests are sent
}

// run asks about all pieces, in order, and returns the reason why some could not be asked about.
func (a *round) run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	places := make(chan struct{}, mostParallel)
	var work sync.WaitGroup
	err := a.texts(ctx, func(n int, text string) error {
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
		}
		if err := a.over(ctx); err != nil {
			return err
		}
		key := a.question.key(a.model.Info().Route(), text)
		if known, ok := a.cache.get(key); ok {
			if s := a.read(n, known, text); s.state == answered {
				a.take(n, s, true)
				<-places
				return nil
			}
		}
		claim, err := a.purse.claim(a.model.Info(), a.question.request(text))
		if err != nil {
			return err
		}
		work.Go(func() {
			defer func() { <-places }()
			a.one(ctx, n, text, key, claim)
		})
		return nil
	})
	work.Wait()
	if why := a.over(ctx); why != nil {
		err = why
	}
	if err != nil {
		err = fmt.Errorf("%w%s", err, a.uncovered())
	}
	return err
}

// over returns the reason why no more requests may be sent; nil means more may.
func (a *round) over(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.why != nil {
		return a.why
	}
	return context.Cause(ctx)
}

// texts reads the pieces, source by source, and passes them to do.
func (a *round) texts(ctx context.Context, do func(n int, text string) error) error {
	for n := 0; n < len(a.pieces); {
		i := a.pieces[n].Source
		err := a.each(ctx, []int{i}, func(v *view) error {
			for ; n < len(a.pieces) && a.pieces[n].Source == i; n++ {
				data, err := v.bytes(ctx, a.pieces[n].From, a.pieces[n].To)
				if err != nil {
					return err
				}
				if err := do(n, v.src.Decoding.asked(data)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// one asks about one piece, and once more if the reply is unusable.
func (a *round) one(ctx context.Context, n int, text, key string, c claim) {
	ended, s := false, said{}
	reply, err := attempts(ctx, a.model, c, a.question.request(a.clean(text)), func(err error) bool {
		ended = err != nil && a.ends(ctx, err)
		return ended || a.over(ctx) != nil
	}, func(reply string) (wrong string) {
		if s = a.read(n, reply, text); s.state == answered {
			return ""
		}
		return a.clean(s.why)
	})
	switch {
	case ended:
		return
	case err != nil:
		s = said{state: failed, why: err.Error()}
	default:
		a.cache.put(key, reply)
	}
	a.take(n, s, false)
}

// read decodes a reply about a piece, with the places of its quotes in the source.
func (a *round) read(n int, reply, text string) said {
	p := a.pieces[n]
	s, shows := a.question.read(reply, text, p), a.Sources[p.Source].Decoding
	for i := range s.quotes {
		q := &s.quotes[i]
		q.From = p.From + shows.bytes(text[:q.From-p.From])
		q.To = q.From + shows.bytes(q.Text)
	}
	return s
}

// ends reports whether an error ends the call because it would also hit the other pieces.
func (a *round) ends(ctx context.Context, err error) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.why != nil || !hopeless(err) && ctx.Err() == nil {
		return false
	}
	a.why = err
	return true
}

// clean returns a text without secrets: another model gets it.
func (r *reading) clean(text string) string { return cleaned(r.call.Env.Clean, valid(text)) }

// take stores the result for a piece.
func (a *round) take(n int, s said, cached bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.said[n] = s
	if s.state == answered {
		a.sees(func(r *seen) { r.read(a.pieces[n]) })
	}
	if cached {
		a.cached++
	} else if a.asked++; a.asked%20 == 0 {
		a.call.Progress(fmt.Sprintf("asked about %d of %d pieces\n", a.asked+a.cached, len(a.pieces)))
	}
	if s.state == failed {
		if a.failed++; a.failed > a.most && a.why == nil {
			a.why = fmt.Errorf("%d of the pieces that were asked about failed, so nothing more is asked: the model or the question does not fit",
				a.failed)
		}
	}
}

// uncovered lists the pieces that were not read.
func (a *round) uncovered() string {
	var list []string
	n, last := 0, -1
	for i, s := range a.said {
		if s.state != open {
			continue
		}
		p := a.pieces[i]
		if n++; p.Source != last && len(list) < mostListed {
			list = append(list, fmt.Sprintf("%s from byte %d", valid(a.Sources[p.Source].Name), p.From))
		}
		last = p.Source
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("; not covered are %d of %d pieces: %s. What was answered is kept: asked again, it costs nothing",
		n, len(a.pieces), strings.Join(list, ", "))
}

// shownAnswer is an answer in the form for the calling model.
type shownAnswer struct {
	Piece    piece           `json:"piece"`
	Source   string          `json:"source"`
	Answer   json.RawMessage `json:"answer"`
	Evidence []quote         `json:"evidence"`
}

// result summarizes the results for all pieces.
func (a *round) result() (tool.Result, error) {
	type failure struct {
		Piece piece  `json:"piece"`
		Error string `json:"error"`
	}
	out := struct {
		Pieces   int           `json:"pieces"`
		Silent   int           `json:"silent"` // answers that are null
		Failed   int           `json:"failed"`
		Asked    int           `json:"asked"`
		Cached   int           `json:"cached"`
		Cost     float64       `json:"cost"`
		Answers  []shownAnswer `json:"answers"`
		Next     int           `json:"next,omitempty"` // number of the first piece whose answer is not shown
		Failures []failure     `json:"failures,omitempty"`
	}{Pieces: len(a.pieces), Failed: a.failed, Asked: a.asked, Cached: a.cached, Cost: a.purse.spentSoFar(), Answers: []shownAnswer{}}
	room := mostShown - 400
	for i, s := range a.said {
		if s.state == failed && len(out.Failures) < mostListed {
			f := failure{a.pieces[i], valid(s.why)}
			out.Failures, room = append(out.Failures, f), room-shown(f)
		}
	}
	for i, s := range a.said {
		if s.state != answered {
			continue
		}
		if s.value == nil {
			out.Silent++
			continue
		}
		one := shownAnswer{a.pieces[i], valid(a.Sources[a.pieces[i].Source].Name), s.value, s.quotes}
		if out.Next > 0 {
			continue
		}
		if room -= shown(one); room < 0 && len(out.Answers) > 0 {
			out.Next = i
			continue
		}
		out.Answers = append(out.Answers, one)
	}
	return result(out)
}

package corpus

import (
	"context"
	_ "embed"
	"errors"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/tool"
)

//go:embed corpus_grep.md
var grepDoc string

const (
	usualHits   = 50
	mostHits    = 500
	mostExcerpt = 300 // bytes of a line
)

type grepArgs struct {
	Corpus     string `json:"corpus,omitempty" jsonschema:"its name; not needed while only one is open"`
	Pattern    string `json:"pattern" jsonschema:"regular expression (RE2), for one line"`
	Glob       string `json:"glob,omitempty" jsonschema:"search only sources with such names"`
	IgnoreCase bool   `json:"ignore_case,omitempty"`
	Max        int    `json:"max,omitempty" jsonschema:"most hits to show; 50 if not given"`
}

func (in grepArgs) corpus() string { return in.Corpus }

// hit is a matching line. From and To are the place of Text.
type hit struct {
	Source string `json:"source"`
	Line   int64  `json:"line"`
	From   int64  `json:"from"`
	To     int64  `json:"to"`
	Text   string `json:"text"`
}

func runGrep(ctx context.Context, r *reading, in grepArgs) (tool.Result, error) {
	re, err := pattern(in.Pattern, in.IgnoreCase)
	if err != nil {
		return tool.Result{}, err
	}
	which, err := r.matching(in.Glob)
	if err != nil {
		return tool.Result{}, err
	}
	if in.Max < 0 || in.Max > mostHits {
		return tool.Result{}, errors.New("max is at most 500")
	}
	most, room := in.Max, mostShown-200
	if most == 0 {
		most = usualHits
	}
	out := struct {
		Total   int   `json:"total"` // matching lines
		Sources int   `json:"sources"`
		Hits    []hit `json:"hits"`
		More    int   `json:"more,omitempty"` // those not shown
	}{Hits: []hit{}}
	buf := make([]byte, block)
	err = r.each(ctx, which, func(v *view) error {
		before := out.Total
		loose, exact := v.src.Decoding.pattern(re)
		err := search(keep.Reading(ctx, v), loose, buf, func(l line) error {
			if !exact && !re.MatchString(v.src.Decoding.text(l.text)) {
				return nil
			}
			out.Total++
			if out.More == 0 && len(out.Hits) < most {
				text, at := excerpt(l, mostExcerpt)
				h := hit{valid(v.src.Name), l.number, l.from + int64(at), l.from + int64(at+len(text)), v.src.Decoding.text(text)}
				if room -= shown(h); room >= 0 {
					out.Hits = append(out.Hits, h)
					return nil
				}
			}
			out.More++
			return nil
		})
		if out.Total > before {
			out.Sources++
		}
		return err
	})
	if err != nil {
		return tool.Result{}, err
	}
	r.sees(func(s *seen) { s.searches[in.Pattern] = true })
	return result(out)
}

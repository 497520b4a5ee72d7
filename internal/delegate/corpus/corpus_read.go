package corpus

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/inspan/inspan/tool"
)

//go:embed corpus_read.md
var readDoc string

const (
	usualRead = 8_000
	mostRead  = 24_000
)

type readArgs struct {
	Corpus string `json:"corpus,omitempty" jsonschema:"its name; not needed while only one is open"`
	Source string `json:"source" jsonschema:"name of the source"`
	From   int64  `json:"from,omitempty" jsonschema:"first byte; the beginning if not given"`
	To     int64  `json:"to,omitempty" jsonschema:"byte behind the last one; 8000 bytes if not given, at most 24000"`
}

func (in readArgs) corpus() string { return in.Corpus }

func runRead(ctx context.Context, r *reading, in readArgs) (tool.Result, error) {
	i, err := r.find(in.Source)
	if err != nil {
		return tool.Result{}, err
	}
	size := r.Sources[i].Bytes
	to := min(in.To, size)
	if in.To == 0 {
		to = min(in.From+usualRead, size)
	}
	if in.From < 0 || in.From >= size || to <= in.From {
		return tool.Result{}, fmt.Errorf("there is nothing from byte %d to %d; %s has %d bytes", in.From, in.To, in.Source, size)
	}
	data, err := r.bytes(ctx, piece{i, in.From, min(to, in.From+mostRead)})
	if err != nil {
		return tool.Result{}, err
	}
	// Only whole characters, because the text is to be quoted.
	shows := r.Sources[i].Decoding
	begin, end := 0, wholeRunes(data)
	for begin < end && begin < 3 && in.From > 0 && shows != narrow && continues(data[begin]) {
		begin++
	}
	out := struct {
		Source string `json:"source"`
		From   int64  `json:"from"`
		To     int64  `json:"to"`
		Bytes  int64  `json:"bytes"` // of the source
		Text   string `json:"text"`
	}{valid(in.Source), in.From + int64(begin), in.From + int64(end), size, shows.text(data[begin:end])}
	for shown(out) > mostShown { // much of it needs escapes
		end = begin + wholeRunes(data[begin:begin+(end-begin)*3/4])
		out.To, out.Text = in.From+int64(end), shows.text(data[begin:end])
	}
	r.sees(func(s *seen) { s.read(piece{i, out.From, out.To}) })
	return result(out)
}

// bytes returns the bytes of a range.
func (r *reading) bytes(ctx context.Context, p piece) (data []byte, err error) {
	if err := r.check(p); err != nil {
		return nil, err
	}
	err = r.each(ctx, []int{p.Source}, func(v *view) (err error) {
		data, err = v.bytes(ctx, p.From, p.To)
		return err
	})
	return data, err
}

package corpus

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/tool"
)

//go:embed corpus_pieces.md
var piecesDoc string

const (
	usualPiece = 16_000
	leastPiece = 200
	mostPiece  = 256_000
	mostPieces = 200_000 // of a set
	firstShown = 10
)

type piecesArgs struct {
	Corpus  string `json:"corpus,omitempty" jsonschema:"its name; not needed while only one is open"`
	Glob    string `json:"glob,omitempty" jsonschema:"only sources with such names"`
	Match   string `json:"match,omitempty" jsonschema:"only pieces in which this regular expression matches"`
	Bytes   int    `json:"bytes,omitempty" jsonschema:"most bytes of a piece; 16000 if not given"`
	Overlap int    `json:"overlap,omitempty" jsonschema:"bytes that a piece shares with the one before; 0 if not given"`
}

func (in piecesArgs) corpus() string { return in.Corpus }

// set is a list of pieces that were cut together, in the form of its blob.
type set struct {
	Corpus string  `json:"of_corpus"`
	Pieces []piece `json:"pieces"`
}

func runPieces(ctx context.Context, r *reading, in piecesArgs) (tool.Result, error) {
	if in.Bytes == 0 {
		in.Bytes = usualPiece
	}
	if in.Bytes < leastPiece || in.Bytes > mostPiece || in.Overlap < 0 || in.Overlap > in.Bytes/2 {
		return tool.Result{}, fmt.Errorf("bytes is %d to %d, and overlap at most half of it", leastPiece, mostPiece)
	}
	var re *regexp.Regexp
	var err error
	if in.Match != "" {
		if re, err = pattern("(?m)"+in.Match, false); err != nil {
			return tool.Result{}, err
		}
	}
	which, err := r.matching(in.Glob)
	if err != nil {
		return tool.Result{}, err
	}
	all, total := set{Corpus: r.name, Pieces: []piece{}}, int64(0)
	sources, buf := map[int]bool{}, make([]byte, in.Bytes)
	err = r.each(ctx, which, func(v *view) error {
		return cut(keep.Reading(ctx, v), buf, in.Overlap, func(from int64, text []byte) error {
			if re != nil && !re.Match(text) {
				return nil
			}
			if len(all.Pieces) == mostPieces {
				return fmt.Errorf("there are more than %d pieces; make them larger, or choose some by glob or match", mostPieces)
			}
			sources[v.i], total = true, total+int64(len(text))
			all.Pieces = append(all.Pieces, piece{v.i, from, from + int64(len(text))})
			return nil
		})
	})
	if err != nil {
		return tool.Result{}, err
	}
	raw, err := json.Marshal(all)
	if err != nil {
		return tool.Result{}, err
	}
	name, err := r.call.Env.Blobs.Put(ctx, bytes.NewReader(raw))
	if err != nil {
		return tool.Result{}, err
	}
	return result(struct {
		Set     string  `json:"set"`
		Pieces  int     `json:"pieces"`
		Bytes   int64   `json:"bytes"`
		Sources int     `json:"sources"`
		First   []piece `json:"first"`
	}{name, len(all.Pieces), total, len(sources), all.Pieces[:min(firstShown, len(all.Pieces))]})
}

// cut passes the pieces of a text to do, each no longer than buf, which holds them: up to the end of a
// paragraph if there is one in its second half, else of a line, else of a character. The text is only valid
// until do returns.
func cut(r io.Reader, buf []byte, overlap int, do func(from int64, text []byte) error) error {
	n, base := 0, int64(0)
	shared := 0 // bytes at the beginning of buf that are also in the previous piece
	for {
		k, err := io.ReadFull(r, buf[n:])
		n += k
		last := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		switch {
		case err != nil && !last:
			return err
		case last && n == shared:
			return nil
		case last:
			return do(base, buf[:n])
		}
		end := border(buf[:n])
		if err := do(base, buf[:end]); err != nil {
			return err
		}
		next := end
		if overlap > 0 {
			next = end - overlap
			if i := bytes.IndexByte(buf[next:end], '\n'); i >= 0 && i+1 < end-next {
				next += i + 1
			}
			for next < end && continues(buf[next]) {
				next++
			}
		}
		shared = end - next
		base += int64(next)
		n = copy(buf, buf[next:n])
	}
}

// border returns where to end a piece in a text that is too long for one.
func border(text []byte) int {
	for _, mark := range []string{"\n\n", "\n"} {
		if i := bytes.LastIndex(text, []byte(mark)); i >= len(text)/2 {
			return i + len(mark)
		}
	}
	return wholeRunes(text)
}

// cutSet returns the set of pieces with a name.
func (r *reading) cutSet(ctx context.Context, name string) (set, error) {
	raw, err := blob(ctx, r.call, name)
	if errors.Is(err, fs.ErrNotExist) {
		return set{}, fmt.Errorf("there is no set of pieces %q; corpus_pieces makes one and tells its name", name)
	}
	if err != nil {
		return set{}, err
	}
	var out set
	if err := json.Unmarshal(raw, &out); err != nil || out.Corpus == "" {
		return set{}, fmt.Errorf("%q is not the name of a set of pieces", name)
	}
	if out.Corpus != r.name {
		return set{}, errors.New("the set has pieces of another corpus")
	}
	return out, nil
}

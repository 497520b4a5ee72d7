package inspan_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// shelf keeps one blob.
type shelf struct{ data []byte }

func (s *shelf) Put(_ context.Context, r io.Reader) (string, error) {
	var err error
	s.data, err = io.ReadAll(r)
	return "sha256-x", err
}

func (s *shelf) Get(context.Context, string) (io.ReadCloser, error) {
	if s.data == nil {
		return nil, errors.New("empty")
	}
	return io.NopCloser(bytes.NewReader(s.data)), nil
}

// TestImagesOfAPersonAreBlobs holds that an image that is said is kept beside the
// log, and reaches the model whole.
func TestImagesOfAPersonAreBlobs(t *testing.T) {
	picture := bytes.Repeat([]byte("pixel"), 1000)
	for name, say := range map[string]func(*inspan.Session, event.Body) error{
		"run": func(s *inspan.Session, b event.Body) error {
			for _, err := range s.Run(t.Context(), b) {
				if err != nil {
					return err
				}
			}
			return nil
		},
		"send": func(s *inspan.Session, b event.Body) error {
			if err := s.Send(t.Context(), b); err != nil {
				return err
			}
			for _, err := range s.Run(t.Context()) {
				if err != nil {
					return err
				}
			}
			return nil
		},
	} {
		m, blobs := &longWork{t: t, window: 100_000, turns: 1}, &shelf{}
		log := event.NewMemory("s")
		s, err := (&inspan.Agent{Model: m, Env: tool.Env{Root: "/w", Blobs: blobs}}).Open(t.Context(), log)
		if err != nil {
			t.Fatal(err)
		}
		if err := say(s, event.Said{Parts: llm.Parts{llm.Text{Text: "look"}, llm.Image{MediaType: "image/png", Data: picture}}}); err != nil {
			t.Fatal(err)
		}
		for e, err := range log.Read(t.Context(), 0) {
			line, encodeErr := event.Encode(e)
			if err := errors.Join(err, encodeErr); err != nil || len(line) > 2000 {
				t.Errorf("%s: a line of %d bytes, %v", name, len(line), err)
			}
		}
		parts := m.asked[0].Messages[0].Parts
		if img, ok := parts[len(parts)-1].(llm.Image); !ok || !bytes.Equal(img.Data, picture) {
			t.Errorf("%s: the model sees %+v", name, parts)
		}
	}
}

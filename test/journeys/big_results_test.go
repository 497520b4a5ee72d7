package journeys_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
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

// TestImagesOfAPersonAreBlobs checks that an image in a message is stored as a blob, and reaches the model whole.
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

// TestResultsFitTheWindow checks that one result takes no more than an eighth of the window, and that the rest of it
// can be read.
func TestResultsFitTheWindow(t *testing.T) {
	said := strings.Repeat("a line of some file\n", 3000)
	for window, want := range map[int]int{0: 30_000, 4000: 2000, 8000: 3500, 32_000: 14_000, 200_000: 30_000} {
		blobs := &shelf{}
		reads := tool.New("look", "x", func(context.Context, *tool.Call, struct{}) (tool.Result, error) { return tool.Text(said), nil })
		reads.Effects = tool.NoEffects
		a := inspan.Agent{
			Model: windowed{scripted(t, "call: look {}", "done"), window}, Tools: []tool.Tool{reads}, Mode: "yolo", Env: tool.Env{Root: "/w", Blobs: blobs},
		}
		s, err := a.Open(t.Context(), event.NewMemory("s"))
		if err != nil {
			t.Fatal(err)
		}
		got := bodiesOf[event.Ended](drivenTo(t, s, event.Say("go")))[0].Parts.Text()
		if len(got) > want+200 || len(got) < want || !strings.Contains(got, `read_file with path "blob:sha256-x" shows them`) || string(blobs.data) != said {
			t.Errorf("window %d: %d bytes are shown, want %d: %s", window, len(got), want, got[len(got)/2-100:][:200])
		}
	}
}

// windowed is a model with a window of its own.
type windowed struct {
	llm.Model
	tokens int
}

func (w windowed) Info() llm.Info { return llm.Info{Provider: "p", Model: "m", Window: w.tokens} }

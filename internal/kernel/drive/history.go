package drive

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// history searches a session's log for the model, whose conversation may no longer hold all of it.
type history struct{ log event.Log }

// Find implements [tool.History].
func (h history) Find(ctx context.Context, limit int, match func(tool.Passage) bool) ([]tool.Passage, error) {
	var found []tool.Passage
	names := map[string]string{} // names of tools, by call
	for e, err := range h.log.Read(ctx, 0) {
		if err != nil {
			return nil, err
		}
		p := passage(e, names)
		if p.Text == "" || !match(p) {
			continue
		}
		if found = append(found, p); len(found) > limit {
			found = slices.Delete(found, 0, 1)
		}
	}
	return found, nil
}

// passage returns the text of an event for the model; its text is empty if the event has none.
func passage(e event.Event, names map[string]string) tool.Passage {
	p := tool.Passage{Seq: e.Seq, Time: e.Time}
	switch b := e.Body.(type) {
	case event.Said:
		p.Who, p.Text = originName(b.Origin), messageText(b.Parts)
	case event.Steered:
		p.Who, p.Text = originName(b.Origin), messageText(b.Parts)
		if b.By == loop.By {
			p.Who = originName(event.OriginHarness)
		}
	case event.Added:
		if b.Where == event.PlaceTail {
			p.Who, p.Text = "harness", b.Text
		}
	case event.Replied:
		p.Who, p.Text = "model", b.Parts.Text()
		for _, c := range b.Parts.Calls() {
			names[c.ID] = c.Name
			p.Text += fmt.Sprintf("\n[called %s with %s]", c.Name, c.Args)
		}
	case event.Ended:
		p.Who, p.Call, p.Text = names[b.Call], b.Call, b.Parts.Text()
		delete(names, b.Call)
	}
	return p
}

// originName names an origin for the model.
func originName(o event.Origin) string {
	return string(cmp.Or(o, event.OriginPerson))
}

// messageText returns the text of a message, with the number of its images.
func messageText(parts llm.Parts) string {
	s := parts.Text()
	if n := parts.Images(); n > 0 {
		s = strings.TrimPrefix(s+fmt.Sprintf("\n[images: %d]", n), "\n")
	}
	return s
}

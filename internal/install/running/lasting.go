package running

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/kernel/hold"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/store"
	"github.com/inspan/inspan/tool"
)

// Lasting is an effect of a call that no rewind undoes.
type LastingEffect struct {
	Seq  uint64    `json:"seq"`
	Time time.Time `json:"time"`
	// of the call, the same for each attempt: an idempotency key; empty for things that continue after the
	// session
	Key     string   `json:"key"`
	Tool    string   `json:"tool"`
	Agent   string   `json:"agent,omitempty"` // session of the agent that did it; empty means the session itself
	Effects []string `json:"effects"`
	Outcome string   `json:"outcome"` // empty if it is unknown how it ended
}

// Lasting lists the effects of the calls of a session and its agents outside of its workspace: over the
// network, in other folders, or in unknown places; and the changes of background agents in it, which a rewind
// of the session leaves.
func (w *Rewinds) Lasting(ctx context.Context, id string) ([]LastingEffect, error) {
	var out []LastingEffect
	var fold transcript.Fold
	agents, beside, at := []string(nil), map[string]LastingEffect{}, map[*transcript.Call]int{}
	for e, err := range store.Events(ctx, w.Sessions, id) {
		if err != nil {
			return nil, err
		}
		for _, item := range fold.Apply(e) {
			switch i := item.(type) {
			case *transcript.Call:
				switch i.State {
				case transcript.Running:
					if list := lasting(i.Effects(), fold.Session.Root); len(list) > 0 {
						at[i] = len(out)
						key := hold.Key(e.Session, i.Seq, i.Call.ID)
						out = append(out, LastingEffect{Seq: e.Seq, Time: e.Time, Key: key, Tool: i.Call.Name, Effects: list})
					}
				case transcript.Over:
					if place, known := at[i]; known {
						out[place].Outcome = string(i.Ended.Outcome)
					}
				}
			case *transcript.Child:
				b := i.Spawned
				if i.Returned != nil {
					continue
				}
				if !slices.Contains(agents, b.Child) {
					agents = append(agents, b.Child)
				}
				if b.Background && b.Root == "" {
					beside[b.Child] = LastingEffect{Seq: e.Seq, Time: e.Time, Tool: "spawn_agent", Agent: b.Child, Outcome: "background"}
				}
			case *transcript.Note:
				if b, is := i.Of.(event.Finished); is && b.Kept {
					text := fmt.Sprintf("%s: continues after the session, in process %d", b.Command, b.PID)
					out = append(out, LastingEffect{Seq: e.Seq, Time: e.Time, Tool: "bash", Effects: []string{text}, Outcome: "kept"})
				}
			}
		}
	}
	root := fold.Session.Root
	for _, agent := range agents {
		if l, is := beside[agent]; is && w.snapshots(root) != nil {
			files, err := w.Changed(ctx, agent, root)
			if err != nil {
				return nil, err
			}
			for _, f := range files {
				l.Effects = append(l.Effects, "changed "+f.Path+" in the workspace; 'inspan rewind "+agent+"' takes that back")
			}
			if files != nil {
				out = append(out, l)
			}
		}
		list, err := w.Lasting(ctx, agent)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was removed
		}
		if err != nil {
			return nil, err
		}
		for _, l := range list {
			l.Agent = cmp.Or(l.Agent, agent)
			out = append(out, l)
		}
	}
	return out, nil
}

// lasting describes the effects that stay.
func lasting(effects []tool.Effect, root string) []string {
	var out []string
	command := ""
	for _, e := range effects {
		what := ""
		switch {
		case e.Kind == tool.Execute:
			command = e.Text
		case e.Kind == tool.Network:
			what = "talked to " + e.Text
			if e.Text == "" || e.Text == "*" {
				what = "could reach any host"
			}
		case e.Kind == tool.External:
			what = "could do anything"
			if e.Text != "" {
				what = "was to " + e.Text
			}
		case e.Kind == tool.Write && e.Temporary:
			what = "wrote " + e.Path + ", which the end of the session may have copied to the machine"
		case e.Kind == tool.Write && !text.Inside(root, e.Path):
			what = "changed " + e.Path
		case e.Kind == tool.Write && e.Sensitive != "": // checkpoints leave it out
			what = "changed " + e.Path
		case e.Kind == tool.Read && e.Sensitive != "":
			what = "read " + e.Path
		}
		if what != "" && e.Sensitive != "" {
			what += ", which " + e.Sensitive
		}
		if what == "" {
			continue
		}
		if command != "" {
			what = command + ": " + what
		}
		if !slices.Contains(out, what) {
			out = append(out, what)
		}
	}
	return out
}

package managed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/service/server"
)

const (
	mostInitial = 50
	again       = 2 * time.Second // pause before a retry when there was no room
)

// initial reports inputs that can't begin a session.
func (d *door) initial(list []json.RawMessage, kinds ...string) error {
	if len(list) > mostInitial {
		return invalid("initial_events", fmt.Sprintf("there are %d", len(list)), fmt.Sprintf("at most %d", mostInitial))
	}
	inputs, err := d.inputs("initial_events", list)
	for i, input := range inputs {
		if !slices.Contains(kinds, input.kind) {
			return invalid(fmt.Sprintf("initial_events.%d.type", i), "it is "+input.kind, strings.Join(kinds, " or "))
		}
	}
	return err
}

// begin sends the initial inputs to a session. They are stored with the session until they are sent, so that
// the next server continues after a crash.
func begin(s *server.Server, id string) <-chan error {
	done := make(chan error, 1)
	if !s.Go(func(ctx context.Context) { done <- (&door{Visit: s.Self(ctx)}).begin(id) }) {
		done <- context.Canceled
	}
	return done
}

func (d *door) begin(id string) error {
	v, err := d.For(d, id, "")
	for err == nil {
		if err = (&door{Visit: v}).sayInitial(id); err == nil || d.Err() != nil {
			return err
		}
		switch status := server.ProblemOf(err).Status; {
		case status == http.StatusInternalServerError:
			return err
		case status != http.StatusServiceUnavailable: // it will never be sent
			_, _, failed := changed(d, ofSession, id, func(k *keptSession) error { k.Initial = nil; return nil })
			return errors.Join(err, failed)
		}
		err = d.rest()
	}
	return err
}

// rest waits a little before a retry when there was no room.
func (d *door) rest() error {
	due, stop := d.Clock.At(d.Clock.Now().Add(again))
	defer stop()
	select {
	case <-due:
	case <-d.Done():
	}
	return d.Err()
}

func (d *door) sayInitial(id string) error {
	_, k, err := objectOf[keptSession](d.Object, ofSession, id)
	if err != nil || len(k.Initial) == 0 {
		return err
	}
	inputs, err := d.inputs("initial_events", k.Initial)
	if err != nil {
		return err
	}
	before, err := d.Sent(id)
	if err != nil {
		return err
	}
	for i, input := range inputs {
		key := fmt.Sprintf("managed.initial/%d", i)
		if _, err := d.send(id, step{input: input, key: key, sent: under(before, key)}); err != nil {
			return err
		}
	}
	_, _, err = changed(d, ofSession, id, func(k *keptSession) error { k.Initial = nil; return nil })
	return err
}

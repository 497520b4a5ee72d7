package server

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/safety/netguard"
)

// Each webhook gets its events one at a time and in order. A failed delivery is retried, with growing pauses,
// and then becomes a dead letter. A webhook that accepts nothing for a long time is disabled, and its
// undelivered events become dead letters. Webhooks don't wait for each other.

const (
	secretPrefix = "whsec_" // of Standard Webhooks
	mostAttempts = 8
	firstPause   = 2 * time.Second // before the second attempt; each later one is three times as long
	mostFailing  = 24 * time.Hour
	mostDelivery = 10 * time.Second // from the look-up of the host to the end of the response
	mostReply    = 64 << 10         // bytes of a response that are read
	mostUnsaid   = 16               // deliveries per webhook that may be repeated after a crash
)

// deliver delivers to all webhooks until the server ends.
func (s *Server) deliver() {
	at := map[string]chan struct{}{} // closed when deliveries to it have stopped
	for s.ctx.Err() == nil {
		news := s.book.news()
		for _, id := range s.book.enabledHooks() {
			select {
			case <-at[id]:
				delete(at, id)
			default:
			}
			if at[id] == nil {
				done := make(chan struct{})
				at[id] = done
				s.wg.Go(func() {
					s.deliverTo(id)
					close(done)
					select {
					case s.hookEnded <- struct{}{}: // it may be enabled again
					default:
					}
				})
			}
		}
		select {
		case <-news:
		case <-s.hookEnded:
		case <-s.ctx.Done():
		}
	}
}

// delivery is the state of the deliveries to one webhook.
type delivery struct {
	*Server
	id      string
	behind  uint64 // the last settled event of the book; n is its position among the notices of that event
	n       int
	unsaid  int       // settled ones that the book does not record yet
	failing time.Time // start of the failures; zero means it accepts deliveries
	seq     uint64    // of the event that last defined the webhook
}

// deliverTo delivers events to a webhook until it is removed or disabled.
func (s *Server) deliverTo(id string) {
	h, known := s.book.hook(id)
	if !known {
		return
	}
	d := &delivery{Server: s, id: id, behind: h.cursor, n: 1 << 30, failing: h.failing}
	for s.ctx.Err() == nil {
		news := s.book.news()
		next, seq := s.book.next(id, d.behind, d.n)
		if d.seq != 0 && seq != d.seq { // it was changed, so earlier failures don't count
			d.failing = time.Time{}
		}
		d.seq = seq
		var err error
		switch {
		case seq == 0:
			return
		case next != nil:
			err = d.tell(*next)
		case d.unsaid > 0:
			err = d.keep(d.behind)
		default:
			select {
			case <-news:
			case <-s.ctx.Done():
			}
		}
		if err != nil && s.ctx.Err() == nil { // the book can't be written, which is reported to the operator elsewhere
			d.pause(again)
		}
	}
}

// keep records the webhook's position in the book.
func (d *delivery) keep(seq uint64, also ...event.Body) error {
	b, err := recorded(ofCursor, d.id, "", cursor{seq, d.failing})
	if err != nil {
		return err
	}
	if err := d.book.change(d.ctx, func() ([]event.Body, error) {
		if d.book.hooks[d.id] == nil {
			return nil, nil
		}
		return append(also, b), nil
	}); err != nil {
		return err
	}
	d.unsaid = 0
	return nil
}

// tell delivers one notice, with retries. If the webhook changes meanwhile, tell returns and the notice is
// looked up again.
func (d *delivery) tell(n notice) error {
	var failed error
	for attempt := range mostAttempts {
		h, known := d.book.hook(d.id)
		if !known || h.seq != d.seq {
			return nil
		}
		failed = d.attempt(d.ctx, h.Webhook, eventID(d.id, n), n)
		if d.ctx.Err() != nil {
			return d.ctx.Err()
		}
		if failed == nil {
			d.behind, d.n, d.failing = n.seq, n.n, time.Time{}
			if d.unsaid++; d.unsaid >= mostUnsaid {
				return d.keep(n.seq - 1) // the same event of the book may have more notices
			}
			return nil
		}
		now := d.Clock.Now()
		if d.failing.IsZero() {
			d.failing = now
		}
		if now.Sub(d.failing) >= mostFailing {
			return d.giveUp(n, attempt+1, failed)
		}
		if attempt < mostAttempts-1 && !d.pause(backoff(attempt)) {
			return nil
		}
	}
	l, err := recorded(ofLetter, eventID(d.id, n), "", d.letter(n, mostAttempts, failed))
	if err == nil {
		err = d.keep(n.seq-1, l)
	}
	if err == nil {
		d.behind, d.n, d.unsaid = n.seq, n.n, 1
	}
	return err
}

func (d *delivery) letter(n notice, attempts int, why error) deadLetter {
	return deadLetter{eventID(d.id, n), d.id, n.kind, n.subject, n.at, n.tenant, attempts, why.Error()}
}

// backoff returns the pause after the attempt with a number, varied by up to a third, so that many retries
// don't come at once.
func backoff(attempt int) time.Duration {
	pause := firstPause
	for range attempt {
		pause *= 3
	}
	third := int64(pause / 3)
	more, err := rand.Int(rand.Reader, big.NewInt(2*third))
	if err != nil {
		return pause
	}
	return pause + time.Duration(more.Int64()-third)
}

// pause waits, and reports whether the webhook is unchanged.
func (d *delivery) pause(long time.Duration) bool {
	until := d.Clock.Now().Add(long)
	for d.Clock.Now().Before(until) {
		news := d.book.news()
		if h, known := d.book.hook(d.id); !known || h.seq != d.seq {
			return false
		}
		due, stop := d.Clock.At(until)
		select {
		case <-due:
		case <-news:
		case <-d.ctx.Done():
			stop()
			return false
		}
		stop()
	}
	return true
}

// giveUp disables the webhook. All its pending notices become dead letters.
func (d *delivery) giveUp(n notice, attempts int, why error) error {
	reason := fmt.Sprintf("nothing could be delivered since %s: %s", d.failing.UTC().Format(time.RFC3339), why)
	d.warn("webhook " + d.id + " is disabled: " + reason)
	return d.book.change(d.ctx, func() (bodies []event.Body, err error) {
		h := d.book.hooks[d.id]
		if h == nil || h.seq != d.seq {
			return nil, nil
		}
		for next := &n; next != nil && len(bodies) < mostLetters; next = d.book.behind(h, next.seq, next.n) {
			l, err := recorded(ofLetter, eventID(d.id, *next), "", d.letter(*next, attempts, why))
			if err != nil {
				return nil, err
			}
			bodies, attempts = append(bodies, l), 0
		}
		w := h.Webhook
		w.State, w.Reason, w.Updated = disabled, reason, moment()
		off, err := recorded(ofWebhook, d.id, "inspan serve", w)
		return append(bodies, off), err
	})
}

// refusedError is the status of a response that is not a success.
type refusedError int

func (e refusedError) Error() string { return "it answered with status " + strconv.Itoa(int(e)) }

// attempt delivers once. Its error reveals nothing about the server's network, as clients see it.
func (s *Server) attempt(ctx context.Context, w Webhook, id string, n notice) error {
	body, err := json.Marshal(map[string]any{
		"type": "event", "id": id, "created_at": n.at.UTC().Format("2006-01-02T15:04:05.000Z07:00"),
		"data": map[string]any{"type": n.kind, "id": n.subject, "organization_id": "inspan", "workspace_id": cmp.Or(n.tenant, "default")},
	})
	if err != nil {
		return err
	}
	guard, err := s.receiver(w.URL)
	if err != nil {
		return err
	}
	key, err := s.key(ctx, w.ID)
	if err != nil {
		return err
	}
	ctx, end := context.WithTimeout(ctx, mostDelivery)
	defer end()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	now := strconv.FormatInt(s.Clock.Now().Unix(), 10)
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", id, now, body)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "inspan-webhooks")
	req.Header.Set("Webhook-Id", id)
	req.Header.Set("Webhook-Timestamp", now)
	req.Header.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	res, err := guard.Unredirected().Do(req)
	if err != nil {
		return outward(err)
	}
	_, _ = io.Copy(io.Discard, res.Body) // up to the limit of the guard
	_ = res.Body.Close()
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return refusedError(res.StatusCode)
	}
	return nil
}

// outward returns the part of an error that clients may see.
func outward(err error) error {
	_, barred := errors.AsType[*netguard.RefusedError](err)
	late, timed := errors.AsType[net.Error](err)
	switch {
	case barred:
		return errors.New("the host has no public address")
	case timed && late.Timeout():
		return fmt.Errorf("no answer within %s", mostDelivery)
	}
	return errors.New("no connection")
}

// key returns the key that signs deliveries to a webhook.
func (s *Server) key(ctx context.Context, webhook string) ([]byte, error) {
	secret := ""
	if err := s.Secret(ctx, secretOfHook+webhook, &secret); err != nil {
		return nil, errors.New("its secret is missing; replace it")
	}
	return base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, secretPrefix))
}

// deliveryResult is the result of a delivery.
type deliveryResult struct {
	Delivered bool   `json:"delivered"`
	Status    int    `json:"status,omitempty" jsonschema:"HTTP status of the answer, if it is not one of success"`
	Error     string `json:"error,omitempty"`
}

func came(err error) deliveryResult {
	if err == nil {
		return deliveryResult{Delivered: true}
	}
	out := deliveryResult{Error: err.Error()}
	if status, is := errors.AsType[refusedError](err); is {
		out.Status = int(status)
	}
	return out
}

// testWebhook sends an empty test event, once.
func (c *call) testWebhook(in one) (deliveryResult, error) {
	h, err := c.webhook(in.ID)
	if err != nil {
		return deliveryResult{}, err
	}
	id := newID("whe_")
	return came(c.attempt(c, h.Webhook, id, notice{at: time.Now(), tenant: h.Tenant, kind: "webhook.test", subject: h.ID})), nil
}

// sendLetter sends a dead letter again, once. If that succeeds, it is no longer a dead letter.
func (c *call) sendLetter(in oneLetter) (deliveryResult, error) {
	h, err := c.webhook(in.ID)
	if err != nil {
		return deliveryResult{}, err
	}
	for _, l := range h.letters {
		if l.ID != in.Letter {
			continue
		}
		if err := c.attempt(c, h.Webhook, l.ID, notice{at: l.At, tenant: l.Tenant, kind: l.Type, subject: l.Subject}); err != nil {
			return came(err), nil
		}
		return came(nil), c.book.add(c, event.Recorded{Of: ofLetter, ID: l.ID, By: c.who.name})
	}
	return deliveryResult{}, Missing("dead letter", in.Letter)
}

package schedule

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/keep"
)

// Hook is a webhook of a schedule.
type Hook struct {
	Secret string   `json:"secret"`           // signs the calls
	Events []string `json:"events,omitempty"` // GitHub events that count, such as issues.opened or push; none: all
}

// MaxEvent bounds the body of a call, in bytes.
const MaxEvent = 256 << 10

const (
	secretMark = "whsec_"
	mostSeen   = 5000             // remembered calls, and bodies
	clockSkew  = 5 * time.Minute  // maximum difference between the time of a call and ours
	remembered = 24 * time.Hour   // how long repeated calls are recognized
	mostNews   = 64 << 10         // bytes of an event in a task
	mostID     = 256              // bytes of a call's id
	github     = "github"         // prefix of typed GitHub events
	eventField = "X-Github-Event" // GitHub's header with the event name
	before     = "it was taken before"
)

// NewSecret returns a random secret for a [Hook].
func NewSecret() string {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	return secretMark + base64.StdEncoding.EncodeToString(key)
}

// On parses the trigger of a run as typed: webhook, github:EVENT,... or file:GLOB.
func (s *Schedule) On(typed string) error {
	kind, rest, some := strings.Cut(typed, ":")
	switch {
	case kind == "webhook" && !some:
		s.Hook = &Hook{Secret: NewSecret()}
	case kind == github:
		s.Hook = &Hook{Secret: NewSecret()}
		if some {
			s.Hook.Events = strings.Split(rest, ",")
		}
	case kind == "file" && rest != "":
		s.Files = rest
	default:
		return misused("--on: unknown value %q; use webhook, github:issues.opened,push or file:GLOB", typed)
	}
	return nil
}

func (h *Hook) check() error {
	for _, e := range h.Events {
		name, action, _ := strings.Cut(e, ".")
		if strings.Trim(name+action, "abcdefghijklmnopqrstuvwxyz_") != "" || name == "" || strings.HasSuffix(e, ".") {
			return misused("--on: %q is not an event of GitHub; use one such as push or issues.opened", e)
		}
	}
	return nil
}

// Call is a request to a webhook.
type Call struct {
	Header  http.Header
	Body    []byte
	Session string // full id of the session whose step it answers; empty means every waiting session
}

// ErrSignature says that the webhook does not exist, or that the call is not signed with its secret.
var ErrSignature = errors.New("unknown webhook, or wrong signature")

// ErrFull says that too many calls are already waiting.
var ErrFull = errors.New("too many calls are waiting; try again later")

// ErrLarge says that the body of a call is larger than MaxEvent.
var ErrLarge = errors.New("the body is too large")

// Called handles a call of a schedule's webhook, and returns the outcome in words. A repeated call changes
// nothing. The error is ErrSignature, ErrLarge, ErrFull, a [words.Misuse] about the body, or says that calls
// can't be accepted now.
func (s *Set) Called(ctx context.Context, id string, c Call) (string, error) {
	one, err := s.Find(id)
	if err != nil && !errors.Is(err, ErrNone) {
		return "", err
	}
	if one.Hook == nil {
		one.Hook = &Hook{Secret: NewSecret()} // so that the response takes the same time
	}
	key, ok := one.Hook.signed(c, s.now())
	switch {
	case !ok || err != nil || one.ID == "":
		return "", ErrSignature
	case len(c.Body) > MaxEvent:
		return "", ErrLarge
	case !json.Valid(c.Body):
		return "", misused("the body is not JSON; in GitHub, set the content type of the webhook to application/json")
	case one.Paused:
		return "the schedule is paused", nil
	case !one.Hook.counts(c):
		return "the schedule is for other events", nil
	case one.answers():
		return s.answer(ctx, one, key, c)
	}
	what := "the run begins"
	_, err = s.update(ctx, id, func(one *Schedule) error {
		now := s.now()
		if one.knows(key, c, now) {
			what = before
			return nil
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, c.Body); err != nil {
			return err
		}
		if !one.add(Occasion{Key: key + now.Format(" "+time.RFC3339Nano), At: now, Event: compact.Bytes()}) {
			return ErrFull
		}
		one.took(key, c, now)
		return nil
	})
	return what, err
}

// signed reports whether a call is signed with the secret, and returns a key that identifies it. It accepts two
// forms. Calls of Standard Webhooks have a time. GitHub signs only the body; the delivery id distinguishes
// equal bodies, see [Schedule.knows].
func (h *Hook) signed(c Call, now time.Time) (key string, ok bool) {
	if sum, some := strings.CutPrefix(c.Header.Get("X-Hub-Signature-256"), "sha256="); some {
		given, err := hex.DecodeString(sum)
		if key = c.body(); c.delivery() != "" {
			key = "delivery " + c.delivery()
		}
		return key, err == nil && len(c.delivery()) <= mostID && hmac.Equal(given, mac([]byte(h.Secret), string(c.Body)))
	}
	id, stamp := c.Header.Get("Webhook-Id"), c.Header.Get("Webhook-Timestamp")
	secret, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(h.Secret, secretMark))
	unix, bad := strconv.ParseInt(stamp, 10, 64)
	if err != nil || bad != nil || id == "" || len(id) > mostID || time.Unix(unix, 0).Sub(now).Abs() > clockSkew {
		return "", false
	}
	want := mac(secret, id+"."+stamp+"."+string(c.Body))
	for one := range strings.FieldsSeq(c.Header.Get("Webhook-Signature")) {
		given, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(one, "v1,"))
		if err == nil && strings.HasPrefix(one, "v1,") && hmac.Equal(given, want) {
			return "call " + id, true
		}
	}
	return "", false
}

func mac(key []byte, text string) []byte {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(text))
	return m.Sum(nil)
}

// counts reports whether a call is one of the events that count. GitHub tests each new webhook with a ping,
// which doesn't count.
func (h *Hook) counts(c Call) bool {
	name := c.Header.Get(eventField)
	if name == "ping" {
		return false
	}
	var body struct{ Action string }
	_ = json.Unmarshal(c.Body, &body) // the action may be missing
	return len(h.Events) == 0 || slices.Contains(h.Events, name) || slices.Contains(h.Events, name+"."+body.Action)
}

// saw records a key.
func (s *Schedule) saw(key, what string) {
	if s.Seen == nil {
		s.Seen = map[string]string{}
	}
	s.Seen[key] = what
}

// bodyMark begins the keys of bodies that are signed without a time.
const bodyMark = "body "

func (c Call) body() string {
	return bodyMark + keep.SHA256(c.Body)
}

// delivery returns GitHub's delivery id. It is not signed.
func (c Call) delivery() string { return c.Header.Get("X-GitHub-Delivery") }

// timeless reports whether the signature never expires.
func (c Call) timeless() bool { return c.Header.Get("X-Hub-Signature-256") != "" }

// unnamed follows the time of a body that came without a delivery id.
const unnamed = " unnamed"

// knows reports whether a call is a repetition. An attacker could replay a body signed without a time under other
// delivery ids, so such a body is accepted only as long as calls are remembered, and never later. One that came
// without an id counts once: its sender has none.
func (s *Schedule) knows(key string, c Call, now time.Time) bool {
	if _, known := s.Seen[key]; known || !c.timeless() {
		return known
	}
	first, known := s.Seen[c.body()]
	return known && (strings.HasSuffix(first, unnamed) || first < now.Add(-remembered).Format(time.RFC3339))
}

// took records a call. It forgets old calls, and the oldest of too many bodies that are signed without a time.
func (s *Schedule) took(call string, c Call, now time.Time) {
	if _, known := s.Seen[c.body()]; c.timeless() && !known {
		at := now.Format(time.RFC3339)
		if c.delivery() == "" {
			at += unnamed
		}
		s.saw(c.body(), at)
	}
	if !strings.HasPrefix(call, bodyMark) {
		s.saw(call, now.Format(time.RFC3339))
	}
	keys := sortedKeys(s.Seen)
	slices.SortStableFunc(keys, func(a, b string) int { return strings.Compare(s.Seen[b], s.Seen[a]) }) // newest first
	oldest := now.Add(-remembered).Format(time.RFC3339)
	bodies, calls := 0, 0
	for _, key := range keys {
		if strings.HasPrefix(key, bodyMark) {
			if bodies++; bodies > mostSeen {
				delete(s.Seen, key)
			}
		} else if calls++; calls > mostSeen || s.Seen[key] < oldest {
			delete(s.Seen, key)
		}
	}
}

// answer answers the workflow steps that wait for the webhook. A call that answered none may be repeated.
func (s *Set) answer(ctx context.Context, one Schedule, key string, c Call) (string, error) {
	if one.knows(key, c, s.now()) {
		return before, nil
	}
	sessions := []string{c.Session}
	if c.Session == "" {
		var err error
		if sessions, err = s.waiting(ctx); err != nil {
			return "", err
		}
	}
	answered := 0
	for _, session := range sessions {
		some, err := s.tell(ctx, session, one.ID, key, c.Body)
		if err != nil && c.Session != "" {
			return "", err
		}
		answered += some
	}
	var err error
	if answered > 0 {
		_, err = s.update(ctx, one.ID, func(one *Schedule) error { one.took(key, c, s.now()); return nil })
	}
	return fmt.Sprintf("steps that were answered: %d", answered), err
}

// waiting returns the sessions with open questions.
func (s *Set) waiting(ctx context.Context) (ids []string, err error) {
	b := s.Table.NewBoard()
	defer b.Close()
	rows, err := b.List(ctx)
	for _, r := range rows {
		if r.Open {
			ids = append(ids, r.ID)
		}
	}
	return ids, err
}

// tell answers the steps of a session that wait for a webhook, and returns their number. Other open questions
// are not answered.
func (s *Set) tell(ctx context.Context, session, hook, key string, body []byte) (answered int, err error) {
	w, err := s.Table.Watch(ctx, session)
	if err != nil {
		return 0, err
	}
	defer w.Close()
	for _, q := range w.Status().Questions() {
		if !q.IsQuestion || q.Agent != "webhook "+hook {
			continue
		}
		d := event.Decided{
			Call: q.Call.ID, Question: q.Question, Allow: true, Answer: string(body), By: "webhook " + hook, Message: "hook/" + key + "/" + q.Call.ID,
		}
		if err := w.Send(ctx, d); err != nil {
			return answered, err
		}
		answered++
	}
	return answered, nil
}

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
)

// Hook is a webhook that others call.
type Hook struct {
	Secret string   `json:"secret"`           // that calls are signed with
	Events []string `json:"events,omitempty"` // of GitHub that count, such as issues.opened or push; none: all do
}

// MaxEvent is how many bytes the body of a call may have.
const MaxEvent = 256 << 10

const (
	secretMark = "whsec_"
	mostSeen   = 5000             // calls that are remembered, and bodies
	clockSkew  = 5 * time.Minute  // by which the time of a call may differ from ours
	remembered = 24 * time.Hour   // for which a call counts once
	mostNews   = 64 << 10         // bytes of an event that a task is told
	mostID     = 256              // bytes of the name of a call
	github     = "github"         // that calls, in what is typed
	eventField = "X-Github-Event" // the header of GitHub that names the event
	before     = "it was taken before"
)

// NewSecret is one for a [Hook].
func NewSecret() string {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // it never fails
	return secretMark + base64.StdEncoding.EncodeToString(key)
}

// On reads what begins a run, as it is typed: webhook, github:EVENT,... or file:GLOB.
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
			return misused("--on: %q is no event of GitHub; use one such as push or issues.opened", e)
		}
	}
	return nil
}

// Call is a request to a webhook.
type Call struct {
	Header  http.Header
	Body    []byte
	Session string // whose step is answered, by its whole id; empty: every session that waits
}

// ErrSignature says that there is no such webhook, or that the call is not signed with its secret.
var ErrSignature = errors.New("there is no such webhook, or the signature is wrong")

// ErrFull says that too many calls wait already.
var ErrFull = errors.New("too many calls wait already; try again later")

// ErrLarge says that the body of a call is larger than MaxEvent.
var ErrLarge = errors.New("the body is too large")

// Called takes a call of the webhook of a schedule, and returns in words what comes of it. A call that
// was taken before changes nothing. The error is ErrSignature, ErrLarge, ErrFull, a [words.Misuse]
// about the body, or says that nothing can be taken now.
func (s *Set) Called(ctx context.Context, id string, c Call) (string, error) {
	one, err := s.Find(id)
	if err != nil && !errors.Is(err, ErrNone) {
		return "", err
	}
	if one.Hook == nil {
		one.Hook = &Hook{Secret: NewSecret()} // so that the answer takes as long
	}
	key, ok := one.Hook.signed(c, s.now())
	switch {
	case !ok || err != nil || one.ID == "":
		return "", ErrSignature
	case len(c.Body) > MaxEvent:
		return "", ErrLarge
	case !json.Valid(c.Body):
		return "", misused("the body is no JSON; GitHub sends JSON if its content type is set to application/json")
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

// signed reports whether a call is signed with the secret, and by what it is known again. Two forms
// are known: that of Standard Webhooks, whose calls have a time, and that of GitHub, which signs the
// body alone: the name of a delivery tells equal bodies apart, see [Schedule.knows].
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

// counts reports whether a call is one of the events that count. GitHub tries each new webhook by a
// ping.
func (h *Hook) counts(c Call) bool {
	name := c.Header.Get(eventField)
	if name == "ping" {
		return false
	}
	var body struct{ Action string }
	_ = json.Unmarshal(c.Body, &body) // it may have none
	return len(h.Events) == 0 || slices.Contains(h.Events, name) || slices.Contains(h.Events, name+"."+body.Action)
}

// saw remembers something.
func (s *Schedule) saw(key, what string) {
	if s.Seen == nil {
		s.Seen = map[string]string{}
	}
	s.Seen[key] = what
}

// bodyMark begins what a body is known again by that is signed without a time.
const bodyMark = "body "

func (c Call) body() string {
	digest := sha256.Sum256(c.Body)
	return bodyMark + hex.EncodeToString(digest[:])
}

// delivery is how GitHub names a call. It is not signed.
func (c Call) delivery() string { return c.Header.Get("X-GitHub-Delivery") }

// timeless reports whether the signature holds for ever.
func (c Call) timeless() bool { return c.Header.Get("X-Hub-Signature-256") != "" }

// knows reports whether a call was taken before. Whoever has read one that is signed without a time
// could send it again under other names of deliveries, so its body counts for as long as calls are
// remembered, and never again.
func (s *Schedule) knows(key string, c Call, now time.Time) bool {
	if _, known := s.Seen[key]; known || !c.timeless() {
		return known
	}
	first, known := s.Seen[c.body()]
	return known && first < now.Add(-remembered).Format(time.RFC3339)
}

// took remembers a call. Calls are forgotten after a while, and bodies that are signed without a time
// when there are too many of them.
func (s *Schedule) took(call string, c Call, now time.Time) {
	if _, known := s.Seen[c.body()]; c.timeless() && !known {
		s.saw(c.body(), now.Format(time.RFC3339))
	}
	if !strings.HasPrefix(call, bodyMark) {
		s.saw(call, now.Format(time.RFC3339))
	}
	keys := sortedKeys(s.Seen)
	slices.SortStableFunc(keys, func(a, b string) int { return strings.Compare(s.Seen[b], s.Seen[a]) }) // the newest first
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

// answer answers the steps of workflows that wait for the webhook. A call that answered none may come
// again.
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

// waiting are the sessions that wait for somebody.
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

// tell answers the steps of a session that wait for a webhook, and returns how many there were. The
// answer counts for nothing else that is asked.
func (s *Set) tell(ctx context.Context, session, hook, key string, body []byte) (answered int, err error) {
	w, err := s.Table.Watch(ctx, session)
	if err != nil {
		return 0, err
	}
	defer w.Close()
	for _, q := range w.Status().Questions() {
		if !q.Asks || q.Agent != "webhook "+hook {
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

package server

import (
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/internal/view/words"
)

// States of webhooks.
const (
	enabled  = "enabled"
	disabled = "disabled"
)

// Webhook is an address that gets events.
type Webhook struct {
	ID          string    `json:"id"`
	Type        string    `json:"type"`
	Name        string    `json:"name"`
	Description string    `json:"description"`
	URL         string    `json:"url"`
	Events      []string  `json:"enabled_events" jsonschema:"types of the events that it is told of; * for all"`
	State       string    `json:"state" jsonschema:"enabled or disabled"`
	Reason      string    `json:"disabled_reason" jsonschema:"why the server has disabled it"`
	Created     time.Time `json:"created_at"`
	Updated     time.Time `json:"updated_at"`
	Secret      string    `json:"signing_secret,omitempty" jsonschema:"only in the response that creates it"`
	Tenant      string    `json:"tenant,omitempty"`
	All         bool      `json:"all_tenants,omitempty" jsonschema:"it is told of all tenants, as an admin without a tenant has created it"`
}

// NewWebhook is a request to make or change a webhook; nil fields stay as they are.
type NewWebhook struct {
	ID          string    `json:"-" path:"id"`
	URL         *string   `json:"url,omitempty" jsonschema:"https address on a public host"`
	Events      *[]string `json:"enabled_events,omitempty" jsonschema:"types of events, or * for all"`
	Name        *string   `json:"name,omitempty"`
	Description *string   `json:"description,omitempty"`
	State       *string   `json:"state,omitempty" jsonschema:"enabled or disabled; what happens while it is disabled is never delivered"`
}

const (
	mostWebhooks = 32   // of a tenant
	mostAddress  = 2048 // bytes
)

// onto applies a request to a webhook.
func (in NewWebhook) onto(s *Server, w *Webhook) error {
	set := func(into *string, from *string) {
		if from != nil {
			*into = *from
		}
	}
	set(&w.URL, in.URL)
	set(&w.Name, in.Name)
	set(&w.Description, in.Description)
	if in.Events != nil && (len(*in.Events) > 0 || len(w.Events) == 0) {
		w.Events = *in.Events
	}
	if in.State != nil {
		if w.State = *in.State; w.State != enabled && w.State != disabled {
			return Wrong("state", fmt.Sprintf("it is %q", words.OneLine(w.State, 40)), "enabled or disabled")
		}
		w.Reason = ""
	}
	switch {
	case len(w.Name) > mostTitle:
		return Wrong("name", fmt.Sprintf("it has %d bytes", len(w.Name)), fmt.Sprintf("at most %d", mostTitle))
	case len(w.Description) > mostAddress:
		return Wrong("description", fmt.Sprintf("it has %d bytes", len(w.Description)), fmt.Sprintf("at most %d", mostAddress))
	case len(w.Events) == 0:
		return Wrong("enabled_events", "it is empty", "types of events, or *")
	}
	for i, kind := range w.Events {
		if !slices.Contains(s.tellable(), kind) && kind != "*" {
			return Wrong("enabled_events", fmt.Sprintf("unknown event %q", words.OneLine(kind, 80)), "* or "+strings.Join(s.tellable(), ", "))
		}
		if slices.Contains(w.Events[:i], kind) {
			return Wrong("enabled_events", kind+" is there twice", "each type once")
		}
	}
	_, err := s.receiver(w.URL)
	return err
}

// tellable returns the types of all events.
func (s *Server) tellable() []string {
	var out []string
	for _, stage := range stages() {
		out = append(out, "task."+string(stage))
	}
	return append(out, s.Tellable...)
}

// receiver returns the guard for an address of a webhook, if it is allowed. Names are looked up at each
// delivery.
func (s *Server) receiver(address string) (*netguard.Guard, error) {
	bad := Wrong("url", "not an address that can be called", "https://HOST/...")
	if len(address) > mostAddress {
		return nil, Wrong("url", fmt.Sprintf("it has %d bytes", len(address)), fmt.Sprintf("at most %d", mostAddress))
	}
	u, err := netguard.Check(address)
	if err != nil || u.Fragment != "" {
		return nil, bad
	}
	g := &netguard.Guard{MaxBytes: mostReply, Timeout: mostDelivery}
	if s.Guard != nil {
		g.Resolve, g.Local, g.Own, g.RootCAs = s.Guard.Resolve, s.Guard.Local, s.Guard.Own, s.Guard.RootCAs
	}
	if s.WebhookTo.Match(u.Hostname(), netguard.Port(u)) {
		g.Local = netguard.Anywhere()
		return g, nil
	}
	if u.Scheme != "https" {
		return nil, bad
	}
	_, numbered := netip.ParseAddr(strings.Trim(u.Hostname(), "[]"))
	if numbered == nil || netguard.Loopback(u.Hostname()) {
		if _, err := g.Addresses(s.ctx, u.Hostname(), netguard.Port(u)); err != nil {
			return nil, Wrong("url", "the host has no public address", "a public host; the operator opens others with --webhook-to")
		}
	}
	return g, nil
}

const secretOfHook = "webhook/"

// newSecret makes a secret for a webhook, and replaces an old one.
func (v *Visit) newSecret(id string) (string, error) {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	secret := secretPrefix + base64.StdEncoding.EncodeToString(key)
	return secret, v.KeepSecret(v, secretOfHook+id, secret)
}

// sweepHooks removes the secrets of webhooks that no longer exist.
func (s *Server) sweepHooks() error {
	return s.SweepSecrets(s.ctx, func(name string) bool {
		id, is := strings.CutPrefix(name, secretOfHook)
		_, known := s.book.hook(id)
		return is && !known
	})
}

// webhook returns a webhook that the visitor sees.
func (v *Visit) webhook(id string) (hook, error) {
	h, known := v.book.hook(id)
	if !known || !v.who.hears(h.Webhook) {
		return hook{}, Missing("webhook", id)
	}
	return h, nil
}

// MakeWebhook makes a webhook. Only its return value has the secret.
func (v *Visit) MakeWebhook(in NewWebhook) (Webhook, error) {
	now := moment()
	w := Webhook{
		ID: newID("whk_"), Type: "webhook_endpoint", State: enabled, Created: now, Updated: now, Tenant: v.who.tenant, All: v.who.root,
	}
	if err := in.onto(v.Server, &w); err != nil {
		return Webhook{}, err
	}
	if _, err := v.webhookBodies(&hook{Webhook: w}); err != nil {
		return Webhook{}, err
	}
	secret, err := v.newSecret(w.ID)
	if err != nil {
		return Webhook{}, err
	}
	made, err := v.record(ofWebhook, w.ID, in, func(e *Edit) error {
		n := 0
		for _, h := range v.book.hooks {
			if h.Tenant == w.Tenant {
				n++
			}
		}
		if n >= mostWebhooks {
			return Conflict("the limit of %d webhooks is reached", n)
		}
		return e.write(ofWebhook, w.ID, w)
	})
	if err == nil && made != w.ID {
		err = Conflict("this request has created webhook %s; its secret can't be shown again", made)
	}
	if err != nil {
		v.ForgetSecret(secretOfHook + w.ID)
		return Webhook{}, err
	}
	w.Secret = secret
	return w, nil
}

// Webhooks returns the webhooks that the visitor sees, oldest first.
func (v *Visit) Webhooks() []Webhook {
	v.book.mu.Lock()
	defer v.book.mu.Unlock()
	out := []Webhook{}
	for _, h := range v.book.hooks {
		if v.who.hears(h.Webhook) {
			out = append(out, h.Webhook)
		}
	}
	slices.SortStableFunc(out, Webhook.Compare)
	return out
}

// Compare orders webhooks by age.
func (w Webhook) Compare(other Webhook) int {
	return cmp.Or(w.Created.Compare(other.Created), strings.Compare(w.ID, other.ID))
}

// WebhookAt returns a webhook that the visitor sees, or the former list position of a removed one.
func (v *Visit) WebhookAt(id string) (Webhook, bool) {
	if w, err := v.Webhook(id); err == nil {
		return w, true
	}
	v.book.mu.Lock()
	defer v.book.mu.Unlock()
	w, was := v.book.removed[id]
	return w, was && v.who.hears(w)
}

// hears reports whether the visitor may see a webhook.
func (v visitor) hears(w Webhook) bool { return v.root || w.Tenant == v.tenant && !w.All }

// Webhook returns a webhook that the visitor sees.
func (v *Visit) Webhook(id string) (Webhook, error) {
	h, err := v.webhook(id)
	return h.Webhook, err
}

// ChangeWebhook changes a webhook.
func (v *Visit) ChangeWebhook(in NewWebhook) (Webhook, error) {
	var w Webhook
	err := v.alterWebhook(in.ID, func(h *hook) ([]event.Body, error) {
		if err := in.onto(v.Server, &h.Webhook); err != nil {
			return nil, err
		}
		h.Updated = moment()
		w = h.Webhook
		return v.webhookBodies(h)
	})
	return w, err
}

// RemoveWebhook removes a webhook with its secret and its dead letters.
func (v *Visit) RemoveWebhook(id string) error {
	err := v.alterWebhook(id, func(*hook) ([]event.Body, error) {
		return []event.Body{event.Recorded{Of: ofWebhook, ID: id, By: v.who.name}}, nil
	})
	if err == nil {
		v.ForgetSecret(secretOfHook + id)
	}
	return err
}

// RenewWebhook makes and returns a new secret, which is valid from now on.
func (v *Visit) RenewWebhook(id string) (string, error) {
	v.renewing.Lock()
	defer v.renewing.Unlock()
	if _, err := v.webhook(id); err != nil {
		return "", err
	}
	if v.repeated() {
		return "", Conflict("this request was sent before; its secret can't be shown again")
	}
	_, err := v.record(ofWebhook, id, "renew", func(e *Edit) error {
		h := v.book.hooks[id]
		if h == nil {
			return Missing("webhook", id)
		}
		w := h.Webhook
		w.Updated = moment()
		return e.write(ofWebhook, id, w)
	})
	if err != nil {
		return "", err
	}
	return v.newSecret(id)
}

// webhookBodies returns the events that store a webhook. It fails if the book would redact the address.
func (v *Visit) webhookBodies(h *hook) ([]event.Body, error) {
	b, err := recorded(ofWebhook, h.ID, v.who.name, h.Webhook)
	if err != nil {
		return nil, err
	}
	var kept Webhook
	if r, is := v.book.redact(b).(event.Recorded); !is || json.Unmarshal(r.Value, &kept) != nil || kept.URL != h.URL {
		return nil, Wrong("url", "it contains a likely secret, which would be stored", "an address without it; deliveries are signed")
	}
	return []event.Body{b}, nil
}

// alterWebhook writes the events that f returns for a webhook that the visitor sees.
func (v *Visit) alterWebhook(id string, f func(*hook) ([]event.Body, error)) error {
	if _, err := v.webhook(id); err != nil {
		return err
	}
	return v.book.change(v, func() ([]event.Body, error) {
		h := v.book.hooks[id]
		if h == nil {
			return nil, Missing("webhook", id)
		}
		c := *h
		return f(&c)
	})
}

// The endpoints.

// webhookList lists all webhooks that a visitor sees.
type webhookList struct {
	Webhooks []Webhook `json:"webhooks"`
}

// webhookSecret is the new secret of a webhook.
type webhookSecret struct {
	Secret string `json:"signing_secret"`
}

// deadLetterList lists dead letters.
type deadLetterList struct {
	Letters []deadLetter `json:"dead_letters"`
}

// oneLetter names a dead letter.
type oneLetter struct {
	ID     string `json:"-" path:"id"`
	Letter string `json:"-" path:"letter"`
}

// webhookSpec is NewWebhook without a path.
type webhookSpec struct {
	URL         *string   `json:"url" jsonschema:"https address on a public host"`
	Events      *[]string `json:"enabled_events" jsonschema:"types of events, or * for all"`
	Name        *string   `json:"name,omitempty"`
	Description *string   `json:"description,omitempty"`
}

func (c *call) makeWebhook(in webhookSpec) (Webhook, error) {
	return c.MakeWebhook(NewWebhook{URL: in.URL, Events: in.Events, Name: in.Name, Description: in.Description})
}

func (c *call) webhooks(nothing) (webhookList, error) { return webhookList{c.Webhooks()}, nil }

func (c *call) oneWebhook(in one) (Webhook, error) { return c.Webhook(in.ID) }

func (c *call) changeWebhook(in NewWebhook) (Webhook, error) { return c.ChangeWebhook(in) }

func (c *call) removeWebhook(in one) (nothing, error) { return nothing{}, c.RemoveWebhook(in.ID) }

func (c *call) renewWebhook(in one) (webhookSecret, error) {
	secret, err := c.RenewWebhook(in.ID)
	return webhookSecret{secret}, err
}

func (c *call) deadLetters(in one) (deadLetterList, error) {
	h, err := c.webhook(in.ID)
	if err != nil {
		return deadLetterList{}, err
	}
	if h.letters == nil {
		h.letters = []deadLetter{}
	}
	return deadLetterList{h.letters}, nil
}

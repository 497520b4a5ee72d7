package config

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Notify configures the notifications of a person who is away. Only the person's own settings have it, so a
// folder can't choose who receives them.
type Notify struct {
	// bell and desktop: the interactive front end uses the terminal, others notify-send or osascript.
	// Not set: both, in the interactive front end only
	To       []string `toml:"to"`
	URL      string   `toml:"url"`            // gets each notification as JSON, by POST; empty: none
	Ntfy     string   `toml:"ntfy"`           // topic of an ntfy server, such as "https://ntfy.sh/my-topic"; empty: none
	TokenEnv string   `toml:"ntfy_token_env"` // environment variable with the access token for ntfy; empty: it needs none
	// what to call for: waiting (a question), failed, budget (a limit of cost, tokens, turns or time) and done; not set: all
	On []string `toml:"on"`
	// Where no one can tell whether you look: the shortest run whose end is worth a call, and how long a question
	// stays open before it is; 0 means 10 seconds
	After       time.Duration `toml:"after"`
	Quiet       string        `toml:"quiet"`        // hours without calls, local time, such as "22:00-07:00"; empty: none
	QuietExcept []string      `toml:"quiet_except"` // what calls in quiet hours too, as in on
	Link        string        `toml:"link"`         // address of the web page, for links to sessions; empty: none
}

// Places of Notify.To.
const (
	NotifyBell    = "bell"
	NotifyDesktop = "desktop"
)

// Values of Notify.On.
const (
	NotifyWaiting = "waiting"
	NotifyFailed  = "failed"
	NotifyBudget  = "budget"
	NotifyDone    = "done"
)

// Check returns errors for invalid values.
func (n Notify) Check() error {
	_, _, quiet := n.quiet()
	errs := []error{quiet, notNegative("after", n.After), httpAddress("url", n.URL), httpAddress("ntfy", n.Ntfy), httpAddress("link", n.Link)}
	for _, place := range n.To {
		errs = append(errs, oneOf("to", cmp.Or(place, `""`), NotifyBell, NotifyDesktop))
	}
	for key, list := range map[string][]string{"on": n.On, "quiet_except": n.QuietExcept} {
		for _, what := range list {
			errs = append(errs, oneOf(key, cmp.Or(what, `""`), NotifyWaiting, NotifyFailed, NotifyBudget, NotifyDone))
		}
	}
	if strings.ContainsAny(n.TokenEnv, "= \x00") {
		errs = append(errs, fmt.Errorf("ntfy_token_env: %q is not the name of a variable", n.TokenEnv))
	}
	return errors.Join(errs...)
}

// httpAddress returns an error for an invalid address of a web server. It does not repeat the address, which
// may contain a secret.
func httpAddress(key, address string) error {
	if address == "" {
		return nil
	}
	if u, err := url.Parse(address); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return fmt.Errorf("%s: not an address such as \"https://example.com/path\"", key)
	}
	return nil
}

// Wants reports whether an event is to be notified at a time.
func (n Notify) Wants(what string, at time.Time) bool {
	return (n.On == nil || slices.Contains(n.On, what)) && (!n.Sleeps(at) || slices.Contains(n.QuietExcept, what))
}

// Sleeps reports whether a time is in the quiet hours, in its time zone.
func (n Notify) Sleeps(at time.Time) bool {
	from, to, err := n.quiet()
	now := at.Hour()*60 + at.Minute()
	switch {
	case n.Quiet == "" || err != nil:
		return false
	case from < to:
		return from <= now && now < to
	}
	return from <= now || now < to // over midnight
}

// quiet returns the begin and the end of the quiet hours, in minutes of the day.
func (n Notify) quiet() (from, to int, err error) {
	if n.Quiet == "" {
		return 0, 0, nil
	}
	begin, end, _ := strings.Cut(n.Quiet, "-")
	b, bad := time.Parse("15:04", strings.TrimSpace(begin))
	e, worse := time.Parse("15:04", strings.TrimSpace(end))
	if bad != nil || worse != nil || b.Equal(e) {
		return 0, 0, fmt.Errorf("quiet: %q is not a span such as \"22:00-07:00\"", n.Quiet)
	}
	return b.Hour()*60 + b.Minute(), e.Hour()*60 + e.Minute(), nil
}

// Patience returns After, or its default.
func (n Notify) Patience() time.Duration { return cmp.Or(n.After, 10*time.Second) }

// AtTerminal returns Notify with the defaults of an interactive front end.
func (n Notify) AtTerminal() Notify {
	if n.To == nil {
		n.To = []string{NotifyBell, NotifyDesktop}
	}
	return n
}

package running

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/tool"
)

// mostTold bounds the text that Tell sends, in bytes.
const mostTold = 4000

// mostCall bounds the delivery of a notification.
const mostCall = 5 * time.Second

// Message is a notification in the form for a webhook.
type Message struct {
	Event   string    `json:"event"` // waiting, failed, budget, done, message or test
	Text    string    `json:"text"`
	Title   string    `json:"title"` // of the session, or the name of its folder
	Session string    `json:"session,omitempty"`
	Root    string    `json:"root,omitempty"`
	Link    string    `json:"link,omitempty"` // to the session on the web page
	Time    time.Time `json:"time"`
}

// place is a destination of notifications.
type place struct {
	name string
	send func(ctx context.Context, m Message) error
}

// Names of remote places.
const (
	placeURL  = "url"
	placeNtfy = "ntfy"
)

// places returns those of the settings.
func (n *Notifier) places() (out []place) {
	set := n.Config.Notify
	switch {
	case n.at().Terminal != nil && len(set.To) > 0:
		out = append(out, place{"terminal", func(_ context.Context, m Message) error {
			_, err := io.WriteString(n.at().Terminal, n.Ring(m.Title+": "+m.Text))
			return err
		}})
	case slices.Contains(set.To, config.NotifyDesktop):
		out = append(out, place{config.NotifyDesktop, desktop})
	}
	if set.URL != "" {
		out = append(out, place{placeURL, func(ctx context.Context, m Message) error {
			raw, err := json.Marshal(m)
			if err != nil {
				return err
			}
			return post(ctx, set.URL, raw, http.Header{"Content-Type": {"application/json"}})
		}})
	}
	if set.Ntfy != "" {
		out = append(out, place{placeNtfy, n.ntfy})
	}
	return out
}

// Tried is the outcome of a notification at one place.
type Tried struct {
	Place string // terminal, desktop, url or ntfy
	Err   error  // nil if it was accepted
}

// Try sends a notification to each place of the settings, at any hour, even if the person is looking.
func (n *Notifier) Try(ctx context.Context) (out []Tried) {
	m := n.message(inspan.Status{}, "test", "a notification looks like this")
	m.Title = "test"
	for _, p := range n.places() {
		ctx, cancel := context.WithTimeout(ctx, mostCall)
		out = append(out, Tried{p.name, p.send(ctx, m)})
		cancel()
	}
	return out
}

// Tell sends a text to the remote places of the settings: its address and its topic. It fails if there is
// neither.
func (n *Notifier) Tell(ctx context.Context, s inspan.Status, said string) error {
	m, told := n.message(s, "message", ""), 0
	m.Text = text.Cut(text.Clean(said), mostTold)
	var errs []error
	for _, p := range n.places() {
		if p.name != placeURL && p.name != placeNtfy {
			continue
		}
		told++
		if err := p.send(ctx, m); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", p.name, err))
		}
	}
	if told == 0 {
		errs = append(errs, errors.New("no recipient is set; set url or ntfy under [notify] in the settings"))
	}
	return errors.Join(errs...)
}

// Ring returns the escape sequence that makes the person's terminal notify them: a bell, a notification, or both,
// as the settings say.
func (n *Notifier) Ring(what string) (out string) {
	what = words.OneLine(what, mostLine)
	to := n.Config.Notify.AtTerminal().To
	if slices.Contains(to, config.NotifyDesktop) {
		out = "\x1b]9;inspan: " + what + "\x1b\\" // the form of iTerm2, which others adopted
		if os.Getenv("VTE_VERSION") != "" || strings.HasPrefix(os.Getenv("TERM"), "rxvt") {
			out = "\x1b]777;notify;inspan;" + what + "\x1b\\" // these two know no other form
		}
	}
	if slices.Contains(to, config.NotifyBell) {
		out += "\a"
	}
	return out
}

// desktop lets a program of the system show a notification.
func desktop(ctx context.Context, m Message) error {
	unmarked := strings.NewReplacer("&", "+", "<", "‹", ">", "›", `\`, "/").Replace(m.Text) // which some read as markup
	args := []string{"notify-send", "--app-name=inspan", "--", "inspan: " + m.Title, unmarked}
	if runtime.GOOS == "darwin" {
		const script = "on run argv\ndisplay notification (item 2 of argv) with title (item 1 of argv)\nend run"
		args = []string{"osascript", "-e", script, "inspan: " + m.Title, m.Text}
	}
	_, complaints, code, err := sandbox.CaptureIn(ctx, tool.Command{Args: args, Dir: "/", Env: os.Environ()})
	if err == nil && code != 0 {
		err = fmt.Errorf("%s ended with %d: %s", args[0], code, words.OneLine(complaints, mostLine))
	}
	return err
}

// ntfy publishes a notification in a topic, see https://docs.ntfy.sh/publish/.
func (n *Notifier) ntfy(ctx context.Context, m Message) error {
	priority := "high"
	if slices.Contains([]string{config.NotifyDone, "test", "message"}, m.Event) {
		priority = "default"
	}
	head := http.Header{
		"Content-Type": {"text/plain; charset=utf-8"}, "Title": {mime.BEncoding.Encode("utf-8", "inspan: "+m.Title)}, "Priority": {priority},
	}
	if m.Link != "" {
		head.Set("Click", m.Link)
	}
	if name := n.Config.Notify.TokenEnv; name != "" {
		token := os.Getenv(name)
		if token == "" {
			return fmt.Errorf("the environment variable %s is not set", name)
		}
		head.Set("Authorization", "Bearer "+token)
	}
	return post(ctx, n.Config.Notify.Ntfy, []byte(m.Text), head)
}

// post sends a notification to an address named by the person, which may be in their own network. The error
// never contains the address, which may be a secret.
func post(ctx context.Context, address string, body []byte, head http.Header) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return errors.New("the address can't be read")
	}
	req.Header = head
	guard := netguard.Guard{Local: netguard.Anywhere(), MaxBytes: 64 << 10, Timeout: mostCall}
	resp, err := guard.Unredirected().Do(req)
	if err != nil {
		if bare, ok := errors.AsType[*url.Error](err); ok {
			err = bare.Err
		}
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 == 2 {
		return nil
	}
	said, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10)) // only for the error
	return fmt.Errorf("status %d: %s", resp.StatusCode, cmp.Or(text.Line(text.Cut(words.Hidden(string(said)), mostLine)), "no reason given"))
}

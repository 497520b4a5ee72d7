package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/view/words"
)

// Polling intervals while the person enters the code. The default is 5 seconds (RFC 8628, section 3.2).
const (
	usualPause = 5 * time.Second
	maxPause   = time.Minute
)

// byDevice lets the person enter a code on any device (RFC 8628).
func (t attempt) byDevice(ctx context.Context) (kept, error) {
	if t.s.Device == "" {
		return kept{}, errors.New("the authorization server does not support logins with a code")
	}
	who, err := t.c.identity(ctx, t.w, t.a, t.s, nowhere(t.exact()), t.scopes, Device)
	if err != nil {
		return kept{}, err
	}
	form := url.Values{}
	if len(t.scopes) > 0 {
		form.Set("scope", strings.Join(t.scopes, " "))
	}
	if t.s.audience != "" {
		form.Set("resource", t.s.audience)
	}
	f, err := t.w.form(ctx, t.s.Device, who, nil, form)
	if err != nil {
		return kept{}, err
	}
	d, err := readDevice(f)
	if err != nil {
		return kept{}, err
	}
	if err := t.tellCode(d); err != nil {
		return kept{}, err
	}
	return t.poll(ctx, who, d)
}

// grant is a server's response with a device code.
type grant struct {
	code, shown, page, whole string
	pause, life              time.Duration
}

func readDevice(f *fields) (grant, error) {
	d := grant{
		code: f.text("device_code"), shown: f.text("user_code"),
		page: f.text("verification_uri"), whole: f.text("verification_uri_complete"),
		pause: f.seconds("interval"), life: f.seconds("expires_in"),
	}
	if d.page == "" {
		d.page = f.text("verification_url") // as some servers call it
	}
	if d.pause == 0 {
		d.pause = usualPause
	}
	d.pause = min(max(d.pause, time.Second), maxPause)
	switch {
	case f.err != nil:
		return grant{}, f.err
	case d.code == "" || d.shown == "" || d.page == "":
		return grant{}, errors.New("the server gave no code to enter")
	}
	return d, nil
}

// tellCode shows the code, and the page on which to enter it.
func (t attempt) tellCode(d grant) error {
	page, err := address(d.page, t.w.local)
	if err != nil {
		return err
	}
	t.p.Tell(fmt.Sprintf("To log in, open %s and enter the code %s", page, words.OneLine(d.shown, 60)))
	if t.p.Open == nil {
		return nil
	}
	if whole, err := address(d.whole, t.w.local); err == nil {
		page = whole
	}
	_ = t.p.Open(page.String()) // the person was told
	return nil
}

// poll polls until the person has entered the code. It survives short network failures.
func (t attempt) poll(ctx context.Context, who registration, d grant) (kept, error) {
	ends := time.Now().Add(d.life)
	for pause := d.pause; ; {
		if err := keep.Sleep(ctx, pause); err != nil {
			return kept{}, err
		}
		if d.life > 0 && time.Now().After(ends) {
			return kept{}, errors.New("the code was not entered in time")
		}
		k, err := t.trade(ctx, who, url.Values{"grant_type": {deviceGrant}, "device_code": {d.code}})
		switch {
		case refused(err, "authorization_pending"):
		case refused(err, "slow_down"):
			pause += 5 * time.Second
		case passing(err):
			pause = min(2*pause, maxPause)
		default:
			return k, err
		}
	}
}

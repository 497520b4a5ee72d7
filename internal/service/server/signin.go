package server

import (
	"crypto/rand"
	"strings"
	"sync"
	"time"
)

// A browser signs in with a code: an address with a token in it would stand in histories. A code is a
// bearer token within a minute, for one request, which can only be to sign in. It reaches the browser by
// a private file ([Web.Show]).

const (
	codeMark = "inspan-code-"
	codeTime = time.Minute
	pageTime = 30 * 24 * time.Hour // that a signed-in page stays so
)

// codes are those that nobody has used. The zero value is ready.
type codes struct {
	mu  sync.Mutex
	all map[string]time.Time // until when they can be used, by digest
}

// byCode is the principal of whoever sends a code. It may do nothing but sign in.
const (
	byCode     = "owner's code"
	signInPath = "/api/v1/sign-in"
)

// Code makes a code by which a browser signs in once, with the rights of the owner.
func (s *Server) Code() string { return s.codes.make() }

func (c *codes) make() string {
	text := codeMark + strings.ToLower(rand.Text())
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = map[string]time.Time{}
	}
	for digest, until := range c.all {
		if time.Now().After(until) {
			delete(c.all, digest)
		}
	}
	c.all[digestOf(text)] = time.Now().Add(codeTime)
	return text
}

// use tells whether it is a code, once.
func (c *codes) use(text string) bool {
	if !strings.HasPrefix(text, codeMark) {
		return false
	}
	digest := digestOf(text)
	c.mu.Lock()
	defer c.mu.Unlock()
	until := c.all[digest]
	delete(c.all, digest)
	return time.Now().Before(until)
}

// madeCode is a code for a browser.
type madeCode struct {
	Code    string    `json:"code" jsonschema:"a bearer token for one request, of POST /api/v1/sign-in"`
	Expires time.Time `json:"expires"`
}

func (c *call) makeCode(nothing) (madeCode, error) {
	if c.principal != owner {
		return madeCode{}, Forbidden("only the server's owner can sign browsers in by a code; others paste their token")
	}
	return madeCode{c.codes.make(), time.Now().Add(codeTime)}, nil
}

// signIn makes an identity for a browser. Those whose time is over go.
func (c *call) signIn(nothing) (shownIdentity, error) {
	if c.principal != owner && c.principal != byCode {
		return shownIdentity{}, Forbidden("a browser signs in with a code of 'inspan web', or with the owner's token")
	}
	id := strings.ToLower(rand.Text())[:12]
	token, digest := newToken(id)
	i := Identity{ID: id, Name: browserName + id, Role: Admin, Expires: time.Now().Add(pageTime).UTC(), Digest: digest}
	if _, err := c.record(ofIdentity, id, i.shown(), func(e *Edit) error {
		err := e.write(ofIdentity, id, i)
		for _, old := range c.book.identities {
			if strings.HasPrefix(old.Name, browserName) && !old.Expires.IsZero() && time.Now().After(old.Expires) {
				e.Remove(ofIdentity, old.ID)
			}
		}
		return err
	}); err != nil {
		return shownIdentity{}, err
	}
	out := i.shown()
	out.Token = token
	return out, nil
}

const browserName = "browser-"

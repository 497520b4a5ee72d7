package server

import (
	"crypto/rand"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"
)

// A browser signs in with a code, because an address with a token would be stored in histories. A code is a bearer token
// that is valid for a minute and for one request, which must be to sign in. It reaches the browser in a private
// file ([Web.Show]). It is valid only with the cookie that a browser got when it fetched the page, so a program
// that has read the code, and is not a browser at this page, can't use it.

const (
	codeMark = "inspan-code-"
	codeTime = time.Minute
	pageTime = 30 * 24 * time.Hour // how long a page stays signed in
)

// codes are the unused codes. The zero value is ready.
type codes struct {
	mu     sync.Mutex
	all    map[string]time.Time // expiry by digest
	visits map[string]time.Time // expiry of the cookies of browsers that have fetched the page
}

// visitCookie is the name of such a cookie, and mostVisits the largest number of valid ones.
const (
	visitCookie = "inspan-visit"
	mostVisits  = 1000
)

// byCode is the principal of a request with a code. It may only sign in.
const (
	byCode     = "owner's code"
	signInPath = "/api/v1/sign-in"
)

// Code makes a code for a browser to sign in once, with the rights of the owner.
func (s *Server) Code() string { return s.codes.newCode() }

func (c *codes) newCode() string {
	text := codeMark + strings.ToLower(rand.Text())
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = noted(c.all, text)
	return text
}

// noted adds a text to those that are valid for a while, and drops expired ones.
func noted(all map[string]time.Time, text string) map[string]time.Time {
	if all == nil {
		all = map[string]time.Time{}
	}
	maps.DeleteFunc(all, func(_ string, until time.Time) bool { return time.Now().After(until) })
	all[digestOf(text)] = time.Now().Add(codeTime)
	return all
}

// use reports whether text is a valid code, and uses it up.
func (c *codes) use(text string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.HasPrefix(text, codeMark) && used(c.all, text)
}

func used(all map[string]time.Time, text string) bool {
	digest := digestOf(text)
	until := all[digest]
	delete(all, digest)
	return time.Now().Before(until)
}

// visit gives a browser that fetches the page its cookie.
func (c *codes) visit(w http.ResponseWriter) {
	text := rand.Text()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.visits = noted(c.visits, text); len(c.visits) > mostVisits {
		clear(c.visits) // a flood: the next one is valid
	}
	http.SetCookie(w, &http.Cookie{
		Name: visitCookie, Value: text, Path: signInPath, MaxAge: int(codeTime.Seconds()), HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
}

// visited reports whether a request comes from such a browser, once.
func (c *codes) visited(r *http.Request) bool {
	cookie, err := r.Cookie(visitCookie)
	c.mu.Lock()
	defer c.mu.Unlock()
	return err == nil && used(c.visits, cookie.Value)
}

// signInCode is a code for a browser.
type signInCode struct {
	Code    string    `json:"code" jsonschema:"a bearer token for one request, of POST /api/v1/sign-in"`
	Expires time.Time `json:"expires"`
}

func (c *call) makeCode(nothing) (signInCode, error) {
	if c.principal != owner {
		return signInCode{}, Forbidden("only the server's owner can sign browsers in by a code; others paste their token")
	}
	return signInCode{c.codes.newCode(), time.Now().Add(codeTime)}, nil
}

// signIn makes an identity for a browser, and removes expired ones.
func (c *call) signIn(nothing) (identityInfo, error) {
	if c.principal != owner && c.principal != byCode {
		return identityInfo{}, Forbidden("a browser signs in with a code of 'inspan web', or with the owner's token")
	}
	if c.principal == byCode && !c.codes.visited(c.r) {
		return identityInfo{}, Forbidden("a code signs in only the browser that has just fetched the page, if it takes cookies: run 'inspan web' again, or paste a token")
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
		return identityInfo{}, err
	}
	out := i.shown()
	out.Token = token
	return out, nil
}

const browserName = "browser-"

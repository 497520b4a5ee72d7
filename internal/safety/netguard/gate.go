package netguard

// The gate stands before those servers of ours that others can reach.
//
// A server on this machine is reached by every program on it, and by every web page
// that its user has open: a page can send requests to 127.0.0.1, and by a name that
// changes its address it can even read the answers. So each request must prove where
// it is from ([Gate]), the token is a secret of 256 bits that lies in a file only its
// owner reads ([Token]), and nobody listens to other machines by accident
// ([Gate.Listen]). What is asked of a request, in this order:
//
//	Host             a loopback name or address with our port, or one of Hosts    403
//	Origin           none, our own, or one of Origins                             403
//	Sec-Fetch-Site   none of another site, but for links to paths of Open         403
//	Authorization    "Bearer" and a token that Who knows, but for Open and Signed 401
//	X-Api-Key        the token alone, in place of that
//	Content-Type     application/json, wherever there is a body or may be one,    415
//	                 or multipart/form-data for paths of Forms
//	size of a body   at most MaxBody                                              413
//
// Where a request is from is asked before its token, so that a page can't try tokens.

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"mime"
	"net"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// PrincipalHeader is the header in which a handler behind the gate finds who sends a
// request. What the sender wrote into it is thrown away.
const PrincipalHeader = "Inspan-Principal"

// Gate says who may talk to a server. The zero value wants no token and takes
// requests that were sent to a loopback address by its name. Do not change it once it
// is in use; it is safe for concurrent use if Who is.
type Gate struct {
	// Who tells whose token it is. It should take the same time for every wrong one;
	// see [One]. Nil: no token is needed, which is for loopback addresses only, and
	// lets every program of this machine in.
	Who func(token string) (principal string, ok bool)
	// Hosts are names that a request may be sent to, as its Host header has them,
	// "name" or "name:port": those of a proxy before the server, such as a tunnel.
	Hosts []string
	// Origins are those of web pages that may send requests, "https://example.org".
	// Nothing is done so that they can read the answers.
	Origins []string
	// Open are paths that anybody may GET: no token is asked for there. The rest is. A browser may come
	// to them from a link on a page of another site.
	Open []string
	// Signed are paths that anybody may POST to: no token is asked for there, as the handler knows the
	// sender by a signature. A part of a path that is * stands for any name.
	Signed []string
	// Trusted are paths that whoever reaches the server may send requests to, without a token and under any
	// name of a host, as something in front of it has looked who that is. They come from the principal As.
	Trusted []string
	As      string
	// Forms are paths whose requests may carry files, as multipart/form-data. In them, as in Open, a part
	// of a path that is * stands for any name.
	Forms []string
	// Refuse writes the answer to a request that is not let through, with a status as in
	// the package's table. Headers are set. Nil: {"error": "why"}.
	Refuse func(w http.ResponseWriter, status int, why string)
	// MaxBody bounds the body of a request in bytes; 0 means 16 MiB.
	MaxBody int64
	// BodyTime is how long the body of a request may take to come; 0 means a minute.
	BodyTime time.Duration
}

const (
	maxBody  = 16 << 20
	bodyTime = time.Minute
)

// One is a Who for one principal with one token. An empty token lets nobody in.
func One(principal, token string) func(string) (string, bool) {
	want := sha256.Sum256([]byte(token))
	return func(got string) (string, bool) {
		sum := sha256.Sum256([]byte(got))
		same := subtle.ConstantTimeCompare(sum[:], want[:]) == 1
		return principal, same && token != ""
	}
}

// Principal is who sent a request that came through the gate; empty if the gate wants
// no token.
func Principal(h http.Header) string { return h.Get(PrincipalHeader) }

// Wrap lets only those requests through to next that pass. The others are answered
// with a status as in the package's table and what Refuse writes. Next sees the
// principal in place of the token.
func (g *Gate) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status, why := g.from(r); status != 0 {
			g.refuse(w, status, why)
			return
		}
		principal, ok := g.who(r)
		if !ok {
			w.Header().Set("WWW-Authenticate", "Bearer")
			g.refuse(w, http.StatusUnauthorized, "a valid bearer token is needed in the Authorization header; yours is missing, unknown, removed or expired")
			return
		}
		if status, why := g.content(r); status != 0 {
			g.refuse(w, status, why)
			return
		}
		next.ServeHTTP(w, g.passed(w, r, principal))
	})
}

// passed is the request as the handler gets it.
func (g *Gate) passed(w http.ResponseWriter, r *http.Request, principal string) *http.Request {
	in := *r
	in.Header = r.Header.Clone()
	in.Header.Del("Authorization")
	in.Header.Del("X-Api-Key")
	in.Header.Del(PrincipalHeader)
	if principal != "" {
		in.Header.Set(PrincipalHeader, principal)
	}
	if bodied(r) && r.Body != nil {
		// The server takes the deadline off when the body has ended: the answer may take
		// longer. What is no connection has none, and nobody to be slow on it.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(cmp.Or(g.BodyTime, bodyTime)))
		in.Body = http.MaxBytesReader(w, r.Body, g.limit())
	}
	return &in
}

func (g *Gate) limit() int64 { return cmp.Or(g.MaxBody, maxBody) }

// from reports what is wrong with where a request comes from; 0: nothing.
func (g *Gate) from(r *http.Request) (status int, why string) {
	if !g.host(r) && !matches(g.Trusted, r.URL.Path) {
		return http.StatusForbidden, "the Host header does not name this server"
	}
	origins := r.Header.Values("Origin")
	if len(origins) > 1 {
		return http.StatusForbidden, "there is more than one Origin header"
	}
	invited := len(origins) == 1 && slices.ContainsFunc(g.Origins, func(o string) bool { return strings.EqualFold(o, origins[0]) })
	if len(origins) == 1 && !invited && !strings.EqualFold(origins[0], own(r)) {
		return http.StatusForbidden, "web pages of this origin may not send requests here"
	}
	for _, site := range r.Header.Values("Sec-Fetch-Site") {
		if site != "same-origin" && site != "none" && !invited && !g.linked(r) {
			return http.StatusForbidden, "web pages of other sites may not send requests here"
		}
	}
	return 0, ""
}

// linked reports whether a browser goes to a path that is open, as it does for a link: then the page
// that has the link learns nothing of the answer.
func (g *Gate) linked(r *http.Request) bool {
	return g.open(r) && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}

func (g *Gate) open(r *http.Request) bool {
	return r.Method == http.MethodGet && matches(g.Open, r.URL.Path)
}

// matches reports whether a path is one of some patterns.
func matches(patterns []string, at string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		is, err := path.Match(pattern, at)
		return is && err == nil
	})
}

// own is the origin of pages that this server itself sends; its host has been checked.
func own(r *http.Request) string {
	if r.TLS != nil {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// host reports whether a request was sent to a name of ours.
func (g *Gate) host(r *http.Request) bool {
	if slices.ContainsFunc(g.Hosts, func(h string) bool { return strings.EqualFold(h, r.Host) }) {
		return true
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok {
		return false
	}
	names, port := []string{local.IP.String()}, strconv.Itoa(local.Port)
	if local.IP.IsLoopback() {
		names = append(names, "localhost", "127.0.0.1", "::1")
	}
	return slices.ContainsFunc(names, func(name string) bool {
		whole := net.JoinHostPort(name, port)
		return strings.EqualFold(r.Host, whole) || port == usual(r) && strings.EqualFold(r.Host, strings.TrimSuffix(whole, ":"+port))
	})
}

// usual is the port that need not be named.
func usual(r *http.Request) string {
	if r.TLS != nil {
		return "443"
	}
	return "80"
}

// who tells who sends a request.
func (g *Gate) who(r *http.Request) (principal string, ok bool) {
	if g.Who == nil || g.open(r) || r.Method == http.MethodPost && matches(g.Signed, r.URL.Path) {
		return "", true
	}
	if matches(g.Trusted, r.URL.Path) {
		return g.As, true
	}
	given, keys := r.Header.Values("Authorization"), r.Header.Values("X-Api-Key")
	if len(given)+len(keys) != 1 {
		return "", false
	}
	if len(keys) == 1 {
		return g.Who(keys[0])
	}
	scheme, token, _ := strings.Cut(given[0], " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return "", false
	}
	return g.Who(token)
}

// bodied reports whether a request has a body, or could have one.
func bodied(r *http.Request) bool {
	return r.ContentLength != 0 || slices.Contains([]string{http.MethodPost, http.MethodPut, http.MethodPatch}, r.Method)
}

// content reports what is wrong with what a request brings; 0: nothing.
func (g *Gate) content(r *http.Request) (status int, why string) {
	if !bodied(r) {
		return 0, ""
	}
	types := r.Header.Values("Content-Type")
	form := matches(g.Forms, r.URL.Path)
	switch {
	case len(types) == 0 && r.ContentLength == 0: // it says that there is no body
	case len(types) == 1 && (isJSON(types[0]) || form && isForm(types[0])):
	case form:
		return http.StatusUnsupportedMediaType, "Content-Type must be application/json or multipart/form-data"
	default:
		return http.StatusUnsupportedMediaType, "Content-Type must be application/json"
	}
	if r.ContentLength > g.limit() {
		return http.StatusRequestEntityTooLarge, "the body is larger than " + strconv.FormatInt(g.limit(), 10) + " bytes"
	}
	return 0, ""
}

func isJSON(contentType string) bool {
	media, params, err := mime.ParseMediaType(contentType)
	charset, named := params["charset"]
	return err == nil && media == "application/json" && (!named || strings.EqualFold(charset, "utf-8"))
}

func isForm(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && media == "multipart/form-data"
}

func (g *Gate) refuse(w http.ResponseWriter, status int, why string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if g.Refuse != nil {
		g.Refuse(w, status, why)
		return
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": why}) // whoever has gone need not know
}

package netguard

// The gate protects servers of inspan that other programs can reach.
//
// A server on this machine can be reached by every program on it, and by every web page that its user has open: a
// page can send requests to 127.0.0.1, and with a host name whose address changes it can even read the responses.
// So each request must prove its origin ([Gate]), the token is a 256-bit secret in a file that only its owner can
// read ([Token]), and no server listens to other machines by accident ([Gate.Listen]). A request is checked in this
// order:
//
//	Host             a loopback name or address with our port, or one of Hosts    403
//	Origin           none, our own, or one of Origins                             403
//	Sec-Fetch-Site   none of another site, except links to paths of Open          403
//	Authorization    "Bearer" and a token that Who knows, except Open and Signed  401
//	X-Api-Key        the token alone, instead of that
//	Content-Type     application/json, if there is or may be a body,              415
//	                 or multipart/form-data for paths of Forms
//	size of a body   at most MaxBody                                              413
//
// The origin of a request is checked before its token, so that a page can't try tokens.

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

// PrincipalHeader is the header with the sender of a request, for a handler behind the gate. A value from the
// sender is discarded.
const PrincipalHeader = "Inspan-Principal"

// Gate defines who may use a server. The zero value needs no token and accepts requests to loopback names and
// addresses. Do not change it once it is in use; it is safe for concurrent use if Who is.
type Gate struct {
	// Who returns the owner of a token. It should take the same time for every wrong one; see [One]. Nil means no
	// token is needed, which is for loopback addresses only, and admits every program on this machine.
	Who func(token string) (principal string, ok bool)
	// Hosts are further accepted values of the Host header, "name" or "name:port": those of a proxy before the
	// server, such as a tunnel.
	Hosts []string
	// Origins are the origins of web pages that may send requests, "https://example.org". They get no headers
	// that allow them to read the responses.
	Origins []string
	// Open are paths for GET requests without a token. A browser may follow a link from another site to them.
	Open []string
	// Signed are paths for POST requests without a token, because the handler verifies a signature. A * as a part
	// of a path matches any name.
	Signed []string
	// Trusted are paths that accept requests without a token and with any host name, because something in front of
	// the server has authenticated the sender. The principal is As.
	Trusted []string
	As      string
	// Forms are paths whose requests may contain files, as multipart/form-data. As in Open, a * as a part of a
	// path matches any name.
	Forms []string
	// Refuse writes the response to a rejected request, with a status from the package's table. Headers are
	// set. Nil: {"error": "why"}.
	Refuse func(w http.ResponseWriter, r *http.Request, status int, why string)
	// MaxBody bounds the body of a request in bytes; 0 means 16 MiB.
	MaxBody int64
	// BodyTime bounds the time for receiving the body of a request; 0 means a minute.
	BodyTime time.Duration
}

const (
	maxBody  = 16 << 20
	bodyTime = time.Minute
)

// One is a Who for one principal with one token. An empty token admits no request.
func One(principal, token string) func(string) (string, bool) {
	want := sha256.Sum256([]byte(token))
	return func(got string) (string, bool) {
		sum := sha256.Sum256([]byte(got))
		same := subtle.ConstantTimeCompare(sum[:], want[:]) == 1
		return principal, same && token != ""
	}
}

// Principal returns the sender of a request that passed the gate; empty if the gate needs no token.
func Principal(h http.Header) string { return h.Get(PrincipalHeader) }

// Wrap passes only accepted requests to next. Others get a status from the package's table and the response of
// Refuse. Next sees the principal instead of the token.
func (g *Gate) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status, why := g.checkOrigin(r); status != 0 {
			g.refuse(w, r, status, why)
			return
		}
		principal, ok := g.who(r)
		if !ok {
			w.Header().Set("WWW-Authenticate", "Bearer")
			g.refuse(w, r, http.StatusUnauthorized, "a valid bearer token is needed in the Authorization header; yours is missing, unknown, removed or expired")
			return
		}
		if status, why := g.checkContent(r); status != 0 {
			g.refuse(w, r, status, why)
			return
		}
		next.ServeHTTP(w, g.forwarded(w, r, principal))
	})
}

// forwarded returns the request for the handler.
func (g *Gate) forwarded(w http.ResponseWriter, r *http.Request, principal string) *http.Request {
	in := *r
	in.Header = r.Header.Clone()
	in.Header.Del("Authorization")
	in.Header.Del("X-Api-Key")
	in.Header.Del(PrincipalHeader)
	if principal != "" {
		in.Header.Set(PrincipalHeader, principal)
	}
	if bodied(r) && r.Body != nil {
		// The server removes the deadline at the end of the body: the response may take longer. A request
		// without a connection has no deadline.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(cmp.Or(g.BodyTime, bodyTime)))
		in.Body = http.MaxBytesReader(w, r.Body, g.limit())
	}
	return &in
}

func (g *Gate) limit() int64 { return cmp.Or(g.MaxBody, maxBody) }

// checkOrigin checks the origin of a request, and returns the reason why it is rejected; 0 means accepted.
func (g *Gate) checkOrigin(r *http.Request) (status int, why string) {
	if !g.host(r) && !matches(g.Trusted, r.URL.Path) {
		return http.StatusForbidden, "the Host header does not name this server; start it with --host NAME (or NAME:PORT) to allow that name"
	}
	origins := r.Header.Values("Origin")
	if len(origins) > 1 {
		return http.StatusForbidden, "there is more than one Origin header"
	}
	invited := len(origins) == 1 && slices.ContainsFunc(g.Origins, func(o string) bool { return strings.EqualFold(o, origins[0]) })
	if len(origins) == 1 && !invited && !g.isOwn(r, origins[0]) {
		return http.StatusForbidden, "web pages of this origin may not send requests here"
	}
	for _, site := range r.Header.Values("Sec-Fetch-Site") {
		if site != "same-origin" && site != "none" && !invited && !g.followsLink(r) {
			return http.StatusForbidden, "web pages of other sites may not send requests here"
		}
	}
	return 0, ""
}

// followsLink reports whether a browser follows a link to an open path: then the page with the link can't read the
// response.
func (g *Gate) followsLink(r *http.Request) bool {
	return g.open(r) && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}

func (g *Gate) open(r *http.Request) bool {
	return r.Method == http.MethodGet && matches(g.Open, r.URL.Path)
}

// matches reports whether a path matches one of some patterns.
func matches(patterns []string, at string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		is, err := path.Match(pattern, at)
		return is && err == nil
	})
}

// isOwn reports whether an origin is that of this server's own pages; the host of the request has been checked. A
// named host may be that of a proxy that adds TLS.
func (g *Gate) isOwn(r *http.Request, origin string) bool {
	if strings.EqualFold(origin, "https://"+r.Host) {
		return r.TLS != nil || g.isNamedHost(r)
	}
	return r.TLS == nil && strings.EqualFold(origin, "http://"+r.Host)
}

func (g *Gate) isNamedHost(r *http.Request) bool {
	return slices.ContainsFunc(g.Hosts, func(h string) bool { return strings.EqualFold(h, r.Host) })
}

// host reports whether a request was sent to an accepted host.
func (g *Gate) host(r *http.Request) bool {
	if g.isNamedHost(r) {
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
	usual := "80"
	if r.TLS != nil {
		usual = "443"
	}
	return slices.ContainsFunc(names, func(name string) bool {
		whole := net.JoinHostPort(name, port)
		return strings.EqualFold(r.Host, whole) || port == usual && strings.EqualFold(r.Host, strings.TrimSuffix(whole, ":"+port))
	})
}

// who returns the sender of a request.
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

// bodied reports whether a request has, or could have, a body.
func bodied(r *http.Request) bool {
	return r.ContentLength != 0 || slices.Contains([]string{http.MethodPost, http.MethodPut, http.MethodPatch}, r.Method)
}

// checkContent checks the content of a request, and returns the reason why it is rejected; 0 means accepted.
func (g *Gate) checkContent(r *http.Request) (status int, why string) {
	if !bodied(r) {
		return 0, ""
	}
	types := r.Header.Values("Content-Type")
	form := matches(g.Forms, r.URL.Path)
	switch {
	case len(types) == 0 && r.ContentLength == 0: // it declares that there is no body
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

func (g *Gate) refuse(w http.ResponseWriter, r *http.Request, status int, why string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if g.Refuse != nil {
		g.Refuse(w, r, status, why)
		return
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": why}) // the client may be gone
}

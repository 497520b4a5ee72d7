package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/safety/netguard"
)

// server describes an authorization server and the resource that its tokens are for.
type server struct {
	Endpoints
	known     bool     // it described itself, so what it does not name it does not have
	pkce      []string // code_challenge_methods_supported
	auths     []string // token_endpoint_auth_methods_supported
	offered   []string // scopes_supported
	documents bool     // client_id_metadata_document_supported
	saysIss   bool     // authorization_response_iss_parameter_supported
	proofs    []string // dpop_signing_alg_values_supported

	audience string   // the resource parameter (RFC 8707); empty means none is sent
	metadata string   // where the resource described itself; empty means nowhere
	wanted   []string // scopes that the resource names
	// taken are the proof algorithms that the resource supports; empty means unknown. boundOnly: it accepts no
	// token without a proof.
	taken     []string
	boundOnly bool
}

// resource is a resource's description of itself (RFC 9728).
type resource struct {
	id      string
	at      string // where it said so
	issuers []string
	scopes  []string
	proofs  []string // dpop_signing_alg_values_supported
	bound   bool     // dpop_bound_access_tokens_required
}

// fixed reports whether the account's server needs no discovery.
func (a Account) fixed() bool { return a.Server != nil && a.Server.Token != "" }

// local reports whether the account itself is on this machine.
func (a Account) local() bool {
	if a.Resource != "" || a.Server == nil {
		return isLocal(a.Resource)
	}
	return isLocal(a.Server.Token) || isLocal(a.Server.Issuer)
}

// discover finds the authorization server, in the order of the MCP specification.
func (w wire) discover(ctx context.Context, a Account, ch challenge) (server, error) {
	if a.fixed() {
		s := server{Endpoints: *a.Server, audience: a.Resource}
		return s, w.checkEndpoints(s.Endpoints)
	}
	var found *resource
	if a.Resource != "" {
		r, err := w.resource(ctx, a.Resource, ch.params["resource_metadata"])
		if err != nil {
			return server{}, fmt.Errorf("find the authorization server of %s: %w", a.Resource, err)
		}
		found = r
	}
	issuer, err := chooseIssuer(a, found)
	if err != nil {
		return server{}, err
	}
	s, err := w.describe(ctx, issuer)
	if err != nil {
		return server{}, fmt.Errorf("ask the authorization server %s: %w", cleaned(issuer, nil), err)
	}
	switch {
	case s.known:
	case found != nil || a.Server != nil:
		return server{}, fmt.Errorf("the authorization server %s does not describe itself", cleaned(issuer, nil))
	default:
		// The default endpoints (MCP 2025-03-26).
		s = server{Endpoints: Endpoints{
			Issuer: issuer, Authorize: issuer + "/authorize", Token: issuer + "/token", Register: issuer + "/register",
		}}
	}
	s.audience = a.Resource
	if found != nil {
		s.audience, s.metadata, s.wanted = found.id, found.at, found.scopes
		s.taken, s.boundOnly = found.proofs, found.bound
	}
	return s, w.checkEndpoints(s.Endpoints)
}

// chooseIssuer picks the authorization server: the configured one, which the resource must also name if it
// names any; otherwise the first one that it names; otherwise, as in 2025-03-26, its own host.
func chooseIssuer(a Account, r *resource) (string, error) {
	set := ""
	if a.Server != nil {
		set = a.Server.Issuer
	}
	switch {
	case set != "" && r != nil && !slices.ContainsFunc(r.issuers, func(i string) bool { return same(i, set) }):
		return "", fmt.Errorf("%s does not name %s as its authorization server", a.Resource, set)
	case set != "":
		return set, nil
	case r != nil:
		return r.issuers[0], nil
	case a.Resource == "":
		return "", errors.New("no resource and no authorization server is set")
	}
	u, err := netguard.Check(a.Resource)
	if err != nil {
		return "", err
	}
	return root(u).String(), nil
}

// place is an address where a resource may describe itself, and the identity it may claim there.
type place struct {
	at  string
	ids []string
}

// resource asks a resource for its description. Nil means it has none.
func (w wire) resource(ctx context.Context, id, hint string) (*resource, error) {
	u, err := address(id, w.local)
	if err != nil {
		return nil, err
	}
	var problem error
	for _, p := range resourcePlaces(u, id, hint) {
		f, err := w.document(ctx, p.at)
		if err != nil {
			return nil, err
		}
		if f == nil {
			continue
		}
		r, err := readResource(f, p)
		if err == nil {
			return r, nil
		}
		problem = errors.Join(problem, err)
	}
	return nil, problem
}

// resourcePlaces lists the places of the description: the one in the challenge, then at the resource's path,
// then at the root. Only the one at the root may describe the whole host; a tenant of a part of the host could
// otherwise get tokens for all of it.
func resourcePlaces(u *url.URL, id, hint string) []place {
	const name = "oauth-protected-resource"
	var out []place
	if hint != "" {
		out = append(out, place{hint, []string{id}})
	}
	if u.Path != "" && u.Path != "/" {
		out = append(out, place{wellKnown(u, name), []string{id}})
	}
	return append(out, place{wellKnown(root(u), name), []string{id, root(u).String()}})
}

func readResource(f *fields, p place) (*resource, error) {
	r := &resource{
		id: f.text("resource"), at: p.at, issuers: f.texts("authorization_servers"), scopes: f.texts("scopes_supported"),
		proofs: f.texts("dpop_signing_alg_values_supported"), bound: f.flag("dpop_bound_access_tokens_required"),
	}
	switch {
	case f.err != nil:
		return nil, fmt.Errorf("%s: %w", cleaned(p.at, nil), f.err)
	case !slices.ContainsFunc(p.ids, func(id string) bool { return same(id, r.id) }):
		return nil, fmt.Errorf("%s speaks for another resource, %q", cleaned(p.at, nil), cleaned(r.id, nil))
	case len(r.issuers) == 0:
		return nil, fmt.Errorf("%s names no authorization server", cleaned(p.at, nil))
	}
	return r, nil
}

// describe asks an authorization server for its description (RFC 8414, or OpenID Connect discovery). If there
// is none, known is false.
func (w wire) describe(ctx context.Context, issuer string) (server, error) {
	u, err := address(issuer, w.local)
	if err != nil {
		return server{}, err
	}
	for _, at := range serverPlaces(u) {
		f, err := w.document(ctx, at)
		if err != nil {
			return server{}, err
		}
		if f != nil {
			return readServer(f, at, issuer)
		}
	}
	return server{}, nil
}

func serverPlaces(u *url.URL) []string {
	out := []string{wellKnown(u, "oauth-authorization-server"), wellKnown(u, "openid-configuration")}
	if path := strings.TrimSuffix(u.EscapedPath(), "/"); path != "" {
		out = append(out, root(u).JoinPath(path, "/.well-known/openid-configuration").String())
	}
	return out
}

func readServer(f *fields, at, issuer string) (server, error) {
	s := server{
		Endpoints: Endpoints{
			Issuer:    f.text("issuer"),
			Authorize: f.text("authorization_endpoint"),
			Token:     f.text("token_endpoint"),
			Device:    f.text("device_authorization_endpoint"),
			Revoke:    f.text("revocation_endpoint"),
			Register:  f.text("registration_endpoint"),
		},
		known:     true,
		pkce:      f.texts("code_challenge_methods_supported"),
		auths:     f.texts("token_endpoint_auth_methods_supported"),
		offered:   f.texts("scopes_supported"),
		documents: f.flag("client_id_metadata_document_supported"),
		saysIss:   f.flag("authorization_response_iss_parameter_supported"),
		proofs:    f.texts("dpop_signing_alg_values_supported"),
	}
	switch {
	case f.err != nil:
		return server{}, fmt.Errorf("%s: %w", at, f.err)
	case !same(s.Issuer, issuer):
		return server{}, fmt.Errorf("%s speaks for another issuer, %q", at, cleaned(s.Issuer, nil))
	}
	return s, nil
}

// checkEndpoints refuses a server with a forbidden address or without a token endpoint.
func (w wire) checkEndpoints(e Endpoints) error {
	if e.Token == "" {
		return errors.New("the authorization server has no token endpoint")
	}
	for _, at := range []string{e.Authorize, e.Token, e.Device, e.Revoke, e.Register} {
		if at == "" {
			continue
		}
		if _, err := address(at, w.local); err != nil {
			return fmt.Errorf("authorization server: %w", err)
		}
	}
	return nil
}

// takesPKCE refuses a server whose description lacks S256: an intercepted code could then be used.
func (s server) takesPKCE() error {
	if s.known && !slices.Contains(s.pkce, "S256") {
		return errors.New("the authorization server does not offer PKCE with S256")
	}
	return nil
}

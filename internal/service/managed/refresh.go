package managed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/inspan/inspan/internal/extend/mcp"
	"github.com/inspan/inspan/internal/extend/oauth"
	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/internal/service/server"
	"github.com/inspan/inspan/internal/view/words"
)

// ofRefusal is the kind of the note in a session whose token for an MCP server can't be refreshed.
const ofRefusal = "managed.refresh_failed"

// refresh is how the token of a credential is refreshed, without the secrets for that.
type refresh struct {
	Client   string `json:"client_id"`
	Endpoint string `json:"token_endpoint"`
	Auth     policy `json:"token_endpoint_auth"`
	Resource string `json:"resource,omitempty"`
	Scope    string `json:"scope,omitempty"`
}

// refreshFields are the fields of a request about that.
type refreshFields struct {
	Client   string         `json:"client_id"`
	Token    opt[string]    `json:"refresh_token"`
	Endpoint string         `json:"token_endpoint"`
	Auth     opt[tokenAuth] `json:"token_endpoint_auth"`
	Resource opt[string]    `json:"resource"`
	Scope    opt[string]    `json:"scope"`
}

// tokenAuth is how the server authenticates at a token endpoint.
type tokenAuth struct {
	Type   string      `json:"type"`
	Secret opt[string] `json:"client_secret"`
}

// shown returns how a token is refreshed, as clients see it.
func (r *refresh) shown() any {
	if r == nil {
		return nil
	}
	return map[string]any{
		"client_id": r.Client, "token_endpoint": r.Endpoint, "token_endpoint_auth": r.Auth, "resource": orNull(r.Resource),
		"scope": orNull(r.Scope),
	}
}

// onto applies a request to the refreshing of a token, which is new if there is no credential yet, and returns
// the change of the tokens.
func (f refreshFields) onto(tenant string, k *keptCredential) (func(*oauth.Tokens), error) {
	const at = "auth.refresh."
	fresh := k.Type == ""
	r := refresh{Client: f.Client, Endpoint: f.Endpoint}
	switch {
	case fresh && !f.Token.said:
		return nil, invalid(at+"refresh_token", "it is missing", "the token")
	case fresh && !f.Auth.said:
		return nil, invalid(at+"token_endpoint_auth", "it is missing", `{"type": "none"}, client_secret_basic or client_secret_post`)
	case fresh:
		if err := bounded(at+"client_id", f.Client, 1, mostShown); err != nil {
			return nil, err
		}
		if err := checkEndpoint(at+"token_endpoint", tenant, f.Endpoint); err != nil {
			return nil, err
		}
	case k.Refresh == nil:
		return nil, invalid("auth.refresh", "the credential was made without", "another credential")
	case f.Client != "" || f.Endpoint != "" || f.Resource.said:
		return nil, invalid("auth.refresh", "client, endpoint and resource can't be changed", "another credential")
	default:
		r = *k.Refresh
	}
	f.Resource.onto(&r.Resource)
	f.Scope.onto(&r.Scope)
	auth, secret := f.Auth.value, f.Auth.value.Secret
	bare := auth.Type == "none"
	switch {
	case !f.Auth.said:
	case !oauth.KnownAuth(auth.Type):
		what := fmt.Sprintf("it is %q", words.OneLine(auth.Type, 40))
		return nil, invalid(at+"token_endpoint_auth.type", what, "none, client_secret_basic or client_secret_post")
	case !fresh && bare != (r.Auth.Type == "none"):
		return nil, invalid(at+"token_endpoint_auth.type", "the credential has "+r.Auth.Type, r.Auth.Type)
	case bare && secret.said || !bare && fresh && secret.value == "":
		return nil, invalid(at+"token_endpoint_auth.client_secret", "none has no secret, and the others need one", "")
	case fresh:
		r.Auth = policy{auth.Type}
	}
	for field, text := range map[string]string{
		"refresh_token": f.Token.value, "token_endpoint_auth.client_secret": secret.value, "resource": r.Resource, "scope": r.Scope,
	} {
		if len(text) > mostToken || strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c > '~' }) {
			return nil, invalid(at+field, "it can't be sent", "at most 16384 printable ASCII characters")
		}
	}
	if f.Token.said && f.Token.value == "" {
		return nil, invalid(at+"refresh_token", "it is empty", "the token")
	}
	k.Refresh = &r
	return func(t *oauth.Tokens) {
		f.Token.onto(&t.Refresh)
		secret.onto(&t.Secret)
		t.Auth, t.Scope, t.Resource = r.Auth.Type, r.Scope, r.Resource
	}, nil
}

// checkEndpoint reports what is wrong with an address that refreshes tokens. Tenants can't make the server talk
// to its own machine.
func checkEndpoint(field, tenant, address string) error {
	if err := checkTokenServer(field, address); err != nil {
		return err
	}
	u, err := netguard.Check(address)
	if err != nil {
		return invalid(field, "an identity of a tenant can only name servers elsewhere", "https and a public host")
	}
	return server.CheckElsewhere(field, tenant, u)
}

// account returns the account name of the stored tokens of a credential.
func (k keptCredential) account() oauth.Account {
	return oauth.Account{
		Name: secretOfCredential + k.Secret, Resource: k.Server, Server: &oauth.Endpoints{Token: k.Refresh.Endpoint}, ClientID: k.Refresh.Client,
	}
}

// renewal provides the tokens of a credential for the MCP server of a session. Only one of them at a time, in
// this process and others, requests a new token. If the credential is not refreshed, it only reports in the
// session that the server refuses its token.
type renewal struct {
	s                 *server.Server
	task, vault, cred string

	told sync.Once    // the session knows that there is no token
	bad  atomic.Value // string: a new token that the MCP server has refused, too
}

// Account identifies the credential whose tokens these are.
func (r *renewal) Account() string { return r.cred }

// Token implements [mcp.Authorizer].
func (r *renewal) Token(ctx context.Context, s mcp.Server) (mcp.Pass, error) {
	return r.pass(ctx, s, func(c *oauth.Client, a oauth.Account) (oauth.Pass, error) { return c.Token(ctx, a) })
}

// Renew implements [mcp.Authorizer].
func (r *renewal) Renew(ctx context.Context, s mcp.Server, refused mcp.Pass, challenge string) (mcp.Pass, error) {
	old, _ := refused.(oauth.Pass)
	return r.pass(ctx, s, func(c *oauth.Client, a oauth.Account) (oauth.Pass, error) {
		return c.Renew(ctx, a, old.Token, challenge)
	})
}

func (r *renewal) pass(ctx context.Context, s mcp.Server, f func(*oauth.Client, oauth.Account) (oauth.Pass, error)) (mcp.Pass, error) {
	_, k, err := objectOf[keptCredential](r.s.Self(ctx).Object, ofCredential(r.vault), r.cred)
	if err != nil || k.isArchived() || k.Refresh == nil {
		return nil, fmt.Errorf("credential %s is archived or deleted", r.cred)
	}
	a := k.account()
	pass, err := f(r.s.Logins(k.Refresh.Endpoint), a)
	switch {
	case err == nil && pass.Token == r.bad.Load():
		return nil, errors.New(r.refusal())
	case err == nil:
		return pass, nil
	}
	if ctx.Err() != nil {
		return nil, err
	}
	why := fmt.Sprintf("the token of credential %s can't be refreshed: %s", r.cred, strings.TrimPrefix(err.Error(), a.Name+": "))
	final := errors.Is(err, oauth.ErrLogin)
	r.tell(refusalNote{s.Name, why, final}, final)
	return nil, errors.New(why)
}

// Refused records in the session that the MCP server rejects the credential's token. A new token that was
// rejected is not replaced by another, which would be rejected as well.
func (r *renewal) Refused(_ context.Context, s mcp.Server, p mcp.Pass) {
	if pass, is := p.(oauth.Pass); is {
		r.bad.Store(pass.Token)
	}
	r.tell(refusalNote{s.Name, r.refusal(), true}, false)
}

func (r *renewal) refusal() string { return "the MCP server refuses the token of credential " + r.cred }

// refusalNote is the reason why a session has no token for an MCP server.
type refusalNote struct {
	Server  string `json:"server"`
	Message string `json:"message"`
	Final   bool   `json:"final,omitempty"` // until the credential is changed
}

// tell records once that there is no token: in the session, and in the credential if that has ended.
func (r *renewal) tell(n refusalNote, ended bool) {
	r.told.Do(func() { r.s.Go(func(ctx context.Context) { r.note(ctx, n, ended) }) })
}

func (r *renewal) note(ctx context.Context, n refusalNote, ended bool) {
	v := r.s.Self(ctx)
	_, err := v.Note(r.task, ofRefusal, r.cred, n)
	if ended {
		_, _, failed := changed(&door{Visit: v}, ofCredential(r.vault), r.cred, func(k *keptCredential) error {
			if k.Failed.IsZero() {
				k.Failed = time.Now()
			}
			return nil
		})
		err = errors.Join(err, failed)
	}
	if err != nil && ctx.Err() == nil && r.s.Warn != nil {
		r.s.Warn(n.Message + "; and the session can't be told: " + err.Error())
	}
}

// refused emits why there is no token.
func (f *Fold) refused(raw json.RawMessage) {
	var n refusalNote
	if json.Unmarshal(raw, &n) != nil {
		return
	}
	retry := "retrying"
	if n.Final {
		retry = "terminal"
	}
	f.add("session.error", map[string]any{"error": map[string]any{
		"type": "mcp_authentication_failed_error", "mcp_server_name": n.Server, "message": n.Message,
		"retry_status": map[string]any{"type": retry},
	}})
}

package connect

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/inspan/inspan/internal/extend/mcp"
	"github.com/inspan/inspan/internal/extend/oauth"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/safety/netguard"
)

// Logins are a person's logins to MCP servers and providers.
type Logins struct {
	*config.Installation
	Note func(name, token string) // is called with each token, to keep it from models and logs

	once     sync.Once
	keychain *oauth.Keychain
}

// client returns a client that gets and stores access tokens.
func (l *Logins) client(address string) *oauth.Client {
	return &oauth.Client{HTTP: netguard.For(address, l.Local()).Client(), Store: l.tokens(), Document: l.Config.MCP.Document}
}

func (l *Logins) tokens() *oauth.Keychain {
	l.once.Do(func() { l.keychain = &oauth.Keychain{Dir: filepath.Join(l.StateDir, "logins")} })
	return l.keychain
}

// account returns the account name of a stored login to an MCP server. Only servers of the person are identified by
// name alone.
func (l *Logins) account(s mcp.Server) oauth.Account {
	acc := oauth.Account{Name: "mcp:" + s.Name, Resource: s.URL}
	if s.Source != mcp.User {
		acc.Name += " at " + s.URL
		return acc
	}
	known := l.Config.MCP.Servers[s.Name].OAuth
	if known.Issuer != "" {
		acc.Server = &oauth.Endpoints{Issuer: known.Issuer}
	}
	return as(acc, known)
}

// as adds the client's identity to an account.
func as(acc oauth.Account, o config.OAuth) oauth.Account {
	acc.ClientID, acc.Scopes = o.ClientID, o.Scopes
	acc.Grant, acc.KeyFile, acc.AssertionFile = oauth.Grant(o.Grant), o.KeyFile, o.AssertionFile
	if o.SecretEnv != "" {
		acc.ClientSecret = os.Getenv(o.SecretEnv)
	}
	if acc.Grant == oauth.IDJAG {
		acc.Identity = &oauth.IdentityProvider{Issuer: o.IDPIssuer, Token: o.IDPToken, ClientID: o.IDPClientID}
		if o.IDPSecretEnv != "" {
			acc.Identity.ClientSecret = os.Getenv(o.IDPSecretEnv)
		}
	}
	return acc
}

// Token implements [mcp.Authorizer].
func (l *Logins) Token(ctx context.Context, s mcp.Server) (mcp.Pass, error) {
	pass, err := l.client(s.URL).Token(ctx, l.account(s))
	return l.kept(s, pass, err)
}

// Renew implements [mcp.Authorizer].
func (l *Logins) Renew(ctx context.Context, s mcp.Server, refused mcp.Pass, challenge string) (mcp.Pass, error) {
	old, _ := refused.(oauth.Pass)
	pass, err := l.client(s.URL).Renew(ctx, l.account(s), old.Token, challenge)
	if err == nil && pass.Token == old.Token {
		return nil, nil
	}
	return l.kept(s, pass, err)
}

// kept notes a token, so that it is kept from models and logs.
func (l *Logins) kept(s mcp.Server, pass oauth.Pass, err error) (mcp.Pass, error) {
	if errors.Is(err, oauth.ErrLogin) {
		return nil, nil
	}
	if err != nil || pass.Token == "" {
		return nil, err
	}
	l.Note("the token of the MCP server "+s.Name, pass.Token)
	return pass, nil
}

// given provides a client's tokens for a server. They are kept from models and logs like those of logins.
type given struct {
	mcp.Authorizer
	logins *Logins
}

// Token implements [mcp.Authorizer].
func (g given) Token(ctx context.Context, s mcp.Server) (mcp.Pass, error) {
	pass, err := g.Authorizer.Token(ctx, s)
	return g.held(s, pass, err)
}

// Renew implements [mcp.Authorizer].
func (g given) Renew(ctx context.Context, s mcp.Server, refused mcp.Pass, challenge string) (mcp.Pass, error) {
	pass, err := g.Authorizer.Renew(ctx, s, refused, challenge)
	return g.held(s, pass, err)
}

// Refused tells the client, if it supports that, that a server rejected its tokens.
func (g given) Refused(ctx context.Context, s mcp.Server, p mcp.Pass) {
	if a, is := g.Authorizer.(interface {
		Refused(ctx context.Context, s mcp.Server, p mcp.Pass)
	}); is {
		a.Refused(ctx, s, p)
	}
}

func (g given) held(s mcp.Server, pass mcp.Pass, err error) (mcp.Pass, error) {
	if p, is := pass.(oauth.Pass); is && err == nil && p.Token != "" {
		name := "the token of the MCP server " + s.Name
		if a, is := g.Authorizer.(interface{ Account() string }); is {
			name += " (" + a.Account() + ")" // sessions can have different tokens for servers of one name
		}
		g.logins.Note(name, p.Token)
	}
	return pass, err
}

// Server lets the person log in to a server, and reconnects it.
func (l *Logins) Server(ctx context.Context, m *mcp.Manager, server string, how Login) error {
	s, challenge, err := m.Server(server)
	if err != nil {
		return err
	}
	if s.URL == "" {
		return fmt.Errorf("the MCP server %s is a program, which needs no login", server)
	}
	if err := l.client(s.URL).Login(ctx, l.account(s), how.Way, how.Person, challenge); err != nil {
		return err
	}
	m.Revive(ctx)
	return nil
}

// flow returns the function of the tool oauth_flow.
func (l *Logins) flow(m *mcp.Manager) flow {
	return func(ctx context.Context, server, said string, tell func(string), paste func(context.Context) (string, error)) error {
		way, err := Way(said)
		if err != nil {
			return err
		}
		return l.Server(ctx, m, server, Login{way, oauth.Person{
			Open: func(url string) error { return Browse(ctx, url) }, Tell: tell, Paste: paste,
		}})
	}
}

// LeaveServer deletes the login to a server, and revokes its tokens.
func (l *Logins) LeaveServer(ctx context.Context, s mcp.Server) error {
	return l.client(s.URL).Logout(ctx, l.account(s).Name)
}

// providerAccount returns the account name of a stored login to a provider.
func providerAccount(name string, o config.ProviderOAuth) oauth.Account {
	acc := oauth.Account{
		Name: "provider:" + name, Redirect: o.Redirect,
		Server: &oauth.Endpoints{Issuer: o.Issuer, Authorize: o.Authorize, Token: o.Token, Device: o.Device, Revoke: o.Revoke},
	}
	return as(acc, o.OAuth)
}

// Provider lets the person log in to a provider.
func (l *Logins) Provider(ctx context.Context, provider string, how Login) error {
	o, err := l.settings(provider)
	if err != nil {
		return err
	}
	return l.client(o.Token).Login(ctx, providerAccount(provider, *o), how.Way, how.Person, "")
}

// LeaveProvider deletes the login to a provider, or its stored key.
func (l *Logins) LeaveProvider(ctx context.Context, provider string) error {
	if l.Config.Providers[provider].OAuth == nil && l.HasKey(provider) {
		return l.ForgetKey(ctx, provider)
	}
	o, err := l.settings(provider)
	if err != nil {
		return config.Error{Err: fmt.Errorf("inspan has no key and no login for %s", provider)}
	}
	return l.client(o.Token).Logout(ctx, providerAccount(provider, *o).Name)
}

func (l *Logins) settings(provider string) (*config.ProviderOAuth, error) {
	o := l.Config.Providers[provider].OAuth
	if o == nil {
		return nil, config.Error{Err: fmt.Errorf("can't log in: the settings have no [providers.%s.oauth]", provider)}
	}
	return o, nil
}

// ProviderToken returns the access token of a provider with a login.
func (l *Logins) ProviderToken(ctx context.Context, name string, o config.ProviderOAuth) (string, error) {
	pass, err := l.client(o.Token).Token(ctx, providerAccount(name, o))
	if errors.Is(err, oauth.ErrLogin) {
		return "", config.Error{Err: fmt.Errorf("provider %s: log in first: inspan models login %s", name, name)}
	}
	if pass.Token != "" {
		l.Note("the token of "+name, pass.Token)
	}
	return pass.Token, err
}

// Login says how a person logs in.
type Login struct {
	Way    oauth.Way
	Person oauth.Person
}

// AtTerminal returns the login for a person at a terminal, in the way that said names, see [Way]. They see
// instructions, and paste the address that their browser ended at.
func (l *Logins) AtTerminal(ctx context.Context, said string, tell func(string),
	paste func(context.Context) (string, error),
) (Login, error) {
	way, err := Way(said)
	if err != nil {
		return Login{}, err
	}
	return Login{way, oauth.Person{
		Open: func(url string) error {
			if err := Browse(ctx, url); err != nil {
				tell(err.Error())
			}
			return nil // the address is shown anyway
		},
		Tell: tell, Paste: paste,
	}}, nil
}

// Way returns the best way to log in here, or the one that said names.
func Way(said string) (oauth.Way, error) {
	switch way := oauth.Way(said); {
	case way == oauth.Browser || way == oauth.Paste || way == oauth.Device:
		return way, nil
	case said != "":
		return "", fmt.Errorf("unknown way to log in %q; use browser, paste or device", said)
	}
	desktop := runtime.GOOS == "darwin" || runtime.GOOS == "windows" || os.Getenv("DISPLAY") != "" || os.Getenv("WAYLAND_DISPLAY") != ""
	if desktop && os.Getenv("SSH_CONNECTION") == "" {
		return oauth.Browser, nil
	}
	return oauth.Paste, nil
}

package app

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/inspan/inspan/internal/config"
	"github.com/inspan/inspan/internal/mcp"
	"github.com/inspan/inspan/internal/netguard"
	"github.com/inspan/inspan/internal/oauth"
	"github.com/inspan/inspan/internal/tools"
)

// guardAt is what may be reached for a server at an address. Only one at this machine
// may lead to addresses of this machine.
func (a *App) guardAt(address string) *netguard.Guard {
	guard := a.guard()
	if u, err := url.Parse(address); err == nil && loopback(u.Hostname()) {
		guard.Local = append(guard.Local, netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128"))
	}
	return guard
}

// logins gets and keeps access tokens.
func (a *App) logins(address string) *oauth.Client {
	return &oauth.Client{HTTP: a.guardAt(address).Client(), Store: a.tokens(), Document: a.Config.MCP.Document}
}

func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

func (a *App) tokens() *oauth.Keychain {
	a.keychainOnce.Do(func() { a.keychain = &oauth.Keychain{Dir: filepath.Join(a.StateDir, "logins")} })
	return a.keychain
}

// serverAccount is what a login to an MCP server is kept as. Only a server of the
// person's is known by its name alone.
func (a *App) serverAccount(s mcp.Server) oauth.Account {
	acc := oauth.Account{Name: "mcp:" + s.Name, Resource: s.URL}
	if s.Source != mcp.User {
		acc.Name += " at " + s.URL
		return acc
	}
	known := a.Config.MCP.Servers[s.Name].OAuth
	if known.Issuer != "" {
		acc.Server = &oauth.Endpoints{Issuer: known.Issuer}
	}
	return as(acc, known)
}

// as is an account with who we are to it.
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

// authorizer implements [mcp.Authorizer].
type authorizer struct{ app *App }

func (z authorizer) Token(ctx context.Context, s mcp.Server) (mcp.Pass, error) {
	pass, err := z.app.logins(s.URL).Token(ctx, z.app.serverAccount(s))
	return z.kept(s, pass, err)
}

func (z authorizer) Renew(ctx context.Context, s mcp.Server, refused mcp.Pass, challenge string) (mcp.Pass, error) {
	old, _ := refused.(oauth.Pass)
	pass, err := z.app.logins(s.URL).Renew(ctx, z.app.serverAccount(s), old.Token, challenge)
	if err == nil && pass.Token == old.Token {
		return nil, nil
	}
	return z.kept(s, pass, err)
}

// kept has the token held back from models and logs.
func (z authorizer) kept(s mcp.Server, pass oauth.Pass, err error) (mcp.Pass, error) {
	if errors.Is(err, oauth.ErrLogin) {
		return nil, nil
	}
	if err != nil || pass.Token == "" {
		return nil, err
	}
	z.app.printed.Store("the token of the MCP server "+s.Name, pass.Token)
	return pass, nil
}

// LogIn has the person log in to a server, which is connected to again.
func (a *App) LogIn(ctx context.Context, m *mcp.Manager, server string, way oauth.Way, p oauth.Person) error {
	s, challenge, err := m.Server(server)
	if err != nil {
		return err
	}
	if s.URL == "" {
		return fmt.Errorf("the MCP server %s is a program, which needs no login", server)
	}
	if err := a.logins(s.URL).Login(ctx, a.serverAccount(s), way, p, challenge); err != nil {
		return err
	}
	m.Revive(ctx)
	return nil
}

// flow is what the tool oauth_flow does.
func (a *App) flow(m *mcp.Manager) tools.Login {
	return func(ctx context.Context, server, said string, tell func(string), paste func(context.Context) (string, error)) error {
		way, err := Way(said)
		if err != nil {
			return err
		}
		return a.LogIn(ctx, m, server, way, oauth.Person{
			Open: func(url string) error { return Browse(ctx, url) }, Tell: tell, Paste: paste,
		})
	}
}

// LogOut forgets the login to a server, and has it take the tokens back.
func (a *App) LogOut(ctx context.Context, s mcp.Server) error {
	return a.logins(s.URL).Logout(ctx, a.serverAccount(s).Name)
}

// providerAccount is what a login to a provider is kept as.
func providerAccount(name string, o config.ProviderOAuth) oauth.Account {
	acc := oauth.Account{
		Name: "provider:" + name, Redirect: o.Redirect,
		Server: &oauth.Endpoints{Issuer: o.Issuer, Authorize: o.Authorize, Token: o.Token, Device: o.Device, Revoke: o.Revoke},
	}
	return as(acc, o.OAuth)
}

// LogInTo has the person log in to a provider.
func (a *App) LogInTo(ctx context.Context, provider string, way oauth.Way, p oauth.Person) error {
	o, err := a.providerLogin(provider)
	if err != nil {
		return err
	}
	return a.logins(o.Token).Login(ctx, providerAccount(provider, *o), way, p, "")
}

// LogOutOf forgets the login to a provider.
func (a *App) LogOutOf(ctx context.Context, provider string) error {
	o, err := a.providerLogin(provider)
	if err != nil {
		return err
	}
	return a.logins(o.Token).Logout(ctx, providerAccount(provider, *o).Name)
}

func (a *App) providerLogin(provider string) (*config.ProviderOAuth, error) {
	o := a.Config.Providers[provider].OAuth
	if o == nil {
		return nil, configError{fmt.Errorf("the settings have no [providers.%s.oauth], so there is nothing to log in to", provider)}
	}
	return o, nil
}

// providerToken is the access token of a provider that one logs in to.
func (a *App) providerToken(ctx context.Context, name string, o config.ProviderOAuth) (string, error) {
	pass, err := a.logins(o.Token).Token(ctx, providerAccount(name, o))
	if errors.Is(err, oauth.ErrLogin) {
		return "", configError{fmt.Errorf("provider %s: log in first: inspan models login %s", name, name)}
	}
	if pass.Token != "" {
		a.printed.Store("the token of "+name, pass.Token)
	}
	return pass.Token, err
}

// Way is how a person logs in best here, or as they say.
func Way(said string) (oauth.Way, error) {
	switch way := oauth.Way(said); {
	case way == oauth.Browser || way == oauth.Paste || way == oauth.Device:
		return way, nil
	case said != "":
		return "", fmt.Errorf("%q is no way to log in: browser, paste and device are", said)
	}
	desktop := runtime.GOOS == "darwin" || runtime.GOOS == "windows" || os.Getenv("DISPLAY") != "" || os.Getenv("WAYLAND_DISPLAY") != ""
	if desktop && os.Getenv("SSH_CONNECTION") == "" {
		return oauth.Browser, nil
	}
	return oauth.Paste, nil
}

// Browse shows an address in the person's browser: that which $BROWSER names, a list of
// commands in which %s may stand for the address, or the usual one.
func Browse(ctx context.Context, address string) error {
	for command := range strings.SplitSeq(os.Getenv("BROWSER"), string(os.PathListSeparator)) {
		args := strings.Fields(strings.ReplaceAll(command, "%s", address))
		if len(args) == 0 {
			continue
		}
		if !strings.Contains(command, "%s") {
			args = append(args, address)
		}
		if _, _, code, err := run(ctx, nil, args...); err == nil && code == 0 {
			return nil
		}
	}
	args := []string{"xdg-open", address}
	switch runtime.GOOS {
	case "darwin":
		args[0] = "open"
	case "windows":
		args = []string{"rundll32", "url.dll,FileProtocolHandler", address}
	}
	_, complaints, code, err := run(ctx, nil, args...)
	if err == nil && code != 0 {
		err = fmt.Errorf("the browser could not be opened: %s", strings.TrimSpace(complaints))
	}
	return err
}

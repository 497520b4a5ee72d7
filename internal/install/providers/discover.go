package providers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/inspan/inspan/internal/extend/profile"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/anthropic"
	"github.com/inspan/inspan/llm/gemini"
	"github.com/inspan/inspan/llm/ollama"
	"github.com/inspan/inspan/llm/openai"
	"github.com/inspan/inspan/llm/router"
	"github.com/inspan/inspan/llm/script"
)

// probeTime bounds the request to a local server before a session starts.
const probeTime = 2 * time.Second

// Found is a provider's model list.
type Found struct {
	Provider Provider
	Models   []llm.Info
	Err      error // why the list is missing
	Open     bool  // the list needs no key, so it doesn't prove a key
}

// Discover requests the model lists of local servers concurrently. Servers that don't respond are left out.
func (s *Set) Discover(ctx context.Context) []Found {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	var home []Provider
	for _, p := range s.List() {
		if p.Stays() && p.Ready {
			home = append(home, p)
		}
	}
	found := make([]Found, len(home))
	var wait sync.WaitGroup
	for i, p := range home {
		wait.Go(func() { found[i] = s.discover(ctx, p) })
	}
	wait.Wait()
	var there []Found
	for _, f := range found {
		if f.Err == nil {
			there = append(there, f)
		}
	}
	return there
}

// DiscoverAt requests the model list of one provider, local or not.
func (s *Set) DiscoverAt(ctx context.Context, name string) (Found, error) {
	for _, p := range s.List() {
		if p.Name == name {
			f := s.discover(ctx, p)
			if f.Err != nil {
				f.Err = s.advise(ctx, p, "", llm.AsError(f.Err))
			}
			return f, f.Err
		}
	}
	return Found{}, config.Error{Err: fmt.Errorf("no provider %q; see 'inspan models'", name)}
}

// Try requests the model list of a provider with a key that is not stored yet. A list proves the key, unless it
// needs none.
func (s *Set) Try(ctx context.Context, p Provider, key string) Found {
	at := s.Endpoint(p, "")
	at.Key = func(context.Context) (string, error) { return key, nil }
	f := list(ctx, p, at)
	if e := llm.AsError(f.Err); e != nil && e.Kind != llm.KindAuth {
		f.Err = s.advise(ctx, p, "", e)
	}
	return f
}

// lookTime bounds how long to look at an address that the person typed.
const lookTime = 20 * time.Second

// At looks which server answers at an address, such as "http://127.0.0.1:18080/v1", and requests its model list.
// The provider of a known address is that of [Set.List]; any other gets a name that is still free, and is not Ready
// if it wants a key.
func (s *Set) At(ctx context.Context, address string) (Found, error) {
	u, err := addressOf(address)
	if err != nil {
		return Found{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	for _, p := range s.List() {
		vendor := p.BaseURL == "" && strings.HasSuffix(u.Hostname(), "."+p.Name+".com")
		if vendor || p.BaseURL != "" && rootOf(p.BaseURL) == rootOf(u.String()) {
			if !p.Ready {
				return Found{Provider: p}, nil
			}
			f := s.discover(ctx, p)
			return f, s.unlooked(p, f.Err)
		}
	}
	p := Provider{Name: s.freeName(u), Provider: config.Provider{Kind: "openai"}, Ready: true, book: s.book()}
	bases := []string{u.String()}
	if u.Path == "" {
		bases = []string{u.String() + "/v1", u.String()}
	}
	var failed error
	for _, base := range bases {
		p.BaseURL = base
		at := llm.Endpoint{Provider: p.Name, BaseURL: base}
		if p.Dialect = openai.Identify(ctx, at).Name; p.Dialect == "" {
			home := p
			home.Kind, home.BaseURL = "ollama", rootOf(base)
			if f := s.discover(ctx, home); f.Err == nil {
				return f, nil
			}
		}
		f := s.discover(ctx, p)
		if f.Err == nil {
			return f, nil
		}
		if llm.AsError(f.Err).Kind == llm.KindAuth {
			f.Provider.Ready, f.Provider.KeyEnv = false, variableOf(p.Name)
			return f, nil
		}
		failed = cmp.Or(failed, f.Err)
	}
	p.BaseURL = u.String()
	return Found{}, s.unlooked(p, failed)
}

// unlooked explains why an address that the person typed has no models for them; nil if a key would help.
func (s *Set) unlooked(p Provider, err error) error {
	e := llm.AsError(err)
	if e == nil || e.Kind == llm.KindAuth {
		return nil
	}
	if why, _ := s.unreached(p, e); why != "" {
		return errors.New(why)
	}
	return fmt.Errorf("%s answers, but lists no models: %w", address(p), e)
}

// addressOf reads an address as a person types it: with or without a scheme, or with the path of a request.
func addressOf(typed string) (*url.URL, error) {
	if !strings.Contains(typed, "://") {
		typed = "http://" + typed
	}
	u, err := url.Parse(strings.TrimSpace(typed))
	switch {
	case err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("that is not an address such as http://127.0.0.1:8080/v1")
	case u.User != nil || u.RawQuery != "":
		return nil, errors.New("leave keys out of the address; inspan asks for one if the server wants it")
	}
	u.Path = strings.TrimRight(u.Path, "/")
	for _, end := range []string{"/chat/completions", "/responses", "/models", "/api/tags", "/api/chat"} {
		u.Path = strings.TrimSuffix(u.Path, end)
	}
	u.RawPath, u.Fragment = "", ""
	return u, nil
}

// rootOf returns an address without the path of the version. The names of this machine count as one.
func rootOf(base string) string {
	u, err := url.Parse(strings.TrimSuffix(strings.TrimRight(base, "/"), "/v1"))
	if err != nil {
		return base
	}
	if u.Hostname() == "localhost" {
		u.Host = strings.Replace(u.Host, "localhost", "127.0.0.1", 1)
	}
	return u.String()
}

// freeName returns a name for the server at an address that no provider has.
func (s *Set) freeName(u *url.URL) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(strings.ToLower(u.Hostname()), "api."), ".")
	ip, err := netip.ParseAddr(u.Hostname())
	switch {
	case name == "localhost" || err == nil && ip.IsLoopback():
		name = "local"
	case err == nil:
		name = "server"
	}
	taken := []string{script.Provider, router.Provider}
	for _, p := range s.List() {
		taken = append(taken, p.Name)
	}
	free := name
	for n := 2; slices.Contains(taken, free); n++ {
		free = fmt.Sprintf("%s-%d", name, n)
	}
	return free
}

// variableOf returns the variable that can hold the key of a provider.
func variableOf(name string) string {
	return strings.ToUpper(strings.ReplaceAll(name, "-", "_")) + "_API_KEY"
}

func (s *Set) discover(ctx context.Context, p Provider) Found { return list(ctx, p, s.Endpoint(p, "")) }

// list requests the model list at an address.
func list(ctx context.Context, p Provider, at llm.Endpoint) Found {
	f := Found{Provider: p, Open: p.Dialect == "huggingface"}
	switch p.Kind {
	case "openai", "openai-responses":
		f.Models, f.Err = openai.Discover(ctx, at)
	case "ollama":
		f.Models, f.Err = ollama.Discover(ctx, at)
	case "anthropic":
		f.Models, f.Err = anthropic.Discover(ctx, at)
	case "gemini":
		f.Models, f.Err = gemini.Discover(ctx, at)
	default:
		f.Err = fmt.Errorf("inspan can't list the models of %s; name them as %s/MODEL", p.Name, p.Name)
	}
	return f
}

// probe asks a local server, or one whose model no one describes, for facts about a model that the settings don't
// set, and whether it supports tools. If the server doesn't respond, they stay unset.
func (s *Set) probe(ctx context.Context, at *llm.Endpoint, p Provider) (noTools bool) {
	if described, err := adapter(p.Kind, at); !p.Stays() && (err != nil || described.Info().Window > 0 || at.BaseURL == "") {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	var known llm.Info
	if p.Kind == "ollama" {
		shape, err := ollama.Show(ctx, *at)
		if err != nil {
			return false
		}
		known = shape.Info
		if at.Window == 0 { // querying the devices runs a program or two
			known.Window = shape.Fit(s.Room(ctx, p, shape))
		}
	} else {
		for _, m := range s.discover(ctx, p).Models {
			if m.Model == at.ID {
				known = m
			}
		}
	}
	at.Window = cmp.Or(at.Window, known.Window)
	at.Images = at.Images || known.Images
	return known.NoTools
}

// Room returns how many bytes of graphics memory a model may use on its server: the free memory, plus that of the
// server's loaded models, which it can unload. 0 means unknown, as on another machine.
func (s *Set) Room(ctx context.Context, p Provider, shape ollama.Shape) int64 {
	if !p.here() {
		return 0
	}
	devices := Devices(ctx)
	return min(profile.Memory(devices), profile.Free(devices)+shape.Taken)
}

// Devices returns the current state of the machine's graphics processors.
func Devices(ctx context.Context) []profile.Device {
	run := func(ctx context.Context, args ...string) (string, error) { return sandbox.Output(ctx, nil, args...) }
	return profile.Devices(ctx, run, os.DirFS("/sys"))
}

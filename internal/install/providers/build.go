package providers

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"path/filepath"

	"github.com/inspan/inspan/internal/extend/profile"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/models/heal"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/anthropic"
	"github.com/inspan/inspan/llm/cloud"
	"github.com/inspan/inspan/llm/gemini"
	"github.com/inspan/inspan/llm/limit"
	"github.com/inspan/inspan/llm/ollama"
	"github.com/inspan/inspan/llm/openai"
	"github.com/inspan/inspan/llm/prompted"
	"github.com/inspan/inspan/tool"
)

// build returns a model with the adapter for the provider's wire protocol, and the layers around it.
func (s *Set) build(ctx context.Context, p Provider, id string) (llm.Model, error) {
	at := s.Endpoint(p, id)
	if err := s.credentials(&at, p); err != nil {
		return nil, err
	}
	noTools := s.probe(ctx, &at, p)
	at.HTTP = &heal.Transport{Next: at.HTTP}
	m, err := adapter(p.Kind, &at)
	if err != nil {
		return nil, config.Error{Err: fmt.Errorf("provider %s: %w", p.Name, err)}
	}
	needs := profile.For(m.Info().Route(), s.Config.Profiles)
	inPrompt := noTools || needs.Tools == "prompt" || p.Models[id].NoTools
	return &advised{s.limited(p, id, needs.Model(&prompted.Model{Model: &heal.Model{Model: m, Facts: s.Facts(p, id)}, Always: inPrompt})), s, p, id}, nil
}

// Describe returns the known facts about a provider's model, even if the settings lack the provider. It asks the
// server as the start of a session does.
func (s *Set) Describe(ctx context.Context, p Provider, id string) (llm.Info, error) {
	m, err := s.build(ctx, p, id)
	if err != nil {
		return llm.Info{}, err
	}
	return m.Info(), nil
}

// Facts returns the stored record of the parameters that a model's server has rejected.
func (s *Set) Facts(p Provider, id string) *heal.Facts {
	where := sha256.Sum256([]byte(p.Kind + "\n" + p.BaseURL + "\n" + id))
	return &heal.Facts{Path: filepath.Join(s.StateDir, "facts", fmt.Sprintf("%s-%x.json", p.Name, where[:8])), Route: p.Name + "/" + id}
}

// Refused returns the stored facts about all models, sorted by name.
func (s *Set) Refused() []*heal.Facts { return heal.All(filepath.Join(s.StateDir, "facts")) }

// Endpoint returns the endpoint of a provider's model according to the settings and the price book.
func (s *Set) Endpoint(p Provider, id string) llm.Endpoint {
	known := p.Models[id]
	at := llm.Endpoint{
		Deadlines: llm.Deadlines(p.Deadlines),
		Provider:  p.Name, ID: id, BaseURL: p.BaseURL, Key: s.key(p.Name, p.Provider), Dialect: p.Dialect,
		Bearer: p.OAuth != nil, Window: known.Window, MaxOutput: known.MaxOutput, Images: known.Images,
	}
	sold, _ := s.book().Sold(id)
	if priced := s.priced(p, id); !p.Stays() && len(priced.Prices) > 0 {
		at.Window, at.MaxOutput = cmp.Or(at.Window, priced.Window), cmp.Or(at.MaxOutput, priced.MaxOutput)
		at.Images, at.Prices = at.Images || priced.Images, priced.Prices
	}
	switch {
	case known.Price != nil:
		at.Prices = llm.Prices{*known.Price}
	case p.Keeps(id):
		at.Prices = llm.Prices{{}} // free
	case p.Stays():
		at.Prices = sold.Prices // behind a gateway
	}
	return at
}

func adapter(kind string, at *llm.Endpoint) (llm.Model, error) {
	switch kind {
	case "anthropic":
		return (*anthropic.Model)(at), nil
	case "openai", "openai-responses":
		if _, err := openai.DialectOf(*at); err != nil {
			return nil, err
		}
		if kind == "openai" {
			return (*openai.Model)(at), nil
		}
		return (*openai.Responses)(at), nil
	case "gemini":
		return (*gemini.Model)(at), nil
	case "ollama":
		return (*ollama.Model)(at), nil
	}
	return nil, fmt.Errorf("unknown kind %q", kind)
}

// credentials sets the address and the authentication of a cloud provider, which depend on the region.
func (s *Set) credentials(at *llm.Endpoint, p Provider) error {
	publisher := map[string]string{"anthropic": "anthropic", "gemini": "google"}[p.Kind]
	switch p.Dialect {
	case "bedrock":
		if p.Region == "" {
			return config.Error{Err: fmt.Errorf("provider %s: bedrock needs a region", p.Name)}
		}
		at.BaseURL = cmp.Or(p.BaseURL, "https://bedrock-runtime."+p.Region+".amazonaws.com")
		at.HTTP, at.Key = &cloud.AWS{Region: p.Region}, nil
	case "vertex":
		if p.Region == "" || p.Project == "" {
			return config.Error{Err: fmt.Errorf("provider %s: vertex needs a region and a project", p.Name)}
		}
		host := p.Region + "-aiplatform.googleapis.com"
		if p.Region == "global" {
			host = "aiplatform.googleapis.com"
		}
		at.BaseURL = cmp.Or(p.BaseURL, fmt.Sprintf("https://%s/v1/projects/%s/locations/%s/publishers/%s", host, p.Project, p.Region, publisher))
		if at.Bearer = true; at.Key == nil {
			at.Key = s.google.Key
		}
	}
	return nil
}

// limited returns a model with the limits of the provider's key, shared by all sessions. Vendors count per model, so
// a pause of one model delays no other.
func (s *Set) limited(p Provider, id string, m llm.Model) llm.Model {
	path := func(name string) string { return filepath.Join(s.StateDir, "limits", name+".pace") }
	if p.Requests > 0 || p.Tokens > 0 {
		m = (&limit.Limit{Path: path(p.Name), Requests: p.Requests, Tokens: p.Tokens, Unpaused: true}).Model(m)
	}
	return (&limit.Limit{Path: path(p.Name + "." + tool.Digest([]byte(id))[:16])}).Model(m)
}

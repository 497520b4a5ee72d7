package providers

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/llm/router"
	"github.com/inspan/inspan/llm/script"
)

// known is a model that a short name may mean.
type known struct {
	provider Provider
	id       string
}

func (k known) route() string { return k.provider.Name + "/" + k.id }

// Route resolves a name without a provider to "provider/model". It means a model of the price book, or one of
// the person's settings:
//
//	gpt-5, claude-opus-5-5-20260101   the id of a model, or of a snapshot
//	sonnet, flash-lite, claude-opus   words of an id: the newest version of it
//
// Providers with a key take precedence over those without. It is an error if several models remain. A name with
// a provider, the name of a provider, and an unknown name are returned unchanged.
func (s *Set) Route(name string) (string, error) {
	list := s.List()
	if name == "" || strings.Contains(name, "/") || name == script.Provider || name == router.Provider ||
		slices.ContainsFunc(list, func(p Provider) bool { return p.Name == name }) {
		return name, nil
	}
	found := newest(withKey(meant(list, strings.ToLower(name))))
	switch len(found) {
	case 0:
		return name, nil
	case 1:
		return found[0].route(), nil
	}
	var routes []string
	for _, k := range found {
		routes = append(routes, k.route())
	}
	return "", config.Error{Err: fmt.Errorf("model %q: several models match; name one of %s", name, strings.Join(routes, ", "))}
}

// meant returns the models with the id; otherwise those whose id ends with the name; otherwise those whose id
// contains it as words.
func meant(list []Provider, name string) []known {
	var exact, ends, holds []known
	for _, k := range every(list) {
		id := strings.ToLower(k.id)
		switch {
		case id == name:
			exact = append(exact, k)
		case strings.HasSuffix(id, "-"+name):
			ends = append(ends, k)
		case strings.Contains("-"+id+"-", "-"+name+"-"):
			holds = append(holds, k)
		}
	}
	for _, p := range list {
		if len(exact) == 0 && p.prices().Find(p.Name, name).Window > 0 { // a snapshot
			exact = append(exact, known{p, name})
		}
	}
	for _, those := range [][]known{exact, ends, holds} {
		if len(those) > 0 {
			return those
		}
	}
	return nil
}

// every lists the models of the settings and the price book, without duplicates. For vendors with the API of
// another vendor, models of the book count only with a key: a short name must not mean a model that can't be
// used here.
func every(list []Provider) []known {
	var out []known
	for _, p := range list {
		var ids []string
		if p.Dialect == "" || p.Ready {
			ids = p.prices().IDs(p.Name)
		}
		for _, id := range slices.Sorted(maps.Keys(p.Models)) {
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
		for _, id := range ids {
			out = append(out, known{p, id})
		}
	}
	return out
}

// withKey returns the models of providers that are ready, or all if none is.
func withKey(list []known) []known {
	if those := slices.DeleteFunc(slices.Clone(list), func(k known) bool { return !k.provider.Ready }); len(those) > 0 {
		return those
	}
	return list
}

// newest keeps only the first of a provider's models that differ by version.
func newest(list []known) []known {
	var out []known
	seen := map[string]bool{}
	for _, k := range list {
		words := slices.DeleteFunc(strings.Split(k.id, "-"), func(w string) bool { return w == "" || w[0] >= '0' && w[0] <= '9' })
		line := k.provider.Name + "/" + strings.Join(words, "-")
		if !seen[line] {
			seen[line] = true
			out = append(out, k)
		}
	}
	return out
}

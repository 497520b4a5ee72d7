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

// known is a model that a name without a provider can mean.
type known struct {
	provider Provider
	id       string
}

func (k known) route() string { return k.provider.Name + "/" + k.id }

// Route is the "provider/model" that a name without a provider stands for. It means a model of the
// price book, or one of the person's settings:
//
//	gpt-5, claude-opus-5-5-20260101   the id of a model, or of a snapshot
//	sonnet, flash-lite, claude-opus   words of an id: the newest version of it
//
// Providers that have a key go before those that lack one. It is an error if several models remain.
// A name with a provider, that of a provider, and a name that nothing is known of stay as they are.
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

// meant are the models with the id; else those whose id ends with the name, else those whose id has
// it among its words.
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

// every lists the models that the settings and the price book name, once each. Of vendors that speak another's wire,
// those of the book count where a key is there: a short name is not to mean a model that nobody here can ask.
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

// withKey are those of providers that are ready, if there are any.
func withKey(list []known) []known {
	if those := slices.DeleteFunc(slices.Clone(list), func(k known) bool { return !k.provider.Ready }); len(those) > 0 {
		return those
	}
	return list
}

// newest keeps the first of the models of each provider that differ by their version alone.
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

package plugin

import "context"

// Enabled is a plugin that sessions use, with its parts.
type Enabled struct {
	Plugin
	Parts
}

// Enabled lists the enabled plugins, and the problems of plugins.
func (s *Store) Enabled(ctx context.Context) (list []Enabled, problems []string) {
	all, err := s.List(ctx)
	if err != nil {
		problems = append(problems, err.Error())
	}
	for _, p := range all {
		problems = append(problems, p.Problems...)
		if p.Enabled {
			parts := p.Parts()
			list = append(list, Enabled{p, parts})
			problems = append(problems, parts.Problems...)
		}
	}
	return list, problems
}

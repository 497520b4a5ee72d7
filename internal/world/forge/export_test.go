package forge

import "context"

// Checks lists the checks of a commit.
func (s Site) Checks(ctx context.Context, project, commit string) ([]Check, error) {
	_, a, err := s.open(ctx, project)
	if err != nil {
		return nil, err
	}
	return a.checks(ctx, project, commit)
}

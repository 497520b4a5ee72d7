package knowledge

import "context"

// Files lists the files of a workspace for completion, as [Files] does.
func (k *Base) Files(ctx context.Context, root string) []string { return Files(ctx, root) }

package console

import (
	"context"

	"github.com/inspan/inspan/internal/desktop"
)

// Clipboard is the image in the clipboard of the person at the terminal, as
// [desktop.Clipboard] has it.
func Clipboard(ctx context.Context) ([]byte, error) { return desktop.Clipboard(ctx) }

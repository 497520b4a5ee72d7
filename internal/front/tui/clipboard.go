package tui

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/inspan/inspan/internal/world/sandbox"
)

// clipboard returns the image in the desktop's clipboard as a PNG, read by a helper program. It returns nil if
// the clipboard holds no image.
func clipboard(ctx context.Context) ([]byte, error) {
	x11 := []string{"xclip", "-selection", "clipboard", "-t", "image/png", "-o"}
	commands := [][]string{x11}
	switch {
	case runtime.GOOS == "darwin":
		commands = [][]string{{"pngpaste", "-"}}
	case os.Getenv("WAYLAND_DISPLAY") != "":
		commands = [][]string{{"wl-paste", "--type", "image/png"}, x11}
	}
	for _, args := range commands {
		png, _, code, err := sandbox.Capture(ctx, nil, args...)
		switch {
		case err != nil:
			return nil, err
		case code == notFound:
			continue
		case code != 0 || !bytes.HasPrefix(png, []byte("\x89PNG")):
			return nil, nil // they fail if there is no image
		}
		return png, nil
	}
	var names []string
	for _, args := range commands {
		names = append(names, args[0])
	}
	return nil, fmt.Errorf("install %s", strings.Join(names, " or "))
}

// notFound is the exit code of a shell that does not find a program.
const notFound = 127

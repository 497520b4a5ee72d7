package connect

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/inspan/inspan/internal/world/sandbox"
)

// Browse opens an address in the person's browser: the one that $BROWSER names, a list of commands in which %s
// stands for the address, or the default one.
func Browse(ctx context.Context, address string) error {
	for command := range strings.SplitSeq(os.Getenv("BROWSER"), string(os.PathListSeparator)) {
		args := strings.Fields(strings.ReplaceAll(command, "%s", address))
		if len(args) == 0 {
			continue
		}
		if !strings.Contains(command, "%s") {
			args = append(args, address)
		}
		if _, _, code, err := sandbox.Capture(ctx, nil, args...); err == nil && code == 0 {
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
	_, complaints, code, err := sandbox.Capture(ctx, nil, args...)
	if err == nil && code != 0 {
		err = fmt.Errorf("the browser could not be opened: %s", strings.TrimSpace(complaints))
	}
	return err
}

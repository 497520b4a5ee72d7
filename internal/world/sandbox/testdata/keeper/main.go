// Command keeper is a keeper and nothing else. Tests build it without libraries,
// as the first process of containers must be.
package main

import (
	"os"

	"github.com/inspan/inspan/internal/world/sandbox"
)

func main() {
	ran, code := sandbox.Keeper()
	if !ran {
		code = 2
	}
	os.Exit(code)
}

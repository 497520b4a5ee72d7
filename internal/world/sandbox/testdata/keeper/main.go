// Command keeper is only a keeper. Tests build it without libraries, as required for the first process of
// containers.
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

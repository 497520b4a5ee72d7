package coding

import (
	"errors"
	"os"

	"github.com/inspan/inspan/internal/install/app"
)

// Sandbox says how commands are kept to what they were judged by. It comes from [Init] or
// [NoSandbox]. The zero value is neither.
type Sandbox struct {
	self string // the program that keeps processes
	off  bool
}

// Init returns the sandbox of the operating system. It must be the first call in main, and in
// TestMain of tests: for each command the sandbox starts this program again, without arguments,
// as the command's keeper, and for each script of a model with one that only Init knows. In such a
// process Init does that work, and does not return. Code before Init in main runs there, too.
//
// On a machine that can't build the sandbox, or not all of it, commands that would need it ask.
func Init() Sandbox {
	if ran, code := app.Helper(); ran {
		os.Exit(code)
	}
	return Sandbox{self: app.Self()}
}

// NoSandbox says that commands run without a sandbox, as with sandbox.off in the settings: they
// can do what the program can, so more of them ask. It is for machines that are thrown away, and
// for programs whose main can't call [Init].
func NoSandbox() Sandbox { return Sandbox{off: true} }

func (s Sandbox) check() error {
	if s == (Sandbox{}) {
		return errors.New("option Sandbox is not set: call coding.Init first in main and pass on what it returns, " +
			"or set coding.NoSandbox() to run commands without a sandbox")
	}
	return nil
}

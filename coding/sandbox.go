package coding

import (
	"errors"
	"os"

	"github.com/inspan/inspan/internal/install/app"
)

// Sandbox is how commands are confined to their verdict. Get it from [Init] or [NoSandbox]; the zero value is
// invalid.
type Sandbox struct {
	self string // the program that keeps processes
	off  bool
}

// Init returns the sandbox of the operating system. It must be the first call in main, and in TestMain of tests:
// the sandbox starts this program again for each command, as its keeper, without arguments, and for each script of
// a model, with an argument that only Init knows. In such a process Init does that work and does not return. Code
// before Init in main runs there too.
//
// If the machine can't build the sandbox, or only a part of it, commands that would need it ask.
func Init() Sandbox {
	if ran, code := app.Helper(); ran {
		os.Exit(code)
	}
	return Sandbox{self: app.Self()}
}

// NoSandbox runs commands without a sandbox, like sandbox.off in the settings: they can do whatever the program
// can, so more of them ask. Use it on disposable machines, and in programs whose main can't call [Init].
func NoSandbox() Sandbox { return Sandbox{off: true} }

func (s Sandbox) check() error {
	if s == (Sandbox{}) {
		return errors.New("option Sandbox is not set: call coding.Init first in main and pass on what it returns, " +
			"or set coding.NoSandbox() to run commands without a sandbox")
	}
	return nil
}

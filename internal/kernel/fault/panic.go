// Package fault turns failures of foreign code into values: a panic becomes an error, and an error gets a class.
//
// Tools, judges, hooks, models and the functions of an agent and a conductor may panic. Every call of one of them
// defers Recover, so a panic ends neither the program nor the session. The caller turns the error into a failed call, a
// denial, a failed reply or the end of the run. Afterwards the session can be run again.
package fault

import (
	"fmt"
	"runtime/debug"
	"strings"
)

// stackLines is how many lines of a stack an error shows.
const stackLines = 20

// Panic is a panic as an error.
type Panic struct {
	what  string // the code that panicked
	value any
	stack []byte
}

// Error names the code that panicked, the value and the place.
func (p *Panic) Error() string {
	lines := strings.SplitN(string(p.stack), "\n", stackLines+1)
	return p.Brief() + "\n" + strings.Join(lines[:min(stackLines, len(lines))], "\n")
}

// Brief is Error without the stack.
func (p *Panic) Brief() string { return fmt.Sprintf("%s crashed: %v", p.what, p.value) }

// Recover stores a panic in err as a [*Panic]; it must be deferred. If consumer is not nil and true, the panic
// comes from the consumer of an iterator and continues to it.
func Recover(what string, consumer *bool, err *error) {
	if consumer != nil && *consumer {
		return
	}
	if p := recover(); p != nil {
		*err = &Panic{what: what, value: p, stack: debug.Stack()}
	}
}

// Consumer is the consumer of an iterator. It gets no more values once it has stopped iterating or panicked.
type Consumer[K any] struct {
	Yield   func(K, error) bool
	Running bool // its code is running, or has panicked; for [Recover]
	gone    bool // it has stopped iterating
}

// Show yields to the consumer, and reports whether it wants more.
func (c *Consumer[K]) Show(k K, err error) bool {
	if c.Running || c.gone {
		return false
	}
	c.Running = true
	c.gone = !c.Yield(k, err)
	c.Running = false
	return !c.gone
}

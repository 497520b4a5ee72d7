// Package ability defines what processes of the sandbox can do beyond [tool.Process]. Other environments need none
// of it: code that uses an ability checks for it first, and does less without it.
package ability

import "github.com/inspan/inspan/tool"

// Readier is an optional interface of [tool.Procs] that need time to prepare before the first command runs in a box,
// or the first one after a while.
type Readier interface {
	// Ready prepares boxes soon, in the background, so that commands with the same box start sooner. Others are
	// not affected. Without arguments, it begins no further preparations.
	Ready(boxes ...tool.Box)
}

// Leaver is an optional interface of a [tool.Process] that knows whether descendants remain, so that processes
// without any need not be remembered.
type Leaver interface {
	// Left waits for the end of the process and reports whether Kill still has descendants to end.
	Left() bool
}

// Keepable is an optional interface of a [tool.Process] that can outlive the program that started it.
type Keepable interface {
	// Keep lets the process and its descendants continue inside their sandbox when this program ends. Their
	// later output is written to the file output, up to a limit; their standard input ends. Keep first calls
	// register with the process's identity: if that fails they are not kept. After Keep, Wait returns an error
	// and Kill does nothing; [Kept] says how to end them.
	//
	// Ports on which they listen in a network of their own, now or later, can be reached at the same ports of
	// this machine's loopback addresses until they end. Keep returns the current ports; without a network of
	// their own, none.
	Keep(output string, register func(Kept) error) ([]tool.Port, error)
}

// Kept identifies a process that outlives the program that started it, with all its descendants.
type Kept struct {
	PID  int    `json:"pid"`  // of the keeper, which ends them all when it is told to end
	Mark string `json:"mark"` // tells this process from others that had or will have its PID
}

// Refuser is an optional interface of a [tool.Process] that can report what its sandbox blocked.
type Refuser interface {
	// Refused lists, in words for people and models, what the sandbox blocked or undid. It is complete once the
	// process and its descendants have ended.
	Refused() []string
}

// Fetcher is an optional interface of a [tool.Process] that may fetch from package registries.
type Fetcher interface {
	// Fetched returns the number of its requests to registries, by host. It is complete once the process and
	// its descendants have ended.
	Fetched() map[string]int
}

package protocol

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/internal/world/sandbox/walls"
	"github.com/inspan/inspan/tool"
)

// An inspan and its keepers talk over a pair of connected sockets: lines of
// JSON both ways. A keeper runs one command after another. The first line about a
// command is its order, and its descriptors travel with it. Every line bears the number
// of the command that it is about: one that comes too late for that is about no other.

// Order tells a keeper what to start and within which walls. Paths are
// absolute and resolved.
type Order struct {
	walls.Plan
	Path string // of the program
	Args []string
	Dir  string
	Env  []string

	Map    places.Map
	Box    tool.Box
	Proxy  bool // accept connections for a proxy outside
	TTY    bool // its standard input is the terminal that is to control it
	Serves bool // the keeper is to run nothing after it

	Stands bool // the walls of the order before stand, and are just those of this one

	Container bool             // the keeper is in a container, which is what Level asks for
	Image     bool             // Env comes on top of what the image says
	Walls     []walls.Expected // what must be found in the container
}

// Alone reports whether the box is made for this command and serves no other.
func (o Order) Alone() bool { return o.Container || o.Overlays() || o.Proxy || o.Serves }

// Request is a line to the keeper.
type Request struct {
	Op    string
	N     int    `json:",omitempty"` // of the command
	Order *Order `json:",omitempty"` // opRun
	Files int    `json:",omitempty"` // opRun: so many descriptors of the command come along
	Pipe  bool   `json:",omitempty"` // opKeep: behind the file comes the output to write to it
	Throw bool   `json:",omitempty"` // opSpawn: the keeper is to throw away what its box changes
	Four  int    `json:",omitempty"` // opOffer: so many sockets for IPv4 come along
	Six   int    `json:",omitempty"` // opOffer: and behind them these for IPv6
}

// Descriptors is how many come along with the line.
func (r Request) Descriptors() int {
	switch {
	case r.Op == OpKeep && r.Pipe:
		return 2
	case r.Op == OpKeep:
		return 1
	}
	return r.Files + r.Four + r.Six
}

// Requests.
const (
	OpRun  = "run"  // start a command
	OpEnd  = "end"  // ask the group to end, kill what is left two seconds later
	OpKill = "kill" // kill all descendants
	OpLeft = "left" // tell whether there are descendants
	OpKeep = "keep" // go on when the connection ends; a file for the output comes along

	OpOffer = "offer" // offer the ports that the command listens on; sockets of this machine's network come along

	OpSpawn = "spawn" // to a holder: start a keeper for the connection that comes along
)

// Report is a line from the keeper.
type Report struct {
	Op     string
	N      int    `json:",omitempty"` // of the command
	Pid    int    `json:",omitempty"` // opStarted
	Errno  int    `json:",omitempty"` // opFailed
	Text   string `json:",omitempty"` // opFailed: what failed; empty if it is the program itself. opRefused: what was refused
	Status int    `json:",omitempty"` // opExited: as wait4 tells it
	Left   bool   `json:",omitempty"` // opLeft, opExited: there are other descendants
	Again  bool   `json:",omitempty"` // opGone: the keeper is as good as new, within the same walls

	Ports []tool.Port `json:",omitempty"` // opKept
}

// Reports.
const (
	OpStarted    = "started"
	OpFailed     = "failed"
	OpExited     = "exited" // the command itself has ended
	OpGone       = "gone"   // no descendant is left; the last line about the command
	OpConnection = "conn"   // a connection for the proxy comes along
	OpRefused    = "refused"
	OpKept       = "kept" // the keeper goes on when the connection ends
)

// MaxPorts is how many ports of one command are offered.
const MaxPorts = 16

// maxRights is how many descriptors come along with a line at most.
const maxRights = max(2*MaxPorts, 8)

var errClosed = errors.New("the connection has ended")

// lines reads lines and descriptors from a socket.
type Lines struct {
	Receive func(p, oob []byte) (n, oobn int, err error)
	buf     []byte
	fds     []int
	oob     [rightsSize]byte
	chunk   [4 << 10]byte // what comes at once
}

// rightsSize is the length of a control message with maxRights descriptors, as by cmsg(3).
const rightsSize = unix.SizeofCmsghdr + 8 + maxRights*4

// Next decodes the next line into v.
func (l *Lines) Next(v any) error {
	scanned := 0
	for {
		for i := scanned; i < len(l.buf); i++ {
			if l.buf[i] != '\n' {
				continue
			}
			line := l.buf[:i]
			err := unmarshal(line, v)
			l.buf = append([]byte(nil), l.buf[i+1:]...)
			return err
		}
		scanned = len(l.buf)
		if err := l.more(); err != nil {
			return err
		}
	}
}

func (l *Lines) more() error {
	n, oobn, err := l.Receive(l.chunk[:], l.oob[:])
	if err != nil {
		return err
	}
	l.buf = append(l.buf, l.chunk[:n]...)
	if oobn > 0 {
		l.fds = append(l.fds, rights(l.oob[:oobn])...)
	}
	if n == 0 {
		return errClosed
	}
	return nil
}

// rights returns the descriptors in a control message.
func rights(oob []byte) []int {
	var out []int
	messages, err := syscall.ParseSocketControlMessage(oob)
	if err != nil {
		return nil
	}
	for i := range messages {
		fds, err := syscall.ParseUnixRights(&messages[i])
		if err == nil {
			out = append(out, fds...)
		}
	}
	return out
}

// Take returns the oldest descriptor that came along, -1 if there is none.
func (l *Lines) Take() int {
	if len(l.fds) == 0 {
		return -1
	}
	fd := l.fds[0]
	l.fds = l.fds[1:]
	return fd
}

// TakeAll returns the oldest of the descriptors that came along, n at most.
func (l *Lines) TakeAll(n int) []int {
	n = min(n, len(l.fds))
	out := l.fds[:n:n]
	l.fds = l.fds[n:]
	return out
}

// Encode makes a line.
func Encode(v any) ([]byte, error) {
	data, err := Marshal(v)
	return append(data, '\n'), err
}

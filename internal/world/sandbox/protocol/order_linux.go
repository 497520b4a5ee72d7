package protocol

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/internal/world/sandbox/walls"
	"github.com/inspan/inspan/tool"
)

// Inspan and its keepers communicate over a pair of connected sockets, with lines of JSON in both directions. A
// keeper runs one command after another. The first line about a command is its order, sent with the command's
// descriptors. Every line contains the number of its command, so that a late line never concerns another.

// Order tells a keeper what to start and in which box. Paths are absolute and resolved.
type Order struct {
	walls.Plan
	Path string // of the program
	Args []string
	Dir  string
	Env  []string

	Map    places.Map
	Box    tool.Box
	Proxy  bool // accept connections for a proxy outside
	TTY    bool // its standard input is its controlling terminal
	Serves bool // the keeper runs no other command after it

	Stands bool // the box of the previous order exists, and is identical

	Container bool             // the keeper is in a container that provides the Level
	Image     bool             // Env is added to the image's environment
	Walls     []walls.Expected // expected state of the container
}

// Alone reports whether the box serves only this command.
func (o Order) Alone() bool { return o.Container || o.Overlays() || o.Proxy || o.Serves }

// Request is a line to the keeper.
type Request struct {
	Op    string
	N     int    `json:",omitempty"` // of the command
	Order *Order `json:",omitempty"` // opRun
	Files int    `json:",omitempty"` // opRun: number of descriptors of the command sent with it
	Pipe  bool   `json:",omitempty"` // opKeep: after the file comes the output to write to it
	Throw bool   `json:",omitempty"` // opSpawn: the keeper discards the changes of its box
	Four  int    `json:",omitempty"` // opOffer: number of sockets for IPv4 sent with it
	Six   int    `json:",omitempty"` // opOffer: number of sockets for IPv6 after these
}

// Descriptors returns the number of descriptors sent with the line.
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
	OpEnd  = "end"  // terminate the group, kill the rest two seconds later
	OpKill = "kill" // kill all descendants
	OpLeft = "left" // report whether there are descendants
	OpKeep = "keep" // continue when the connection ends; sent with a file for the output

	OpOffer = "offer" // offer the ports that the command listens on; sent with sockets of this machine's network

	OpSpawn = "spawn" // to a holder: start a keeper for the connection sent with it
)

// Report is a line from the keeper.
type Report struct {
	Op     string
	N      int    `json:",omitempty"` // of the command
	Pid    int    `json:",omitempty"` // opStarted
	Errno  int    `json:",omitempty"` // opFailed
	Text   string `json:",omitempty"` // opFailed: the failed step; empty if it is the program itself. opRefused: the refusal
	Status int    `json:",omitempty"` // opExited: as returned by wait4
	Left   bool   `json:",omitempty"` // opLeft, opExited: there are other descendants
	Again  bool   `json:",omitempty"` // opGone: the keeper can run another command in the same box

	Ports []tool.Port `json:",omitempty"` // opKept
}

// Reports.
const (
	OpStarted    = "started"
	OpFailed     = "failed"
	OpExited     = "exited" // the command itself has ended
	OpGone       = "gone"   // no descendant is left; the last line about the command
	OpConnection = "conn"   // sent with a connection for the proxy
	OpRefused    = "refused"
	OpKept       = "kept" // the keeper continues when the connection ends
)

// MaxPorts bounds the offered ports of one command.
const MaxPorts = 16

// maxRights bounds the descriptors sent with a line.
const maxRights = max(2*MaxPorts, 8)

var errClosed = errors.New("the connection has ended")

// Lines reads lines and descriptors from a socket.
type Lines struct {
	Receive func(p, oob []byte) (n, oobn int, err error)
	buf     []byte
	fds     []int
	oob     [rightsSize]byte
	chunk   [4 << 10]byte // one read
}

// rightsSize is the length of a control message with maxRights descriptors, see cmsg(3).
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

// Take returns the oldest received descriptor, -1 if there is none.
func (l *Lines) Take() int {
	if len(l.fds) == 0 {
		return -1
	}
	fd := l.fds[0]
	l.fds = l.fds[1:]
	return fd
}

// TakeAll returns the oldest received descriptors, at most n.
func (l *Lines) TakeAll(n int) []int {
	n = min(n, len(l.fds))
	out := l.fds[:n:n]
	l.fds = l.fds[n:]
	return out
}

// Encode encodes a line.
func Encode(v any) ([]byte, error) {
	data, err := Marshal(v)
	return append(data, '\n'), err
}

// Package netguard guards every address that is fetched on behalf of a model,
// the proxy through which boxed processes reach the net, and, the other way
// round, our own servers against who may not talk to them ([Gate]).
//
// The rules for what is reached:
//
//   - An address is parsed once, by one parser, and has one spelling. What can
//     be read in two ways is refused: see [Check]. The very string that is
//     matched against a list of hosts is the one that is resolved.
//   - A host is resolved once. Answers that [Denied] names are dropped, and the
//     connection goes to an answer that was checked, never to the name. The
//     last address the system is told of is checked again.
//   - A redirect is a new request: it passes everything the first one passed.
//   - No connection is used twice and no proxy is taken from the environment,
//     so there is no way around a check.
//   - What comes back is bounded in bytes, before and after decompression, and
//     in time. It is data. Whoever shows it marks it as such and escapes it.
//
// What the guard can't see: an address behind the translator of a network that
// chose its own NAT64 prefix, and the host name inside an encrypted tunnel. Who
// may reach one host of a shared front may reach all that lie behind it.
package netguard

import "fmt"

// RefusedError says that a host may not be reached. No packet was sent to it;
// where the reason is its address, its name was looked up.
type RefusedError struct {
	Host   string // in canonical form, where it has one
	Reason string // for a model or a person
	Err    error  // what [Guard.Allow] said; may be nil
}

// Error names the host and the reason.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("host %q may not be reached: %s", e.Host, e.Reason)
}

// Unwrap returns what [Guard.Allow] said.
func (e *RefusedError) Unwrap() error { return e.Err }

// Package netguard guards every address that is fetched on behalf of a model and the proxy through which
// sandboxed processes reach the network. In the other direction it protects our own servers from unauthorized
// clients ([Gate]).
//
// The rules for requests:
//
//   - An address is parsed once, by one parser, and has one spelling. Ambiguous addresses are rejected: see [Check]. Exactly the string that is matched against a list of hosts is resolved.
//   - A host is resolved once. Addresses that [Denied] names are dropped, and the connection goes to a checked address, never to the name. The final address passed to the system is checked again.
//   - A redirect is a new request: it passes all checks of the first one.
//   - No connection is reused and no proxy is taken from the environment, so there is no way around a check.
//   - Responses are bounded in bytes, before and after decompression, and in time. They are data; code that shows them marks and escapes them.
//
// The guard can't detect an address behind the translator of a network with its own NAT64 prefix, or the host name
// inside an encrypted tunnel. A process that may reach one host of a shared front end may reach all hosts after it.
package netguard

import "fmt"

// RefusedError says that a host may not be reached. No packet was sent to it; if its address is the reason, its
// name was looked up.
type RefusedError struct {
	Host   string // in canonical form, if it has one
	Reason string // for a model or a person
	Err    error  // the error of [Guard.Allow]; may be nil
}

// Error names the host and the reason.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("host %q may not be reached: %s", e.Host, e.Reason)
}

// Unwrap returns the error of [Guard.Allow].
func (e *RefusedError) Unwrap() error { return e.Err }

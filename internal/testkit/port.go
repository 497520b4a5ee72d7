package testkit

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// Address returns an address of this machine where a program can listen later, repeatedly. The system gives its
// port to no other program: ports for connections and for listeners that accept any port begin at 32768.
func Address(t testing.TB) string {
	t.Helper()
	for range 100 {
		addr := fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(22_000)) //nolint:gosec // any port
		if l, err := net.Listen("tcp", addr); err == nil {
			_ = l.Close()
			return addr
		}
	}
	t.Fatal("no port is free")
	return ""
}

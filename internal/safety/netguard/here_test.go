package netguard_test

import (
	"net/netip"
	"testing"

	"github.com/inspan/inspan/internal/safety/netguard"
)

// TestForServersOfThisMachine checks that only a server at this machine may lead to this machine, and that the ranges
// of the person are left as they are.
func TestForServersOfThisMachine(t *testing.T) {
	local := append(make([]netip.Prefix, 0, 4), netip.MustParsePrefix("10.0.0.0/8"))
	for address, here := range map[string]bool{
		"http://localhost:8080/mcp": true, "http://127.0.0.1": true, "https://[::1]:443/x": true, "http://127.8.0.1:1": true,
		"https://mcp.example.com": false, "http://localhost.example.com": false, "http://10.0.0.1": false, "://": false, "": false,
	} {
		g := netguard.For(address, local)
		if g.Local[0] != local[0] || (len(g.Local) == 3) != here || !here && len(g.Local) != 1 {
			t.Errorf("%q: %v", address, g.Local)
		}
	}
	if more := local[:2]; more[1].IsValid() {
		t.Error("the ranges of the person were written to:", more)
	}
}

// TestIsHere checks which hosts are this machine by their text alone.
func TestIsHere(t *testing.T) {
	for host, local := range map[string]bool{
		"localhost": true, "LocalHost": true, "127.0.0.1": true, "127.9.8.7": true, "::1": true, "::ffff:127.0.0.1": true,
		"127.evil.example": false, "127.0.0.1.evil.example": false, "127.1": false, "127": false, "localhost.evil.example": false,
		"evil.localhost": false, "0.0.0.0": false, "::": false, "10.0.0.1": false, "": false,
	} {
		if netguard.IsHere(host) != local {
			t.Errorf("%q: %v", host, !local)
		}
	}
}

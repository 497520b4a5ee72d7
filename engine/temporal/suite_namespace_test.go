package temporal_test

import (
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"

	"github.com/inspan/inspan/engine/postgres/testkit"
)

// needsNamespaces skips where no network namespace can be made.
func needsNamespaces(t *testing.T, _ *round, _ *conf) {
	name := fmt.Sprint("inspan", os.Getpid())
	if out, err := exec.Command("ip", "netns", "add", name).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: only root can make network namespaces, by iproute2: %v: %s", err, out)
	}
	run(t, "ip", "netns", "del", name)
	if _, err := exec.LookPath("iptables"); err != nil {
		t.Skip("SKIPPED: iptables is not installed")
	}
}

func run(t testing.TB, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Errorf("%s %q: %v: %s", name, args, err, out)
	}
}

var networks atomic.Int64

// inNamespace starts a worker in a network of its own, whose one link to this machine can be dropped.
func inNamespace(r *round, c conf) *process {
	t := r.t
	n := (os.Getpid()*16 + int(networks.Add(1))) % 4096
	name, host, peer := fmt.Sprint("inspan", n), fmt.Sprint("ih", n), fmt.Sprint("ip", n)
	net := fmt.Sprintf("10.%d.%d", 180+n/256, n%256)
	run(t, "ip", "netns", "add", name)
	t.Cleanup(func() { run(t, "ip", "netns", "del", name) })
	run(t, "ip", "link", "add", host, "type", "veth", "peer", "name", peer, "netns", name)
	run(t, "ip", "addr", "add", net+".1/24", "dev", host)
	run(t, "ip", "link", "set", host, "up")
	run(t, "ip", "-n", name, "addr", "add", net+".2/24", "dev", peer)
	run(t, "ip", "-n", name, "link", "set", peer, "up")
	run(t, "ip", "-n", name, "link", "set", "lo", "up")
	database, err := testkit.NewProxyTo(net+".1", "unix", cluster.Socket())
	if err != nil {
		t.Fatal(err)
	}
	server, err := testkit.NewProxyTo(net+".1", "tcp", engineAddress())
	if err != nil {
		t.Fatal(err)
	}
	cut := func(parted bool) error {
		how := "-D"
		if parted {
			how = "-I"
		}
		for _, args := range [][]string{{"INPUT", "-i"}, {"OUTPUT", "-o"}} {
			run(t, "iptables", "-w", how, args[0], args[1], host, "-j", "DROP")
		}
		return nil
	}
	return r.behind(c, database, server, cut, "ip", "netns", "exec", name, os.Args[0])
}

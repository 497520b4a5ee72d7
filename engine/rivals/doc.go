// Package rivals has other durable engines run the sessions of engine/temporal's benchmarks, for
// comparison (docs/SCALE.md). It is a module of its own, so that nothing else depends on them. There is
// nothing in it but benchmarks.
package rivals

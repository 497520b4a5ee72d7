// Package lab finds out which harness, model or change is better, with checkers and statistics. Only the
// command imports it.
//
// Begin with eval.
//
//	stats  statistics of comparisons: tests, intervals, power; pure
//	eval   suites of tasks, their runs, graders and comparisons, and changes that must prove themselves
//	bench  inspan and other agents, measured from outside
package lab

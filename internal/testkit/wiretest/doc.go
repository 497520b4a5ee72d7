// Package wiretest has the tests that every adapter of a vendor runs on its wire: its requests, how it reads
// streams that break off, refusals, deadlines and keys. They add to [harnesstest.TestModel], which any model
// passes.
package wiretest

// Package base is the ground that every other room stands on: text, files, locks and framing. It knows nothing of
// agents.
//
// Begin with keep: its locks and atomic writes are what a crash leaves whole.
//
//	text     invisible characters; cleaning, cutting and counting text; pure
//	keep     locks, atomic writes, bounded reads, digests of folders, bounded writers
//	jsonrpc  JSON-RPC with one peer, for language servers and editors
package base

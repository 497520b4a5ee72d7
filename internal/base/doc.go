// Package base provides the foundation of all other packages: text, files, locks and framing. It knows nothing
// of agents.
//
// Begin with keep: its locks and atomic writes keep files consistent in a crash.
//
//	text     invisible characters; cleaning, cutting, comparing and counting text; pure
//	keep     locks, atomic writes, bounded reads, digests of folders, bounded writers
//	kin      which session works for which, by their ids; pure
//	repair   JSON that models write, mended; pure
//	memo     encoded texts, kept for the next request
//	rawjson  JSON that is cut without being parsed, or decoded strictly; pure
//	jsonrpc  JSON-RPC with one peer, for language servers and editors
package base

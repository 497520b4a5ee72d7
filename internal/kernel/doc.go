// Package kernel is the fold and the only driver: what a session is, what must happen next, and the loop that does
// it. It names no tool and no vendor.
//
// Begin with loop (state.go, next.go), then drive, whose first file says in which order.
//
//	session  the store on disk: logs, blobs, leases, index
//	loop     the fold: state, Apply, Next; pure
//	drive    the driver: performs what the fold asks for, and appends what came of it
//	request  asking a model: images, retries, the prompt cache, replies as events
//	wrap     what is put around a tool
//	hold     a call that runs reaches no more than its verdict
//	redact   no secret reaches the log, the model or a watcher
//	compact  compaction, and the check of its result; pure
//	fault    panics of embedders' code as errors, and classes of errors
package kernel

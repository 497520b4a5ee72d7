// Package kernel has the fold and the only driver: the state of a session, its next action, and the loop that
// performs it. It names no tool and no vendor.
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

package event

// Taint says that words come from a session that has seen text by strangers, or private data from beyond the
// workspace. Both spread to every session that reads the words.
type Taint struct {
	Untrusted bool `json:"untrusted,omitempty"` // it may repeat text by strangers
	Private   bool `json:"private,omitempty"`   // it may repeat private data from beyond the workspace
}

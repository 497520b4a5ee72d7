package event

// Corpus is the text that a session answers questions about, instead of doing the usual work. The zero value
// means the usual work.
type Corpus struct {
	Sources []Source `json:"sources"`
	// Small is the model that reads pieces, as the person named it; empty means the one from the settings.
	Small string `json:"small,omitempty"`
	// Programs are the limits of programs that the agent answers by; nil means it answers by tools that search and
	// read.
	Programs *Programs `json:"programs,omitempty"`
}

// Programs are the limits of the programs with which a session answers from a Corpus.
type Programs struct {
	Depth  int `json:"depth"`            // 0: they ask no model; 1: they do
	Asks   int `json:"asks"`             // how often, in the whole session
	Tokens int `json:"tokens,omitempty"` // of these requests together; 0: not limited
	// Plain is the number of tokens up to which a text is not left to programs: one request has all of it.
	Plain int `json:"plain,omitempty"`
}

// Source is a text of a Corpus.
type Source struct {
	Name string `json:"name"` // as the person named it
	// Blob is the text of a page as of the opening of the session, in the session's blobs; if empty, the source
	// is read in place.
	Blob string `json:"blob,omitempty"`
}

// Asked reports whether there is a corpus.
func (c Corpus) Asked() bool { return len(c.Sources) > 0 }

package event

// Corpus is the text that a session answers questions about, instead of doing the usual work. The zero value
// means the usual work.
type Corpus struct {
	Sources []Source `json:"sources"`
	// Small is the model that reads pieces, as the person named it; empty means the one from the settings.
	Small string `json:"small,omitempty"`
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

package event

// Corpus is what a session answers questions from, in the place of the usual work. The zero value:
// it does the usual work.
type Corpus struct {
	Sources []Source `json:"sources"`
	// Small is the model that reads pieces, as the person has named it; empty: that of the settings.
	Small string `json:"small,omitempty"`
}

// Source is a text of a Corpus.
type Source struct {
	Name string `json:"name"` // as the person has named it
	// Blob is the text of a page, in the blobs of the session, as it was when the session was
	// opened; empty: the source is read where it is.
	Blob string `json:"blob,omitempty"`
}

// Asked reports whether there is anything to answer from.
func (c Corpus) Asked() bool { return len(c.Sources) > 0 }

package llm

// Consulted is one request to a model that is not the conversation's own: for a summary of it,
// a verdict on a call, or the choice of a model. What was spent on it is counted where it stands.
type Consulted struct {
	Purpose  string  `json:"purpose,omitempty"` // as that of the [Request]
	Route    string  `json:"route"`             // "provider/model"
	Usage    Usage   `json:"usage,omitzero"`
	Cost     float64 `json:"cost,omitempty"`     // US dollars at the price of the day
	Unpriced bool    `json:"unpriced,omitempty"` // the price is not known; Cost is 0
	Millis   int64   `json:"millis,omitempty"`   // from request to answer, or to its failure
	Cause    Kind    `json:"cause,omitempty"`    // why there was no answer; empty: there was
}

package llm

// Consulted is one request to a model outside the conversation: for a summary, a verdict on a call, or the choice
// of a model. The struct that holds it says where its cost is counted.
type Consulted struct {
	Purpose  string  `json:"purpose,omitempty"` // as in [Request]
	Route    string  `json:"route"`             // "provider/model"
	Usage    Usage   `json:"usage,omitzero"`
	Cost     float64 `json:"cost,omitempty"`     // US dollars, at the price of the day
	Unpriced bool    `json:"unpriced,omitempty"` // the price is unknown, and Cost is 0
	Millis   int64   `json:"millis,omitempty"`   // from the request to the answer or the failure
	Cause    Kind    `json:"cause,omitempty"`    // why there was no answer; empty if there was
}

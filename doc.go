// Package inspan is an agent harness: everything around a language model that
// makes it an agent.
//
// A session is an append-only list of events; nothing else is state. The loop
// is a pure fold over them that names the next action. A driver performs it,
// appends the outcome, and repeats. All other parts read the same events.
//
// The smallest agent has a model and nothing else:
//
//	agent := inspan.Agent{Model: &script.Model{}}
//	for e, err := range agent.Run(ctx, "Hello") {
//		if err != nil {
//			return err
//		}
//		if d, ok := e.Body.(event.Delta); ok {
//			fmt.Print(d.Text)
//		}
//	}
//
// There are three kinds of failure. A failing tool is data for the model. An
// unavailable model is an event, and the run stops as failed. A Go error means
// that the harness itself can't continue, for example because of a full disk.
//
// Until version 1.0 the Go API may change between minor versions; session logs
// written by any released version stay readable forever.
package inspan

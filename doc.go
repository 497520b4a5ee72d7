// Package inspan is an agent harness: everything around a language model that
// makes it an agent.
//
// A session is an append-only list of events; nothing else is state. The loop
// is a pure fold over them that names the next action. A driver performs it,
// appends the outcome, and repeats. All other parts read the same events.
//
// An agent on one page, with two tools, an approval, streaming, a budget, and a session that the next start
// continues:
//
//	add := tool.New("add", "Adds two numbers.", func(_ context.Context, _ *tool.Call, in struct{ A, B int }) (tool.Result, error) {
//		return tool.Text(fmt.Sprint(in.A + in.B)), nil
//	})
//	add.Effects = tool.NoEffects // a tool without declared effects asks a person
//	send := tool.New("send", "Sends a message.", func(_ context.Context, _ *tool.Call, in struct{ Text string }) (tool.Result, error) {
//		return tool.Text("sent: " + in.Text), nil
//	})
//	host := inspan.Host{Dir: filepath.Join(os.TempDir(), "agent"), Agent: func(context.Context, inspan.SessionSpec) (*inspan.Agent, error) {
//		return &inspan.Agent{
//			Model: &script.Model{}, Tools: []tool.Tool{add, send}, Limits: inspan.Limits{Cost: 0.50}, // US dollars
//			Approve: func(_ context.Context, call inspan.Pending) (bool, error) {
//				fmt.Printf("may %s run with %s? yes\n", call.Call.Name, call.Call.Args)
//				return true, nil
//			},
//		}, nil
//	}}
//	ctx := context.Background()
//	s, err := host.Open(ctx, "last") // of an earlier run of this program
//	if errors.Is(err, fs.ErrNotExist) {
//		s, err = host.New(ctx, ".")
//	}
//	if err != nil {
//		log.Fatal(err)
//	}
//	defer s.Close()
//	for e, err := range s.Run(ctx, event.Say(`call: add {"A":20,"B":22}`+"\n"+`call: send {"Text":"42"}`+"\nsay: Sent.")) {
//		if err != nil {
//			log.Fatal(err) // the harness can't continue; a failing tool or model is an event
//		}
//		switch b := e.Body.(type) {
//		case event.Delta:
//			fmt.Print(b.Text)
//		case event.Stopped:
//			fmt.Println("\nthe run ended:", b.Reason, b.Detail) // done, or which limit
//		}
//	}
//
// Most programs need no more than this. Rarely needed settings are in the last fields of [Agent]. Front ends also use
// [Conductor], [Watch] and [Status].
//
// The other packages, by who needs them:
//
//	tool, event                every program: its tools and their effects, and what happens in a session
//	coding, mcptool, files     the agent of the command; tools of MCP servers; file tools without a machine
//	llm and those below        models: adapters of vendors, models around models, and one without a network
//	workflow                   steps with and without a model, defined in Go or in a file
//	store, harnesstest         stores, logs, models and environments of your own, and the suites that prove them
//
// There are three kinds of failure. A failing tool is data for the model. An
// unavailable model is an event, and the run stops as failed. A Go error means
// that the harness itself can't continue, for example because of a full disk.
//
// Until version 1.0 the Go API may change between minor versions; session logs
// written by any released version stay readable forever.
package inspan

// Version is the version of this module.
const Version = "0.2.0"

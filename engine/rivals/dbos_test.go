package rivals

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
	_ "github.com/dbos-inc/dbos-transact-golang/dbos/driver/sqlite" // for URLs that begin with sqlite

	"github.com/inspan/inspan/engine/postgres/testkit"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/script"
)

const steps = 30 // calls of a session

// session is a run of an agent as a workflow of DBOS: each request to the model and each call of a tool is a durable
// step. It stores less than ours: no judging, no claims and no state.
type session struct {
	model  llm.Model
	ledger *os.File // each call appends a line
}

func (s *session) run(ctx dbos.Context, prompt string) (string, error) {
	messages := []llm.Message{{Role: llm.User, Parts: llm.Say(prompt)}}
	for {
		said, err := dbos.RunAsStep(ctx, func(ctx context.Context) (llm.Message, error) { return s.ask(ctx, messages) })
		if err != nil {
			return "", err
		}
		results := llm.Message{Role: llm.User}
		for _, call := range said.Parts.Calls() {
			text, err := dbos.RunAsStep(ctx, func(context.Context) (string, error) { return s.call(call) })
			if err != nil {
				return "", err
			}
			results.Parts = append(results.Parts, llm.Result{CallID: call.ID, Name: call.Name, Parts: llm.Say(text)})
		}
		if messages = append(messages, said, results); len(results.Parts) == 0 {
			return said.Parts.Text(), nil
		}
	}
}

func (s *session) ask(ctx context.Context, messages []llm.Message) (llm.Message, error) {
	for chunk, err := range s.model.Stream(ctx, llm.Request{Messages: messages}) {
		if err != nil {
			return llm.Message{}, err
		}
		if chunk.Reply != nil {
			return llm.Message{Role: llm.Assistant, Parts: chunk.Reply.Parts}, nil
		}
	}
	return llm.Message{}, errors.New("the model has not replied")
}

func (s *session) call(c llm.Call) (string, error) {
	_, err := fmt.Fprintf(s.ledger, "%s,%d\n", c.Args, os.Getpid())
	return "finished " + string(c.Args), err
}

// BenchmarkDBOS drives sessions of 30 calls side by side in one process. A step is a call with the
// request before it, as in BenchmarkSteps of engine/temporal.
func BenchmarkDBOS(b *testing.B) {
	for _, many := range []int{1, 100, 1000} {
		b.Run(fmt.Sprint("sqlite/sessions=", many), func(b *testing.B) {
			drive(b, many, "sqlite:"+filepath.Join(b.TempDir(), "dbos.db"), nil)
		})
		b.Run(fmt.Sprint("postgres/sessions=", many), func(b *testing.B) {
			cluster, err := testkit.Start("/tmp")
			if errors.Is(err, testkit.ErrNone) {
				b.Skip("SKIPPED: ", err)
			} else if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = cluster.Remove() }()
			if err := cluster.Exec(b.Context(), "postgres", "CREATE DATABASE rival"); err != nil {
				b.Fatal(err)
			}
			drive(b, many, cluster.URL("rival"), cluster)
		})
	}
}

func drive(b *testing.B, many int, database string, cluster *testkit.Cluster) {
	replies := ""
	for n := range steps {
		replies += fmt.Sprintf("-- reply --\ncall: step {\"N\":%d}\n", n)
	}
	model, err := script.Parse([]byte(replies + "-- reply --\nAll done.\n"))
	if err != nil {
		b.Fatal(err)
	}
	ledger, err := os.Create(filepath.Join(b.TempDir(), "ledger"))
	if err != nil {
		b.Fatal(err)
	}
	defer ledger.Close()
	ctx, err := dbos.NewContext(b.Context(), dbos.Config{
		AppName: "rival", DatabaseURL: database, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = dbos.Shutdown(ctx, 10*time.Second) }()
	s := &session{model: model, ledger: ledger}
	dbos.RegisterWorkflow(ctx, s.run)
	if err := dbos.Launch(ctx); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		began, before := time.Now(), spent(cluster)
		side(many, func(int) {
			h, err := dbos.RunWorkflow(ctx, s.run, "Go on.")
			if err == nil {
				_, err = h.GetResult()
			}
			if err != nil {
				b.Error(err)
			}
		})
		did := float64(many * (steps + 1))
		b.ReportMetric(did/time.Since(began).Seconds(), "steps/s")
		b.ReportMetric((spent(cluster)-before).Seconds()*1000/did, "ms-all/step")
	}
	if lines, err := os.ReadFile(ledger.Name()); err != nil || strings.Count(string(lines), "\n") < many*steps {
		b.Errorf("the ledger lacks calls: %v", err)
	}
}

// side does something so often side by side.
func side(many int, do func(n int)) {
	var all sync.WaitGroup
	for n := range many {
		all.Go(func() { do(n) })
	}
	all.Wait()
}

// spent is the processor time of this process and of the database, if that is a server.
func spent(cluster *testkit.Cluster) time.Duration {
	total := testkit.Spent(os.Getpid(), false)
	if cluster != nil {
		total += cluster.Spent()
	}
	return total
}

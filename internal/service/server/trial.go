package server

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/inspan/inspan/store"
)

// Trial serves at a loopback address, does one task as a client would, and ends. Apart from sessions, all state is
// in memory and in the folder dir, which exists, so it neither waits for another server with the same sessions, nor
// affects it. If there is an error, the task is still returned in its last state.
func (s *Server) Trial(ctx context.Context, dir string, spec Spec) (t Task, err error) {
	s.books = &store.Memory{}
	s.State, s.Dir = filepath.Join(dir, "state"), filepath.Join(dir, "tasks")
	ctx, end := context.WithCancel(ctx)
	defer end()
	opened, ended := make(chan string, 1), make(chan error, 1)
	door := Door{Listen: "127.0.0.1:0", TokenFile: filepath.Join(dir, "token"), Opened: func(at string) { opened <- at }}
	go func() { ended <- s.Serve(ctx, door, time.Second) }()
	select {
	case at := <-opened:
		t, err = s.try(ctx, &Remote{URL: "http://" + at, Token: s.Owner}, spec)
	case err := <-ended:
		return t, err
	}
	end()
	return t, errors.Join(err, <-ended)
}

func (s *Server) try(ctx context.Context, r *Remote, spec Spec) (Task, error) {
	t, err := r.Submit(ctx, spec)
	if err != nil {
		return t, err
	}
	if t, err = r.await(ctx, t.ID, func(t Task) bool { return over(t.Stage) }); err == nil && t.Stage != StageCompleted {
		err = fmt.Errorf("task %s is %s: %s", t.ID, t.Stage, t.Why)
	}
	return t, err
}

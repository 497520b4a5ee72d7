// A session outlives its process, even with an open question. The first process asks whether it may run a command
// and is killed; the second answers the question, and the run continues.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/coding"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm/script"
)

func main() {
	sandbox := coding.Init()
	if len(os.Args) > 1 {
		first(host(sandbox, os.Args[1]), filepath.Join(os.Args[1], "work"))
	}
	dir, err := os.MkdirTemp("", "inspan-resume-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Mkdir(filepath.Join(dir, "work"), 0o700); err != nil {
		log.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		log.Fatal(err)
	}
	p, err := os.StartProcess(self, []string{self, dir}, &os.ProcAttr{Files: []*os.File{nil, os.Stdout, os.Stderr}})
	if err != nil {
		log.Fatal(err)
	}
	end, err := p.Wait()
	fmt.Println("the first process:", end, err)
	second(host(sandbox, dir))
	made, err := os.ReadDir(filepath.Join(dir, "work"))
	fmt.Println("made:", made, err)
}

// host is the same in both processes.
func host(sandbox coding.Sandbox, dir string) *inspan.Host {
	h, err := coding.Agent(coding.Options{
		Sandbox: sandbox, Root: filepath.Join(dir, "work"), State: filepath.Join(dir, "state"), Model: &script.Model{},
	})
	if err != nil {
		log.Fatal(err)
	}
	return h
}

// first works until a question is in the log, and then kills itself.
func first(h *inspan.Host, root string) {
	session, err := h.New(context.Background(), root)
	if err != nil {
		log.Fatal(err)
	}
	for e, err := range session.Run(context.Background(), event.Say("bash: touch made\nsay: I made it.")) {
		if err != nil {
			log.Fatal(err)
		}
		if e.Body.Kind() == "waiting" {
			self, _ := os.FindProcess(os.Getpid())
			_ = self.Kill()
			select {}
		}
	}
}

// second opens the most recent session, and answers its question.
func second(h *inspan.Host) {
	session, err := h.Open(context.Background(), "last")
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	open := session.Status().Waiting[0]
	fmt.Println("open question:", open.Reason)
	run := inspan.Conductor{Session: session, OnEvent: func(e event.Event) error {
		if b, ok := e.Body.(event.Replied); ok {
			fmt.Println("model:", b.Parts.Text())
		}
		return nil
	}}
	if err := run.Run(context.Background(), event.Decided{Call: open.Call.ID, Question: open.Question, Allow: true}); err != nil {
		log.Fatal(err)
	}
}

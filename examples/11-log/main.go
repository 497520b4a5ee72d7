// A session in a log of your own, here a file with one event per line. The second life of the program knows
// everything that happened in the first.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm/script"
)

func main() {
	dir, err := os.MkdirTemp("", "inspan-log-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "session.jsonl")
	fmt.Println("model:", say(path, "say: The key is under the mat."))
	fmt.Println("model:", say(path, "say: As I said: under the mat."))

	lines, err := os.ReadFile(path)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("two things were said:", strings.Count(string(lines), `"kind":"said"`) == 2)
}

// say opens the session of a file, sends it a message, and returns the answer.
func say(path, text string) (answer string) {
	file, err := openFile(path)
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close()
	agent := inspan.Agent{Model: &script.Model{}} // a coding agent comes from the field Agent of its host
	session, err := agent.Open(context.Background(), file)
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	for e, err := range session.Run(context.Background(), event.Say(text)) {
		if err != nil {
			log.Fatal(err)
		}
		if r, ok := e.Body.(event.Replied); ok {
			answer = strings.TrimSpace(r.Parts.Text())
		}
	}
	return answer
}

// A tool of your own: a function with typed arguments. The model's schema is made from the struct, and arguments
// are checked against it.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/tool"
)

type sum struct {
	Numbers []int `json:"numbers" jsonschema:"what to add up"`
}

func main() {
	add := tool.New("add", "Adds whole numbers.", func(_ context.Context, _ *tool.Call, in sum) (tool.Result, error) {
		total := 0
		for _, n := range in.Numbers {
			total += n
		}
		return tool.Text(fmt.Sprint(total)), nil
	})
	// Adding has no effect, so it need not ask.
	add.Effects = tool.NoEffects

	model, err := script.Parse([]byte("-- reply --\ncall: add {\"numbers\":[20,22]}\n-- reply --\nThe sum is 42.\n"))
	if err != nil {
		log.Fatal(err)
	}
	agent := inspan.Agent{Model: model, Tools: []tool.Tool{add}}
	answer, err := agent.Answer(context.Background(), "What is 20 + 22?")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer)
}

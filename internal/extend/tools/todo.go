package tools

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/inspan/inspan/tool"
)

//go:embed todo.md
var todoDoc string

// Limits of the list, so that it stays readable.
const (
	maxTodo     = 50
	maxTodoText = 500 // bytes
)

type todoArgs struct {
	Items []todoItem `json:"items" jsonschema:"the whole list, in order"`
}

type todoItem struct {
	Text  string `json:"text" jsonschema:"what will be true when it is done"`
	State string `json:"state" enum:"open,doing,done"`
}

func todo() tool.Tool {
	t := tool.New("todo", todoDoc, runTodo)
	t.Effects = tool.NoEffects
	return t
}

func runTodo(_ context.Context, _ *tool.Call, in todoArgs) (tool.Result, error) {
	if len(in.Items) > maxTodo {
		return tool.Result{}, fmt.Errorf("%d items are too many to be of use; at most %d", len(in.Items), maxTodo)
	}
	list := []tool.Todo{}
	count := map[tool.TodoState]int{}
	for i, item := range in.Items {
		text, state := strings.Join(strings.Fields(item.Text), " "), tool.TodoState(item.State)
		switch {
		case text == "":
			return tool.Result{}, fmt.Errorf("item %d has no text", i+1)
		case len(text) > maxTodoText:
			return tool.Result{}, fmt.Errorf("item %d has %d bytes; at most %d", i+1, len(text), maxTodoText)
		}
		count[state]++
		list = append(list, tool.Todo{Text: text, State: state})
	}
	if count[tool.TodoDoing] > 1 {
		return tool.Result{}, errors.New("more than one item is doing; work on one at a time")
	}
	said := "The list is empty."
	if len(list) > 0 {
		said = fmt.Sprintf("%d open, %d doing, %d done.", count[tool.TodoOpen], count[tool.TodoDoing], count[tool.TodoDone])
	}
	r := tool.Text(said)
	r.Todo = list
	return r, nil
}

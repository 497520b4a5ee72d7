package acp

import (
	"cmp"
	"reflect"
	"slices"

	wire "github.com/coder/acp-go-sdk"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/view/words"
)

func commandList(name, doc, hint string) wire.AvailableCommand {
	c := wire.AvailableCommand{Name: name, Description: words.OneLine(doc, 300)}
	if hint != "" {
		c.Input = &wire.AvailableCommandInput{Unstructured: &wire.UnstructuredCommandInput{Hint: words.OneLine(hint, 100)}}
	}
	return c
}

// commands lists the slash commands: ours, the skills, and the markdown files.
func (st *session) commands() []wire.AvailableCommand {
	// Each of ours is an input of the session, so its effect is in the log.
	list := []wire.AvailableCommand{
		commandList("compact", "make the conversation shorter; the log keeps all of it", "what matters"),
		commandList("continue", "let a run that stopped go on", ""),
	}
	taken := func(name string) bool {
		return slices.ContainsFunc(list, func(c wire.AvailableCommand) bool { return c.Name == name })
	}
	skills, _ := st.agent.App.Extensions.Skills(st.root).List()
	for _, s := range skills {
		if !s.Hidden && !taken(s.Name) {
			list = append(list, commandList(s.Name, s.Description, s.Hint))
		}
	}
	for _, c := range st.agent.App.Extensions.Commands(st.root, func(text string) { st.agent.logf("%s", text) }) {
		if !taken(c.Name) {
			list = append(list, commandList(c.Name, cmp.Or(c.Description, "from "+c.Source), c.Hint))
		}
	}
	for _, p := range st.agent.App.Hubs.Prompts(st.root) {
		if !taken(p.Command) {
			list = append(list, commandList(p.Command, cmp.Or(p.Doc, "from "+p.Server), p.Usage))
		}
	}
	return list
}

// tellCommands tells the client about the commands if they have changed: servers add some after starting.
func (st *session) tellCommands() {
	list := st.commands()
	st.mu.Lock()
	known := reflect.DeepEqual(list, st.offered)
	st.offered = list
	st.mu.Unlock()
	if !known {
		st.agent.update(st.id, wire.SessionUpdate{AvailableCommandsUpdate: &wire.SessionAvailableCommandsUpdate{AvailableCommands: list}})
	}
}

// command returns the meaning of a slash command: an input, or a message. Neither is set if there is no such
// command.
func (st *session) command(name, args string) (body event.Body, said string, err error) {
	switch name {
	case "compact":
		return event.Compact{Focus: args}, "", nil
	case "continue":
		return event.Said{}, "", nil
	}
	skills := st.agent.App.Extensions.Skills(st.root)
	list, _ := skills.List()
	for _, s := range list {
		if !s.Hidden && s.Name == name {
			said, _, err = skills.Invoke(name, args)
			return nil, said, err
		}
	}
	for _, c := range st.agent.App.Extensions.Commands(st.root, func(string) {}) {
		if c.Name == name {
			return nil, c.Expand(args), nil
		}
	}
	for _, p := range st.agent.App.Hubs.Prompts(st.root) {
		if p.Command == name {
			said, err = st.agent.App.Hubs.Fill(st.ctx, st.root, p.Prompt, args)
			return nil, said, err
		}
	}
	return nil, "", nil
}

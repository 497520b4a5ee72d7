package tui

import (
	"context"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/view/team"
	"github.com/inspan/inspan/internal/view/words"
)

// team shows the members and the tasks of the open session, to speak to one, interrupt one or hand over a task. With the
// name of a member it offers what one can do with it, and with a text it sends that.
func (s *sessions) team(args string) tea.Cmd {
	a, ctx, id := s.talk.tui.App, s.talk.ctx, s.talk.runner.id()
	if id == "" || a == nil {
		s.hints.say("there is no team yet")
		return nil
	}
	name, message, _ := strings.Cut(args, " ")
	return func() tea.Msg {
		board, err := a.Team(ctx, id)
		return later(func() tea.Cmd {
			m, found := board.Find(name)
			switch {
			case err != nil:
				s.talk.fail(err)
			case len(board.Members)+len(board.Tasks) == 0:
				s.hints.say("there is no team yet")
			case name == "":
				s.showTeam(board)
			case !found:
				s.hints.say("no member is called " + words.OneLine(words.Hidden(name), 40) + "; /team lists them")
			case strings.TrimSpace(message) == "":
				s.showMemberActions(m)
			default:
				return s.sendTo(m, app.Message{Text: strings.TrimSpace(message), Steer: true}, "sent to "+m.Name)
			}
			return nil
		})
	}
}

// showTeam lists members and tasks.
func (s *sessions) showTeam(board team.Board) {
	var items []choice
	wide := 0
	add := func(text string, facts ...string) {
		text = words.OneLine(text, 24)
		wide = max(wide, cells(text))
		items = append(items, choice{text, joinFacts(facts...)})
	}
	for _, m := range board.Members {
		waits := m.WaitsFor
		if waits != "" {
			waits = "waits for " + waits
		}
		add(m.Name, m.State, words.Cost(m.Cost, m.Unpriced), waits, words.OneLine(m.Task, 60))
	}
	for _, t := range board.Tasks {
		state := t.State
		if t.Who != "" {
			state += " by " + t.Who
			if t.State == "open" {
				state = "for " + t.Who
			}
		}
		check := t.Checked()
		if check != "" {
			check = "check: " + words.OneLine(check, 30)
		}
		add("task "+t.ID, state, words.OneLine(t.Text, 60), check)
	}
	p := s.over.pick("team", items, func(i int) tea.Cmd {
		if i < len(board.Members) {
			s.showMemberActions(board.Members[i])
			return nil
		}
		return s.handOver(board, board.Tasks[i-len(board.Members)])
	})
	p.wide = wide
}

// joinFacts joins the facts that are not empty.
func joinFacts(facts ...string) string {
	var there []string
	for _, f := range facts {
		if f != "" {
			there = append(there, f)
		}
	}
	return strings.Join(there, " · ")
}

// showMemberActions offers what a person can do with a member.
func (s *sessions) showMemberActions(m team.Member) {
	items := []choice{{"show its work", m.Session}}
	does := []func() tea.Cmd{func() tea.Cmd { return s.printMember(member{id: m.Session}) }}
	if m.Listens {
		items = append(items, choice{"write to it", "it reads the message with its next results, or wakes with it"})
		does = append(does, func() tea.Cmd { s.talk.putBack("/team " + m.Name + " "); return nil })
	}
	if m.State == "running" {
		items = append(items, choice{"interrupt it", "its lead gets the result so far"})
		does = append(does, func() tea.Cmd { return s.sendTo(m, app.Message{Cancel: true}, "interrupted "+m.Name) })
	}
	s.over.pick(joinFacts(m.Name, m.Kind, m.State), items, func(i int) tea.Cmd { return does[i]() })
}

// sendTo sends a message to a member, and notes what was done.
func (s *sessions) sendTo(m team.Member, message app.Message, done string) tea.Cmd {
	if !m.Listens {
		s.hints.say(m.Name + " has ended and reads no messages")
		return nil
	}
	a := s.talk.tui.App
	return s.talk.work(func(ctx context.Context) (string, error) {
		_, err := a.Send(ctx, m.Session, message)
		return done, err
	}, s.talk.noteResult)
}

// handOver lets the person give a task to a member, or to all.
func (s *sessions) handOver(board team.Board, task team.Task) tea.Cmd {
	if task.State == "done" {
		s.hints.say("task " + task.ID + " is done")
		return nil
	}
	items := []choice{{"all", "any member can claim it"}}
	for _, m := range board.Members {
		if m.Listens {
			items = append(items, choice{m.Name, joinFacts(m.State, words.OneLine(m.Task, 60))})
		}
	}
	a, id := s.talk.tui.App, s.talk.runner.id()
	s.over.pick("give task "+task.ID+" to", items, func(i int) tea.Cmd {
		return s.talk.work(func(ctx context.Context) (string, error) {
			return "task " + task.ID + " is for " + items[i].text, a.Assign(ctx, id, task.ID, items[i].text)
		}, s.talk.noteResult)
	})
	return nil
}

package command

import (
	"context"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/extend/skill"
	"github.com/inspan/inspan/internal/install/equipment"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/store"
)

func (o ownTools) skillDraft(name string) (equipment.SkillDraft, error) {
	list, err := o.App.Extensions.SkillDrafts()
	if err != nil {
		return equipment.SkillDraft{}, err
	}
	var names []string
	for _, d := range list {
		if d.Name == name {
			return d, nil
		}
		names = append(names, d.Name)
	}
	return equipment.SkillDraft{}, misused("no draft of a skill %s%s; see 'inspan skills drafts': %w",
		words.OneLine(name, 80), words.DidYouMean(name, names), fs.ErrNotExist)
}

// promoteSkill makes a draft a skill of the project or the person, if they approve exactly its bytes.
func (o ownTools) promoteSkill(name string, user bool) error {
	d, err := o.skillDraft(name)
	if err != nil {
		return err
	}
	if err := d.Check(); err != nil {
		return fmt.Errorf("the draft %s is not kept: %w", name, err)
	}
	shelf := o.App.Extensions.SkillShelf(o.Root, user)
	fmt.Fprintln(o.Out, text.VisibleLines(string(d.Content)))
	question := fmt.Sprintf("Keep exactly this as a skill of the %s, in %s?", shelf.Source, shelf.Dir())
	if yes, err := o.agreed(question); err != nil || !yes {
		return err
	}
	if err := o.App.Extensions.KeepSkill(d, shelf); err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "Kept %s for new sessions.\n", name)
	return nil
}

// skillDrafts returns the commands about skills that a model drafts.
func (c *command) skillDrafts() []*cobra.Command {
	var user bool
	draft := c.ownTool("draft SESSION", "Draft a skill from a session that has ended well", exactly(1, 1, "a SESSION"),
		func(ctx context.Context, o ownTools, session string) error {
			id, err := store.Resolve(ctx, o.App.Store(), session)
			if err != nil {
				return err
			}
			d, err := o.App.Extensions.Learn(ctx, id, o.Root, store.Events(ctx, o.App.Store(), id), o.App.Providers.Sample)
			if err != nil {
				return err
			}
			fmt.Fprintln(o.Out, text.VisibleLines(string(d.Content)))
			fmt.Fprintf(o.Out, "This is a draft, which no session reads. Keep it with: inspan skills promote %s\n", d.Name)
			return nil
		})
	draft.Long = "A model reads the session and writes a SKILL.md: when to use it, the steps, the commands, the pitfalls.\n" +
		"It is the model for small tasks, agents.small, if one is set. No session reads the draft until you promote it."
	drafts := c.ownTool("drafts", "List the drafts of skills", exactly(0, 0, "no arguments"),
		func(_ context.Context, o ownTools, _ string) error {
			list, err := o.App.Extensions.SkillDrafts()
			if err != nil {
				return err
			}
			if len(list) == 0 {
				fmt.Fprintln(o.Out, "No skill waits for a decision.")
				return nil
			}
			w := text.NewTable(o.Out, "SKILL", "SESSION", "FOR")
			for _, d := range list {
				is, err := skill.Parse(d.Name, d.Content)
				if err != nil {
					is.Description = "can't be read: " + err.Error()
				}
				w.Row(text.Line(d.Name), text.Line(is.Metadata["session"]), words.OneLine(is.Description, 70))
			}
			return w.Flush()
		})
	promote := c.ownTool("promote NAME", "Keep a draft as a skill, after showing it", exactly(1, 1, "a NAME"),
		func(_ context.Context, o ownTools, name string) error { return o.promoteSkill(name, user) })
	promote.Flags().BoolVar(&user, "user", false, "as a skill of your own, for all projects")
	drop := c.ownTool("drop NAME", "Remove a draft", exactly(1, 1, "a NAME"),
		func(_ context.Context, o ownTools, name string) error {
			d, err := o.skillDraft(name)
			if err != nil {
				return err
			}
			if err := o.App.Extensions.DropSkill(d); err != nil {
				return err
			}
			fmt.Fprintf(o.Out, "Removed the draft %s.\n", name)
			return nil
		})
	return []*cobra.Command{draft, drafts, promote, drop}
}

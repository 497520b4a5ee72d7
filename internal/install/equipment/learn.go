package equipment

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/extend/custom"
	"github.com/inspan/inspan/internal/extend/skill"
	"github.com/inspan/inspan/internal/safety/secret"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/llm"
)

//go:embed learn.md
var learnPrompt string

const (
	maxRecord = 120 << 10 // bytes of a session's record that a model reads
	maxSkill  = 16 << 10  // bytes of a draft
	skillFile = "SKILL.md"
)

// SkillDraft is a skill that a model wrote and no person has approved. No session reads it in the drafts
// folder.
type SkillDraft struct {
	Name    string
	Content []byte // the SKILL.md, with its origin in the metadata
}

// draftsDir returns the folder of unapproved skills.
func (s *Set) draftsDir() string { return filepath.Join(s.StateDir, "drafts") }

// Learn asks a model to write a skill from a session that ended well, and stores it as a draft. Sample asks the
// model. Root is the session's workspace.
func (s *Set) Learn(
	ctx context.Context, id, root string, events iter.Seq2[event.Event, error],
	sample func(context.Context, llm.Request) (*llm.Reply, float64, error),
) (SkillDraft, error) {
	at, err := solved(id, events)
	if err != nil {
		return SkillDraft{}, err
	}
	var record bytes.Buffer
	if err := transcript.Markdown(&record, events); err != nil {
		return SkillDraft{}, err
	}
	told := relative(record.String(), root)
	if head, tail, dropped := text.CutMiddle(told, maxRecord); dropped > 0 {
		told = fmt.Sprintf("%s\n[... %d bytes left out ...]\n%s", head, dropped, tail)
	}
	told = "<session>\n" + strings.ReplaceAll(told, "</session>", "< /session>") + "\n</session>"
	reply, _, err := sample(ctx, llm.Request{
		System: []string{strings.TrimSpace(learnPrompt)}, Messages: []llm.Message{{Role: llm.User, Parts: llm.Say(told)}},
	})
	if err != nil {
		return SkillDraft{}, err
	}
	d, err := readSkill(reply.Parts.Text(), at)
	if err != nil {
		return SkillDraft{}, fmt.Errorf("the model's draft was rejected: %w", err)
	}
	dir := filepath.Join(s.draftsDir(), d.Name)
	if err := keep.MakeDir(dir); err != nil {
		return SkillDraft{}, err
	}
	return d, keep.Write(filepath.Join(dir, skillFile), d.Content)
}

// solved returns the origin of a skill from a session. It is an error if the session did not end as done.
func solved(id string, events iter.Seq2[event.Event, error]) (at Origin, err error) {
	at.Session = id
	var last event.Reason
	for e, err := range events {
		if err != nil {
			return at, err
		}
		switch b := e.Body.(type) {
		case event.Stopped:
			last, at.Event, at.Written = b.Reason, e.Seq, e.Time
		case event.Replied:
			at.Model = b.Route
		case event.Said:
			last = ""
		}
	}
	if last != event.ReasonDone {
		return at, fmt.Errorf("session %s did not finish its task, so there is nothing to learn from it", id)
	}
	return at, nil
}

// relative replaces the paths of the workspace and of the person's home.
func relative(s, root string) string {
	s = strings.ReplaceAll(s, root+"/", "")
	s = strings.ReplaceAll(s, root, ".")
	if home := keep.Home(); len(home) > 1 {
		s = strings.ReplaceAll(s, home, "~")
	}
	return s
}

// readSkill makes a draft of a model's answer. It rewrites the front matter, so that the skill grants nothing
// and starts nothing.
func readSkill(answer string, at Origin) (SkillDraft, error) {
	answer = strings.TrimSpace(answer)
	if fenced, is := strings.CutPrefix(answer, "```"); is {
		_, answer, _ = strings.Cut(strings.TrimSuffix(strings.TrimSpace(fenced), "```"), "\n")
	}
	matter, body, err := skill.SplitMatter([]byte(answer))
	if err != nil {
		return SkillDraft{}, err
	}
	var head struct {
		Name        string `json:"name" yaml:"name"`
		Description string `json:"description" yaml:"description"`
	}
	if matter == nil {
		return SkillDraft{}, errors.New("it does not start with a name and a description")
	}
	if err := skill.DecodeMatter(matter, &head); err != nil {
		return SkillDraft{}, err
	}
	if text.Holds(head.Description, text.Covert|text.Newline) {
		return SkillDraft{}, errors.New("its description has invisible characters")
	}
	lines := []string{"---", "name: " + head.Name, "description: " + strconv.Quote(head.Description), "metadata:"}
	for _, entry := range [][2]string{
		{"session", at.Session}, {"event", strconv.FormatUint(at.Event, 10)}, {"model", at.Model}, {"written", at.Written.UTC().Format(time.DateOnly)},
	} {
		lines = append(lines, "  "+entry[0]+": "+strconv.Quote(entry[1]))
	}
	content := strings.Join(append(lines, "---", "", strings.TrimSpace(body), ""), "\n")
	d := SkillDraft{Name: head.Name, Content: []byte(content)}
	return d, d.Check()
}

// Check returns the problems of a draft. A draft that passes can be shown as it is.
func (d SkillDraft) Check() error {
	s := string(d.Content)
	switch {
	case d.Name == "" || strings.Trim(d.Name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "":
		return fmt.Errorf("its name %q is invalid; use lower case letters, digits and dashes", text.Clip(d.Name, 80))
	case len(s) > maxSkill:
		return fmt.Errorf("it has %d bytes; at most %d", len(s), maxSkill)
	case strings.ContainsFunc(s, text.Unshown.Has):
		return errors.New("it has invisible characters")
	case len(secret.Find(s)) > 0:
		return errors.New("it has something that looks like a secret")
	}
	if path := absolute(s); path != "" {
		return fmt.Errorf("it names the absolute path %s", text.Clip(path, 80))
	}
	if word := regexp.MustCompile(secretWords).FindString(s); word != "" {
		return fmt.Errorf("it has something that looks like a secret: %s", text.Clip(word, 20))
	}
	if _, body, err := skill.SplitMatter(d.Content); err != nil || strings.TrimSpace(body) == "" {
		return errors.Join(errors.New("it has no steps"), err)
	} else if strings.Contains(body, "!`") {
		return errors.New("it has a command that would run when the skill is loaded (!`...`)")
	}
	is, err := skill.Parse(d.Name, d.Content)
	if err == nil && len(is.Problems) > 0 {
		err = errors.New(strings.Join(is.Problems, "; "))
	}
	return err
}

// secretWords matches passwords and tokens in prose, and keys in a person's home.
const secretWords = `(?i)\b(pass(word|wd|phrase)|secret|token|api[_-]?key)["']?\s*[:=]\s*["']?[^\s"'<$*{]{8,}|\b(bearer|basic)\s+[\w.~+/-]{12,}|` +
	`~/\.(ssh|aws|gnupg|netrc)\b`

// absolute returns the first word of a text that names a place on one machine; empty means none.
func absolute(s string) string {
	places := `(^|[\s` + "`" + `"'()\[\]<>=,;:@!|&{}*])(` +
		`//?(bin|boot|dev|etc|home|lib|media|mnt|opt|private|proc|root|run|srv|sys|tmp|usr|var|work|Users|Volumes)(/|\b)\S*|` +
		`///\S+|[A-Za-z]:\\\S*|\\\\\w\S*)`
	if found := regexp.MustCompile(places).FindStringSubmatch(s); found != nil {
		return found[2]
	}
	return ""
}

// SkillDrafts lists the drafts that wait for a decision.
func (s *Set) SkillDrafts() ([]SkillDraft, error) {
	entries, err := os.ReadDir(s.draftsDir())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var out []SkillDraft
	for _, e := range entries {
		root, err := keep.OpenFolder(filepath.Join(s.draftsDir(), e.Name()))
		if err != nil {
			continue
		}
		content, err := keep.ReadFile(root, skillFile, maxSkill)
		if err = errors.Join(err, root.Close()); err == nil {
			out = append(out, SkillDraft{Name: e.Name(), Content: content})
		}
	}
	return out, nil
}

// SkillShelf returns the folder of a workspace's skills, or of the person's own.
func (s *Set) SkillShelf(root string, user bool) Shelf {
	if user {
		return Shelf{Source: "user", root: filepath.Dir(s.ToolsDir()), below: "skills"}
	}
	return Shelf{Source: "project", root: root, below: ".inspan/skills"}
}

// KeepSkill writes exactly this content to a folder that sessions read, and removes the draft. The caller has
// shown it to a person.
func (s *Set) KeepSkill(d SkillDraft, shelf Shelf) error {
	if err := d.Check(); err != nil {
		return err
	}
	if err := os.MkdirAll(shelf.root, 0o700); err != nil {
		return err
	}
	if err := custom.Entry(d.Name, map[string][]byte{skillFile: d.Content}).Write(shelf.root, shelf.below); err != nil {
		return err
	}
	return s.DropSkill(d)
}

// DropSkill removes a draft.
func (s *Set) DropSkill(d SkillDraft) error {
	root, err := os.OpenRoot(s.draftsDir())
	if err != nil {
		return err
	}
	return errors.Join(root.RemoveAll(d.Name), root.Close())
}

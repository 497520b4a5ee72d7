package equipment

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/internal/world/forge"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/internal/world/worktree"
	"github.com/inspan/inspan/tool"
	"github.com/inspan/inspan/workflow"
)

// Tell sends a text about a session to a person who is away.
type Tell func(ctx context.Context, s inspan.Status, text string) error

// Forges are the GitHub and the GitLab that the steps of a session work with: those of the environment.
type Forges struct {
	session, root string
	sites         forge.Sites
	git           *worktree.Store

	once   sync.Once // origin is what it was when it was first needed
	from   string
	failed error
}

// NewForges are those of a session in a folder. A guest is not the person whose tokens are in the
// environment, so nothing is asked with them: only what is public can be read.
func NewForges(session, root string, guest bool) *Forges {
	sites := forge.FromEnvironment(os.Getenv)
	for i := range sites {
		if guest {
			sites[i].Token, sites[i].App = "", nil
		}
	}
	return &Forges{session: session, root: root, sites: sites, git: &worktree.Store{Git: sandbox.Git}}
}

// origin is the address of the repository that the workspace is from; empty: it has none.
func (f *Forges) origin(ctx context.Context) (string, error) {
	f.once.Do(func() {
		f.from, f.failed = f.git.Origin(ctx, f.root)
		if errors.Is(f.failed, worktree.ErrNoRepository) {
			f.failed = nil
		}
	})
	return f.from, f.failed
}

// outlets release what leaves a workflow.
func (f *Forges) outlets(tell Tell) map[string]workflow.Outlet {
	return map[string]workflow.Outlet{
		"comment":      f.comment,
		"pull_request": f.propose,
		"status":       f.status,
		"message": func(ctx context.Context, r workflow.Release) (string, error) {
			return "sent", tell(ctx, inspan.Status{Session: f.session, Root: f.root}, published(r.Value))
		},
	}
}

// published is a value as a text for people elsewhere, without secrets.
func published(v any) string {
	said, ok := v.(string)
	if raw, err := json.Marshal(v); !ok && err == nil {
		said = string(raw)
	}
	return words.Hidden(strings.TrimSpace(said))
}

// comment releases a text as a comment to an issue, a pull or a merge request.
func (f *Forges) comment(ctx context.Context, r workflow.Release) (string, error) {
	site, n, err := f.named(ctx, r.To)
	if err != nil {
		return "", err
	}
	return site.Comment(ctx, n, f.session+"/"+r.Step, published(r.Value))
}

// propose pushes a branch and opens a pull or merge request for it. To is the branch, or BASE...BRANCH;
// the first line of the value is the title, and what is behind it the description.
func (f *Forges) propose(ctx context.Context, r workflow.Release) (string, error) {
	p := forge.Proposal{Branch: r.To}
	if base, branch, both := strings.Cut(r.To, "..."); both {
		p.Base, p.Branch = base, branch
	}
	p.Title, p.Body, _ = strings.Cut(published(r.Value), "\n")
	p.Title = strings.TrimSpace(strings.TrimLeft(p.Title, "# "))
	if err := p.Check(); err != nil {
		return "", err
	}
	site, project, err := f.here(ctx)
	if err != nil {
		return "", err
	}
	if err := f.push(ctx, site, project, p.Branch); err != nil {
		return "", fmt.Errorf("push %s: %w", p.Branch, err)
	}
	return site.Propose(ctx, project, p)
}

// status releases a yes or no as the status of a commit, under the name of its step. To is the full
// hash of the commit.
func (f *Forges) status(ctx context.Context, r workflow.Release) (string, error) {
	passed, ok := r.Value.(bool)
	if !ok {
		return "", errors.New("a status is true or false")
	}
	site, project, err := f.here(ctx)
	if err != nil {
		return "", err
	}
	step, _, _ := strings.Cut(r.Step, "!")
	s := forge.Status{Name: "inspan " + step, State: forge.Failed}
	if passed {
		s.State = forge.Passed
	}
	return string(s.State), site.SetStatus(ctx, project, r.To, s)
}

// here is the site that the workspace is from, and its project there.
func (f *Forges) here(ctx context.Context) (forge.Site, string, error) {
	origin, err := f.origin(ctx)
	if err != nil {
		return forge.Site{}, "", err
	}
	return f.sites.Project(origin)
}

// push pushes a branch to the site that the workspace is from. Git runs outside of the sandbox with the
// token, in a repository that nobody in the workspace has written to: see decision 048.
func (f *Forges) push(ctx context.Context, site forge.Site, project, branch string) (err error) {
	user, password, err := site.PushAs(ctx, project)
	if err != nil {
		return err
	}
	lent, err := f.git.Lend(ctx, f.root, branch)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lent.Close()) }()
	at, err := url.Parse(site.Web())
	if err != nil {
		return err
	}
	header := "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
	_, complaints, code, err := sandbox.CaptureIn(ctx, tool.Command{
		Args: []string{"git", "push", "--quiet", "--no-verify", site.Web() + "/" + project + ".git", lent.Commit + ":refs/heads/" + branch},
		Dir:  lent.Dir,
		Env: gitVariables(os.Environ(), []string{
			"http." + site.Web() + "/.extraHeader", header,
			"http.followRedirects", "false",
			"protocol.allow", "never",
			"protocol." + at.Scheme + ".allow", "always",
			"credential.helper", "",
			"push.followTags", "false",
		}),
	})
	if err == nil && code != 0 {
		said := strings.NewReplacer(password, "...", header, "...").Replace(complaints)
		err = errors.New(words.OneLine(words.Hidden(said), 300))
	}
	return err
}

// gitVariables are variables for a git that reads no settings but those of the pairs.
func gitVariables(environment, pairs []string) []string {
	out := slices.DeleteFunc(slices.Clone(environment), func(kv string) bool {
		return strings.HasPrefix(kv, "GIT_") && !strings.HasPrefix(kv, "GIT_SSL_CA")
	})
	out = append(out, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_TERMINAL_PROMPT=0", "LC_ALL=C",
		fmt.Sprintf("GIT_CONFIG_COUNT=%d", len(pairs)/2))
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i/2, pairs[i]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i/2, pairs[i+1]))
	}
	return out
}

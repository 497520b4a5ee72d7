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

// Forges are the GitHub and GitLab sites, from the environment, that the steps of a session work with.
type Forges struct {
	session, root string
	sites         forge.Sites
	git           *worktree.Store

	once   sync.Once // origin is read once
	from   string
	failed error
}

// NewForges returns the sites for a session in a folder. A guest does not own the tokens in the environment, so
// they are not used: only public content can be read.
func NewForges(session, root string, guest bool) *Forges {
	sites := forge.FromEnvironment(os.Getenv)
	for i := range sites {
		if guest {
			sites[i].Token, sites[i].App = "", nil
		}
	}
	return &Forges{session: session, root: root, sites: sites, git: &worktree.Store{Git: sandbox.Git}}
}

// origin returns the address of the workspace's origin repository; empty means none.
func (f *Forges) origin(ctx context.Context) (string, error) {
	f.once.Do(func() {
		f.from, f.failed = f.git.Origin(ctx, f.root)
		if errors.Is(f.failed, worktree.ErrNoRepository) {
			f.failed = nil
		}
	})
	return f.from, f.failed
}

// outlets returns the outlets for a workflow's outputs.
func (f *Forges) outlets(tell Tell) map[string]workflow.Outlet {
	return map[string]workflow.Outlet{
		"comment": func(ctx context.Context, r workflow.Release) (string, error) {
			site, n, err := f.named(ctx, r.To)
			if err != nil {
				return "", err
			}
			return site.Comment(ctx, n, f.session+"/"+r.Step, published(r.Value))
		},
		"pull_request": f.propose,
		"status":       f.status,
		"message": func(ctx context.Context, r workflow.Release) (string, error) {
			return "sent", tell(ctx, inspan.Status{Session: f.session, Root: f.root}, published(r.Value))
		},
	}
}

// published returns a value as text for people elsewhere, without secrets.
func published(v any) string {
	said, ok := v.(string)
	if raw, err := json.Marshal(v); !ok && err == nil {
		said = string(raw)
	}
	return words.Hidden(strings.TrimSpace(said))
}

// propose pushes a branch and opens a pull or merge request for it. To is the branch, or BASE...BRANCH. The
// first line of the value is the title, the rest is the description.
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

// status sets a boolean as the status of a commit, named after its step. To is the full hash of the commit.
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

// here returns the site and the project of the workspace's origin.
func (f *Forges) here(ctx context.Context) (forge.Site, string, error) {
	origin, err := f.origin(ctx)
	if err != nil {
		return forge.Site{}, "", err
	}
	return f.sites.Project(origin)
}

// push pushes a branch to the site of the workspace's origin. Git runs with the token outside of the sandbox,
// in a repository that nothing in the workspace has written to: see decision 048.
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

// gitVariables returns an environment in which git reads no settings except those of the pairs.
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

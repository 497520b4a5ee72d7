// Package forge reads and writes issues and pull requests on repository hosts: GitHub, with its REST API of
// version 2022-11-28, and GitLab, with version 4 of its API.
//
// A token is sent only to its own site, whatever address is named: see [Sites.Of]. The content is untrusted;
// code that shows it to a model must say so.
//
// Reads are retried when a site fails temporarily or requests a wait. So are writes; before each try it checks
// whether the comment or the pull request already exists.
package forge

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// Kind is the API of a site.
type Kind string

// Kinds of sites.
const (
	GitHub Kind = "GitHub"
	GitLab Kind = "GitLab"
)

// Site is a GitHub or GitLab site. Its methods are safe for concurrent use.
type Site struct {
	Kind Kind // empty means GitHub
	// API is the address of its API, set by a person; empty means that of github.com or gitlab.com.
	API   string
	Token string // empty means that of App, or none
	App   *App   // GitHub app to authenticate as; nil means none
	// Wait waits before a request is repeated. Nil uses the clock.
	Wait func(ctx context.Context, d time.Duration) error
}

const (
	publicGitHub = "https://api.github.com"
	publicGitLab = "https://gitlab.com/api/v4"
)

func (s Site) kind() Kind { return cmp.Or(s.Kind, GitHub) }

func (s Site) api() string {
	usual := publicGitHub
	if s.Kind == GitLab {
		usual = publicGitLab
	}
	return strings.TrimRight(cmp.Or(s.API, usual), "/")
}

// Web returns the address of its pages and repositories.
func (s Site) Web() string {
	at, err := url.Parse(s.api())
	if err != nil {
		return s.api()
	}
	for _, end := range []string{"/api/v3", "/api/v4"} {
		at.Path = strings.TrimSuffix(at.Path, end)
	}
	at.Host = strings.TrimPrefix(at.Host, "api.")
	return at.String()
}

// Host returns the host of its API, with the port if it is not the default.
func (s Site) Host() string {
	at, err := url.Parse(s.api())
	if err != nil {
		return ""
	}
	return at.Host
}

// Name is the name of an issue, or of a pull or merge request.
type Name struct {
	Kind    Kind   // implied by its form; empty means either
	Web     string // address of the site, without a path; empty means not given
	Project string // OWNER/REPO, or the full path on GitLab; empty means that of the workspace
	Number  string
	Merge   bool // a merge request on GitLab, where they are numbered separately
}

// String returns the short form of the name.
func (n Name) String() string {
	if n.Merge {
		return n.Project + "!" + n.Number
	}
	return n.Project + "#" + n.Number
}

const mostPath = 500 // bytes of the path of a project

// Parse parses a name: OWNER/REPO#NUMBER, GROUP/PROJECT!NUMBER for a merge request, either without the path, or
// an address.
func Parse(named string) (Name, error) {
	bad := fmt.Errorf("%.200q is not an issue or pull request; write OWNER/REPO#NUMBER, or its address", named)
	const web, path, number = `(https?://[^/?#@\s]+/)?`, `([A-Za-z0-9_./-]*?)`, `([1-9][0-9]{0,8})`
	const sign = `(#|!|/issues/|/pull/|/-/issues/|/-/work_items/|/-/merge_requests/)`
	m := regexp.MustCompile(`^` + web + path + sign + number + `$`).FindStringSubmatch(named)
	if m == nil {
		return Name{}, bad
	}
	n := Name{Web: strings.TrimSuffix(m[1], "/"), Project: m[2], Number: m[4], Merge: m[3] == "!" || m[3] == "/-/merge_requests/"}
	switch {
	case strings.HasPrefix(m[3], "/-/"), n.Merge:
		n.Kind = GitLab
	case len(m[3]) > 1:
		n.Kind = GitHub
	}
	if n.Project == "" && n.Web == "" && len(m[3]) == 1 {
		return n, nil
	}
	if !isProject(n.Project) || n.Kind == GitHub && strings.Count(n.Project, "/") != 1 {
		return Name{}, bad
	}
	return n, nil
}

// isProject reports whether a text can be the path of a project.
func isProject(path string) bool {
	parts := strings.Split(path, "/")
	for _, p := range parts {
		if strings.Trim(p, ".") == "" || strings.HasPrefix(p, "-") || len(p) > 100 {
			return false
		}
	}
	return len(parts) >= 2 && len(path) <= mostPath
}

// Sites are the available sites, configured ones before the public ones.
type Sites []Site

// FromEnvironment returns the sites from the variables GITHUB_TOKEN (or GH_TOKEN), GITHUB_API_URL,
// GITHUB_APP_ID with GITHUB_APP_PRIVATE_KEY, GITLAB_TOKEN and GITLAB_API_URL, plus github.com and gitlab.com.
func FromEnvironment(variable func(name string) string) Sites {
	hub := Site{Kind: GitHub, API: variable("GITHUB_API_URL"), Token: cmp.Or(variable("GITHUB_TOKEN"), variable("GH_TOKEN"))}
	if id, key := variable("GITHUB_APP_ID"), variable("GITHUB_APP_PRIVATE_KEY"); id != "" && key != "" {
		hub.App = &App{ID: id, Key: []byte(key)}
	}
	lab := Site{Kind: GitLab, API: variable("GITLAB_API_URL"), Token: variable("GITLAB_TOKEN")}
	all := Sites{hub, lab}
	for _, s := range []Site{{Kind: GitHub}, {Kind: GitLab}} {
		if all.at(s.Web()) == nil {
			all = append(all, s)
		}
	}
	for i := range all { // a configured address may be in the person's network, those of the public sites may not
		if public := (Site{Kind: all[i].Kind}).api(); all[i].api() == public {
			all[i].API = ""
		}
	}
	return all
}

// at returns the site with pages at an address; nil means none.
func (s Sites) at(web string) *Site {
	for i := range s {
		if strings.EqualFold(s[i].Web(), strings.TrimRight(web, "/")) {
			return &s[i]
		}
	}
	return nil
}

// Of returns the site of a name, and the name with its project. Origin is git's address of the workspace's
// repository; empty means none.
func (s Sites) Of(n Name, origin string) (Site, Name, error) {
	if n.Web == "" {
		site, project, err := s.Project(origin)
		switch {
		case err == nil && (n.Kind == "" || n.Kind == site.kind()):
			n.Project = cmp.Or(n.Project, project)
			return site, n, nil
		case n.Project == "":
			return Site{}, n, fmt.Errorf("%s says no repository: %w", n, cmp.Or(err, fmt.Errorf("this one is not on %s", n.Kind)))
		}
		return s.usual(n), n, nil
	}
	site := s.at(n.Web)
	if site == nil || n.Kind != "" && n.Kind != site.kind() {
		return Site{}, n, fmt.Errorf("nothing says what %s is; set GITHUB_API_URL or GITLAB_API_URL to the address of its API", n.Web)
	}
	return *site, n, nil
}

// usual returns the site for a name without one, in a workspace without one: a site with a token, GitHub before
// GitLab.
func (s Sites) usual(n Name) Site {
	nested := strings.Count(n.Project, "/") > 1
	var fits []Site
	for _, site := range s {
		if n.Kind == site.kind() || n.Kind == "" && (!nested || site.kind() == GitLab) {
			fits = append(fits, site)
		}
	}
	for _, site := range fits {
		if site.Token != "" || site.App != nil {
			return site
		}
	}
	return fits[0]
}

// Project returns the site of a repository, and its path there. Origin is git's address of it.
func (s Sites) Project(origin string) (Site, string, error) {
	if origin == "" {
		return Site{}, "", fmt.Errorf("the workspace has no repository with a remote named origin")
	}
	host, path := "", ""
	if at, err := url.Parse(origin); err == nil && at.Host != "" {
		host, path = at.Host, at.Path
		if at.Scheme == "ssh" {
			host = at.Hostname() // its port differs from that of the pages
		}
	} else if before, after, ok := strings.Cut(origin, ":"); ok { // in scp format
		host, path = before[strings.LastIndex(before, "@")+1:], after
	}
	path = strings.Trim(strings.TrimSuffix(strings.TrimRight(path, "/"), ".git"), "/")
	for _, site := range s {
		web, err := url.Parse(site.Web())
		if err != nil || !strings.EqualFold(web.Host, host) && !strings.EqualFold(web.Hostname(), host) {
			continue
		}
		below := strings.Trim(web.Path, "/")
		if inside, ok := strings.CutPrefix(path, below); ok && isProject(strings.TrimPrefix(inside, "/")) {
			return site, strings.TrimPrefix(inside, "/"), nil
		}
	}
	return Site{}, "", fmt.Errorf("its remote origin is on no GitHub or GitLab that is known here; " +
		"set GITHUB_API_URL or GITLAB_API_URL to the address of its API")
}

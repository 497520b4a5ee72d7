package forge_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/world/forge"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]forge.Name{
		"#12":                                 {Number: "12"},
		"!12":                                 {Number: "12", Merge: true, Kind: forge.GitLab},
		"ann/shop#12":                         {Project: "ann/shop", Number: "12"},
		"ann/sub/shop#12":                     {Project: "ann/sub/shop", Number: "12"},
		"ann/sub/shop!12":                     {Project: "ann/sub/shop", Number: "12", Merge: true, Kind: forge.GitLab},
		"https://github.com/ann/shop/pull/1":  {Web: "https://github.com", Project: "ann/shop", Number: "1", Kind: forge.GitHub},
		"https://git.x.test/a/b/c/-/issues/3": {Web: "https://git.x.test", Project: "a/b/c", Number: "3", Kind: forge.GitLab},
		"https://git.x.test/a/b/-/merge_requests/3": {
			Web: "https://git.x.test", Project: "a/b", Number: "3", Merge: true, Kind: forge.GitLab,
		},
	} {
		is, err := forge.Parse(text)
		if diff := cmp.Diff(want, is); err != nil || diff != "" {
			t.Errorf("%s: %v %s", text, err, diff)
		}
	}
	for _, bad := range []string{
		"", "12", "#", "#0", "#012", "shop#1", "ann/shop", "ann/../shop#1", "ann/..#1", "../..#1", "-x/shop#1", "ann/shop#1?x", "ann/shop#1\n",
		"https://github.com/ann/shop/pull/1/files",
		"https://a@github.com/ann/shop/pull/1", "https://github.com/a/b/c/pull/1", "https://github.com#1",
		"file:///etc/ann/shop#1", "ann//shop#1", "ann/shop#1234567890",
	} {
		if n, err := forge.Parse(bad); err == nil {
			t.Errorf("%q is read as %+v", bad, n)
		}
	}
}

// TestTokenStaysHome checks which site a name leads to, and that a token goes to no other than its own.
func TestTokenStaysHome(t *testing.T) {
	environment := map[string]string{
		"GITHUB_TOKEN": "hub", "GITLAB_TOKEN": "lab", "GITLAB_API_URL": "https://git.corp.test/api/v4",
	}
	all := forge.FromEnvironment(func(name string) string { return environment[name] })
	for _, c := range []struct{ name, origin, web, token, project string }{
		{"#1", "git@github.com:ann/shop.git", "https://github.com", "hub", "ann/shop"},
		{"#1", "https://github.com/ann/shop", "https://github.com", "hub", "ann/shop"},
		{"!1", "ssh://git@git.corp.test:2222/a/b/c.git", "https://git.corp.test", "lab", "a/b/c"},
		{"a/b/c#1", "", "https://git.corp.test", "lab", "a/b/c"},
		{"ann/shop#1", "", "https://github.com", "hub", "ann/shop"},
		{"bob/shop#1", "https://git.corp.test/ann/shop.git", "https://git.corp.test", "lab", "bob/shop"},
		{"https://github.com/ann/shop/issues/1", "https://git.corp.test/x/y", "https://github.com", "hub", "ann/shop"},
		{"https://gitlab.com/ann/shop/-/issues/1", "", "https://gitlab.com", "", "ann/shop"},
	} {
		n, err := forge.Parse(c.name)
		if err != nil {
			t.Fatal(err)
		}
		site, n, err := all.Of(n, c.origin)
		if err != nil || site.Web() != c.web || site.Token != c.token || n.Project != c.project {
			t.Errorf("%s at %s: %s %q %+v %v", c.name, c.origin, site.Web(), site.Token, n, err)
		}
	}
	for _, c := range [][2]string{
		{"https://evil.test/ann/shop/issues/1", ""},
		{"https://github.com.evil.test/ann/shop/pull/1", ""},
		{"#1", ""},
		{"#1", "https://evil.test/ann/shop"},
		{"#1", "/srv/shop.git"},
		{"!1", "https://github.com/ann/shop"},
		{"https://github.com/ann/shop/-/merge_requests/1", ""},
		{"http://github.com/ann/shop/pull/1", ""},
	} {
		n, err := forge.Parse(c[0])
		if err != nil {
			t.Fatal(err)
		}
		if site, _, err := all.Of(n, c[1]); err == nil {
			t.Errorf("%s at %s leads to %s", c[0], c[1], site.Web())
		}
	}
	environment = map[string]string{"GITHUB_API_URL": "https://git.corp.test/api/v3", "GH_TOKEN": "corp"}
	all = forge.FromEnvironment(func(name string) string { return environment[name] })
	for origin, token := range map[string]string{"https://git.corp.test/a/b": "corp", "https://github.com/a/b": ""} {
		if site, _, err := all.Project(origin); err != nil || site.Token != token {
			t.Error(origin, site.Web(), site.Token, err)
		}
	}
}

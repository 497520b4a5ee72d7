package oracle

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-github/v75/github"

	"github.com/inspan/inspan/internal/testkit"
)

// TestGitHub has the client that the field uses read from our stand-in for GitHub.
func TestGitHub(t *testing.T) {
	h := httptest.NewServer(&testkit.GitHub{Stand: testkit.Stand{Token: "t"}})
	defer h.Close()
	c, err := github.NewClient(nil).WithAuthToken("t").WithEnterpriseURLs(h.URL, h.URL)
	if err != nil {
		t.Fatal(err)
	}
	c.BaseURL.Path = "/"
	issue, _, err := c.Issues.Get(t.Context(), "ann", "shop", 12)
	if err != nil || issue.GetTitle() != "Wrong sum" || issue.IsPullRequest() || len(issue.Labels) != 2 {
		t.Fatal(issue, err)
	}
	n := 0
	for page := 1; page < 4; page++ {
		list, _, err := c.Issues.ListComments(t.Context(), "ann", "shop", 12,
			&github.IssueListCommentsOptions{ListOptions: github.ListOptions{PerPage: 100, Page: page}})
		if err != nil {
			t.Fatal(err)
		}
		n += len(list)
	}
	if n != 130 {
		t.Errorf("%d comments", n)
	}
	if pull, _, err := c.Issues.Get(t.Context(), "ann", "shop", 13); err != nil || !pull.IsPullRequest() {
		t.Error(pull, err)
	}
	diff, _, err := c.PullRequests.GetRaw(t.Context(), "ann", "shop", 13, github.RawOptions{Type: github.Diff})
	if err != nil || !strings.Contains(diff, "+a+b") {
		t.Error(diff, err)
	}
	list, _, err := c.PullRequests.ListComments(t.Context(), "ann", "shop", 13, nil)
	if err != nil || len(list) != 1 || list[0].GetPath() != "sum.go" || list[0].GetLine() != 1 {
		t.Error(list, err)
	}
	if _, res, err := c.Issues.Get(t.Context(), "ann", "shop", 99); err == nil || res.StatusCode != 404 {
		t.Error(res, err)
	}
}

package oracle

import (
	"net/http/httptest"
	"strings"
	"testing"

	gitlab "gitlab.com/gitlab-org/api/client-go"

	"github.com/inspan/inspan/internal/testkit"
)

// TestGitLab has GitLab's own client read from our stand-in for GitLab, and write to it. Each of its
// requests must be one that our description of the API allows.
func TestGitLab(t *testing.T) {
	g := &testkit.GitLab{Stand: testkit.Stand{T: t, Token: "t"}}
	h := httptest.NewServer(g)
	defer h.Close()
	c, err := gitlab.NewOAuthClient("t", gitlab.WithBaseURL(h.URL))
	if err != nil {
		t.Fatal(err)
	}
	const shop = "ann/shop"
	issue, _, err := c.Issues.GetIssue(shop, 12)
	if err != nil || issue.Title != "Wrong sum" || issue.Author.Username != "bob" || len(issue.Labels) != 2 {
		t.Fatal(issue, err)
	}
	notes, _, err := c.Notes.ListIssueNotes(shop, 12, &gitlab.ListIssueNotesOptions{
		ListOptions: gitlab.ListOptions{PerPage: 100, Page: 2}, OrderBy: gitlab.Ptr("created_at"), Sort: gitlab.Ptr("asc"),
	})
	if err != nil || len(notes) != 30 || notes[29].Body != "comment 130 of 130" || notes[0].CreatedAt == nil {
		t.Error(len(notes), err)
	}
	merge, _, err := c.MergeRequests.GetMergeRequest(shop, 13, nil)
	if err != nil || merge.SourceBranch != "sums" || len(merge.SHA) != 40 {
		t.Error(merge, err)
	}
	diffs, _, err := c.MergeRequests.ListMergeRequestDiffs(shop, 13, nil)
	if err != nil || len(diffs) != 2 || !strings.Contains(diffs[0].Diff, "+a+b") || !diffs[1].TooLarge || !diffs[1].NewFile {
		t.Error(diffs, err)
	}
	notes, _, err = c.Notes.ListMergeRequestNotes(shop, 13, nil)
	if err != nil || len(notes) != 2 || notes[0].Position.NewPath != "sum.go" || notes[0].Position.NewLine != 1 || !notes[1].System {
		t.Error(notes, err)
	}
	note, _, err := c.Notes.CreateIssueNote(shop, 12, &gitlab.CreateIssueNoteOptions{Body: gitlab.Ptr("x")})
	if err != nil || note.ID == 0 {
		t.Error(note, err)
	}
	writes(t, c, shop)
}

func writes(t *testing.T, c *gitlab.Client, shop string) {
	t.Helper()
	commit := strings.Repeat("ab", 20)
	_, _, err := c.Commits.SetCommitStatus(shop, commit, &gitlab.SetCommitStatusOptions{
		State: gitlab.Failed, Name: gitlab.Ptr("review"), Description: gitlab.Ptr("x"),
	})
	if err != nil {
		t.Error(err)
	}
	list, _, err := c.Commits.GetCommitStatuses(shop, commit, nil)
	if err != nil || len(list) != 3 || list[2].Name != "review" || list[2].Status != "failed" {
		t.Error(list, err)
	}
	project, _, err := c.Projects.GetProject(shop, nil)
	if err != nil || project.DefaultBranch != "main" {
		t.Error(project, err)
	}
	made, _, err := c.MergeRequests.CreateMergeRequest(shop, &gitlab.CreateMergeRequestOptions{
		Title: gitlab.Ptr("x"), SourceBranch: gitlab.Ptr("a"), TargetBranch: gitlab.Ptr("main"), Description: gitlab.Ptr("y"),
	})
	if err != nil || made.WebURL == "" {
		t.Error(made, err)
	}
	open, _, err := c.MergeRequests.ListProjectMergeRequests(shop, &gitlab.ListProjectMergeRequestsOptions{
		State: gitlab.Ptr("opened"), SourceBranch: gitlab.Ptr("a"), TargetBranch: gitlab.Ptr("main"),
	})
	if err != nil || len(open) != 1 {
		t.Error(open, err)
	}
}

package testkit

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// GitHub speaks the REST API of GitHub for one repository, ann/shop: issue 12 with 130 comments,
// and pull request 13 with a comment on its code. The official client holds it to the wire
// (internal/oracle). With a Token, everything else is not found for who has another.
type GitHub struct{ Token string }

type object = map[string]any

// ServeHTTP implements [http.Handler].
func (g GitHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := any(nil)
	name, ours := strings.CutPrefix(r.URL.Path, "/repos/ann/shop/")
	if ours && (g.Token == "" || r.Header.Get("Authorization") == "Bearer "+g.Token) {
		answer = g.answer(name, r)
	}
	if diff, is := answer.(string); is {
		w.Header().Set("Content-Type", "application/vnd.github.diff; charset=utf-8")
		_, _ = w.Write([]byte(diff))
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	if answer == nil {
		w.WriteHeader(http.StatusNotFound)
		answer = object{"message": "Not Found", "documentation_url": "https://docs.github.com/rest", "status": "404"}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func (g GitHub) answer(name string, r *http.Request) any {
	const at = "2026-11-01T09:30:00Z"
	said := func(who, text string) object {
		return object{"user": object{"login": who}, "body": text, "created_at": at, "updated_at": at}
	}
	issue := said("bob", "The sum is off by one.\u001b[2J Run `make test`.")
	issue["number"], issue["title"], issue["state"], issue["labels"] = 12, "Wrong sum", "open", []object{{"name": "bug"}, {"name": "sums"}}
	pull := said("carol", "Sums right.")
	pull["number"], pull["title"], pull["state"], pull["labels"] = 13, "Mend the sum", "open", []object{}
	switch name {
	case "issues/12":
		return issue
	case "issues/13":
		pull["pull_request"] = object{"url": "https://api.github.com/repos/ann/shop/pulls/13"}
		return pull
	case "pulls/13":
		if strings.HasPrefix(r.Header.Get("Accept"), "application/vnd.github.") && strings.HasSuffix(r.Header.Get("Accept"), "diff") {
			return "diff --git a/sum.go b/sum.go\n--- a/sum.go\n+++ b/sum.go\n@@ -1 +1 @@\n-a-b\n+a+b\n"
		}
		return pull
	case "issues/12/comments":
		var all []object
		for n := range 130 {
			all = append(all, said("dan", fmt.Sprintf("comment %d of 130", n+1)))
		}
		return paged(all, r)
	case "issues/13/comments":
		return []object{}
	case "pulls/13/comments":
		c := said("erin", "Why not before?")
		c["path"], c["line"] = "sum.go", 1
		return paged([]object{c}, r)
	}
	return nil
}

// paged is the part of a list that the request wants.
func paged(all []object, r *http.Request) []object {
	number := func(name string, usual int) int {
		if n, err := strconv.Atoi(r.URL.Query().Get(name)); err == nil {
			return n
		}
		return usual
	}
	size := min(number("per_page", 30), 100)
	from := min((number("page", 1)-1)*size, len(all))
	return all[from:min(from+size, len(all))]
}

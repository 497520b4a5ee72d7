package testkit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Stand is shared by our stand-ins for GitHub and GitLab. Each has one repository, ann/shop, with issue 12 and
// its 130 comments, pull or merge request 13 with a comment on its code, and objects made by requests. Set its
// fields before the first.
type Stand struct {
	// T gets an error for each request, and each of our answers, that the published description of the API does not
	// allow. Nil means none is reported.
	T testing.TB
	// Token, if not empty, is the only valid token.
	Token string
	// Git is the folder of a bare repository which git reads and writes at /ann/shop.git, with Token as its
	// password. Empty means there is none.
	Git string
	// Fault returns the fault of a request. Nil, or a nil result: there is none.
	Fault func(r *http.Request) *Fault

	mu   sync.Mutex
	made []Made
}

// Fault is the fault of a request.
type Fault struct {
	Status int
	Header map[string]string
	Done   bool // the request is still carried out
}

// Made is something that a request has made.
type Made struct {
	Path string // of the request, below that of the repository
	Body map[string]any
}

// Made lists the objects that requests have made.
func (s *Stand) Made() []Made {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Made(nil), s.made...)
}

// at returns the objects made at a path.
func (s *Stand) at(path string) (out []map[string]any) {
	for _, m := range s.Made() {
		if m.Path == path {
			out = append(out, m.Body)
		}
	}
	return out
}

// add records a new object, and returns its number.
func (s *Stand) add(path string, body map[string]any) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made = append(s.made, Made{path, body})
	return 100 + len(s.made)
}

type object = map[string]any

// answer returns a stand-in's response to a request: a value for JSON, a text for a diff, or nil for something
// missing.
type answer func(path string, args []string, r *http.Request, body map[string]any) any

// serve answers a request to the API.
func (s *Stand) serve(w http.ResponseWriter, r *http.Request, c *contract, path string, answers answer) {
	raw, _ := io.ReadAll(r.Body)
	var body map[string]any
	var sent any
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &body); err != nil {
			s.wrong(r, err)
		}
		sent = body
	}
	op, args, known := c.find(r.Method, path)
	if !known {
		s.wrong(r, fmt.Errorf("there is no such operation"))
		status(w, http.StatusNotFound)
		return
	}
	if err := op.request(r, sent); err != nil {
		s.wrong(r, err)
		status(w, http.StatusUnprocessableEntity)
		return
	}
	var f *Fault
	if s.Fault != nil {
		f = s.Fault(r)
	}
	if f != nil && !f.Done {
		f.write(w)
		return
	}
	var out any
	if s.Token == "" || r.Header.Get("Authorization") == "Bearer "+s.Token {
		out = answers(path, args, r, body)
	}
	if f != nil {
		f.write(w)
		return
	}
	s.write(w, r, op, out)
}

func (f *Fault) write(w http.ResponseWriter) {
	for k, v := range f.Header {
		w.Header().Set(k, v)
	}
	status(w, f.Status)
}

func status(w http.ResponseWriter, code int) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(object{"message": http.StatusText(code)})
}

func (s *Stand) write(w http.ResponseWriter, r *http.Request, op operation, out any) {
	if out == nil {
		status(w, http.StatusNotFound)
		return
	}
	if diff, is := out.(string); is {
		w.Header().Set("Content-Type", "application/vnd.github.diff; charset=utf-8")
		_, _ = io.WriteString(w, diff)
		return
	}
	code, name := http.StatusOK, "200"
	if r.Method == http.MethodPost {
		code, name = http.StatusCreated, "201"
	}
	raw, err := json.Marshal(out)
	var plain any
	if err == nil {
		err = json.Unmarshal(raw, &plain)
	}
	if err == nil {
		err = fits(op.Responses[name].Schema, plain)
	}
	if err != nil {
		s.wrong(r, fmt.Errorf("our answer: %w", err))
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(raw)
}

func (s *Stand) wrong(r *http.Request, err error) {
	if s.T != nil {
		s.T.Errorf("%s %s: %v", r.Method, r.URL, err)
	}
}

// git serves the repository to git, and reports whether the request is for that.
func (s *Stand) git(w http.ResponseWriter, r *http.Request) bool {
	rest, is := strings.CutPrefix(r.URL.Path, "/ann/shop.git")
	if !is || s.Git == "" {
		return false
	}
	if _, password, _ := r.BasicAuth(); s.Token != "" && password != s.Token {
		w.Header().Set("WWW-Authenticate", `Basic realm="stand-in"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	out, err := exec.CommandContext(r.Context(), "git", "--exec-path").Output()
	if err != nil {
		s.wrong(r, err)
		return true
	}
	r.URL.Path = "/" + filepath.Base(s.Git) + rest
	r.Header.Del("Authorization")
	(&cgi.Handler{
		Path: filepath.Join(string(bytes.TrimSpace(out)), "git-http-backend"),
		Env: []string{
			"GIT_PROJECT_ROOT=" + filepath.Dir(s.Git), "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=ann",
			"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
		},
	}).ServeHTTP(w, r)
	return true
}

// paged returns the part of a list that the request wants.
func paged(all []object, r *http.Request) []object {
	number := func(name string, usual int) int {
		if n, err := strconv.Atoi(r.URL.Query().Get(name)); err == nil {
			return n
		}
		return usual
	}
	size := min(number("per_page", 30), 100)
	from := min((number("page", 1)-1)*size, len(all))
	return append([]object{}, all[from:min(from+size, len(all))]...)
}

const (
	stood    = "2026-11-01T09:30:00Z" // the creation time of everything
	headHash = "1111111111111111111111111111111111111111"
)

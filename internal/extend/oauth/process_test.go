package oauth_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/extend/oauth"
	"github.com/inspan/inspan/internal/testkit"
)

// TestMain is also the other process of the tests below: it renews the logins named on its input and writes the
// results.
func TestMain(m *testing.M) {
	dir := os.Getenv("OAUTH_TEST_DIR")
	if dir == "" {
		os.Exit(m.Run())
	}
	c := &oauth.Client{HTTP: &http.Client{}, Store: &oauth.File{Dir: dir}}
	a := oauth.Account{Name: "mcp:peer", Resource: os.Getenv("OAUTH_TEST_RESOURCE")}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		token, err := renewed(context.Background(), c, a, in.Text())
		switch {
		case errors.Is(err, oauth.ErrLogin):
			fmt.Println("login", err)
		case err != nil:
			fmt.Println("error", err)
		default:
			fmt.Println("token", token)
		}
	}
	os.Exit(0)
}

// process is another process that shares a store.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startProcess(t *testing.T, dir, resource string) *process {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "OAUTH_TEST_DIR="+dir, "OAUTH_TEST_RESOURCE="+resource)
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	p := &process{cmd, in, bufio.NewReader(out)}
	t.Cleanup(p.kill)
	return p
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	p.in.Close()
	_ = p.cmd.Wait()
}

func (p *process) ask(refused string) { fmt.Fprintln(p.in, refused) }

// answer is the kind of the answer and the rest of it; empty means the process is dead.
func (p *process) answer() (kind, rest string) {
	line, _ := p.out.ReadString('\n')
	kind, rest, _ = strings.Cut(strings.TrimSpace(line), " ")
	return kind, rest
}

func dirOf(c *oauth.Client) string { return c.Store.(*oauth.File).Dir }

// TestTwoProcesses has two processes renew at once, a hundred times, at a server that accepts each refresh token once
// and ends the login if one is sent twice.
func TestTwoProcesses(t *testing.T) {
	const rounds = 100
	p := startProvider(t, `{}`)
	c, a, ctx := newClient(t), account(p), t.Context()
	must(t, c.Login(ctx, a, oauth.Browser, oauth.Person{Open: newVisits(t).open(p.origin)}, ""))
	token, err := access(ctx, c, a)
	must(t, err)
	one, two := startProcess(t, dirOf(c), a.Resource), startProcess(t, dirOf(c), a.Resource)
	for round := range rounds {
		one.ask(token)
		two.ask(token)
		kind, first := one.answer()
		other, second := two.answer()
		if kind != "token" || other != "token" || first != second || first == token {
			t.Fatalf("round %d: %s %s, %s %s; the server saw %+v", round, kind, first, other, second, p.seen(t))
		}
		token = first
	}
	if s := p.seen(t); s.Granted["refresh_token"] != rounds || len(s.Refused) != 0 || s.Revoked != 0 {
		t.Errorf("the server saw %+v", s)
	}
	if status, _, _ := p.use(t, token); status != 200 {
		t.Error("the last token is not taken:", status)
	}
}

// TestManyInOneProcess is the same within a process.
func TestManyInOneProcess(t *testing.T) {
	s := startRotating(t)
	c, a := s.loggedIn(t)
	token, err := access(t.Context(), c, a)
	must(t, err)
	for round := range 10 {
		got := make([]string, 20)
		var wg sync.WaitGroup
		for i := range got {
			wg.Go(func() {
				var err error
				if got[i], err = renewed(t.Context(), c, a, token); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		for _, g := range got {
			if g != got[0] || g == token {
				t.Fatalf("round %d: %v", round, got)
			}
		}
		token = got[0]
	}
	if n := s.count(); n != 10 {
		t.Errorf("%d refreshes", n)
	}
}

// TestKilledAnywhere kills one of two renewing processes at many moments. The other one continues at once; a login is
// lost only if the server had already issued the tokens that died with the process.
func TestKilledAnywhere(t *testing.T) {
	p := startProvider(t, `{}`)
	c, a, ctx, v := newClient(t), account(p), t.Context(), newVisits(t)
	login := func() string {
		must(t, c.Login(ctx, a, oauth.Browser, oauth.Person{Open: v.open(p.origin)}, ""))
		token, err := access(ctx, c, a)
		must(t, err)
		return token
	}
	token, lost := login(), 0
	before := p.seen(t).Granted["refresh_token"]
	survivor := startProcess(t, dirOf(c), a.Resource)
	for round := range 60 {
		victim := startProcess(t, dirOf(c), a.Resource)
		victim.ask(token)
		<-time.After(time.Duration(round) * 700 * time.Microsecond)
		victim.kill()
		survivor.ask(token)
		kind, next := survivor.answer()
		switch {
		case kind == "token" && next != token:
			token = next
		case kind == "login":
			// The server counts a grant after its answer, maybe after the next request. Each round has one, by the
			// process that was killed or by the other.
			testkit.WaitFor(t, "the grant that died with the process", func() bool { return p.seen(t).Granted["refresh_token"] == before+round+1 })
			lost++
			token = login()
		default:
			t.Fatalf("round %d: %s %s; the server saw %+v", round, kind, next, p.seen(t))
		}
	}
	t.Logf("lost %d logins of 60 to a kill between the server's answer and the disk", lost)
}

// TestKilledAtTheServer kills a process at the moments that matter, which the server
// chooses.
func TestKilledAtTheServer(t *testing.T) {
	for _, tt := range []struct {
		name     string
		rotated  bool // the server has given out new tokens when the process dies
		survives bool
	}{
		{"before the server has acted", false, true},
		{"after the server has acted", true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := startRotating(t)
			c, a := s.loggedIn(t)
			token, err := access(t.Context(), c, a)
			must(t, err)
			victim := startProcess(t, dirOf(c), a.Resource)
			s.hold(func(act func()) {
				if tt.rotated {
					act()
				}
				victim.kill()
			})
			victim.ask(token)
			if kind, rest := victim.answer(); kind != "" {
				t.Fatal("the process lived on:", kind, rest)
			}
			next, err := renewed(t.Context(), c, a, token)
			if tt.survives && (err != nil || next == token) {
				t.Error("the login is lost:", err)
			}
			if !tt.survives && !errors.Is(err, oauth.ErrLogin) {
				t.Error("want a login:", err)
			}
			if list, err := c.Accounts(t.Context()); err != nil || len(list) != 1 || (list[0].Problem == "") != tt.survives {
				t.Errorf("%+v %v", list, err)
			}
		})
	}
}

// rotating is a server whose refresh tokens are good once. Whoever shows one twice
// ends the login.
type rotating struct {
	*httptest.Server
	mu      sync.Mutex
	next    int
	current string // the refresh token; empty means the login is over
	n       int    // refreshes granted
	held    func(act func())
	answer  http.HandlerFunc // instead of the answer to a refresh; nil means the answer
}

func startRotating(t *testing.T) *rotating {
	s := &rotating{current: "refresh-0000000"}
	s.Server = httptest.NewServer(http.HandlerFunc(s.token))
	t.Cleanup(s.Close)
	return s
}

// loggedIn is a client with a store in which a person has logged in to the server.
func (s *rotating) loggedIn(t *testing.T) (*oauth.Client, oauth.Account) {
	t.Helper()
	c := newClient(t)
	a := oauth.Account{Name: "mcp:peer", Resource: s.URL + "/mcp"}
	kept := fmt.Sprintf(`{"name":"mcp:peer","resource":%q,"endpoints":{"issuer":%q,"token":%q},"client":{"id":"us","auth":"none"},`+
		`"access":"access-0000000","refresh":"refresh-0000000"}`,
		a.Resource, s.URL, s.URL+"/token")
	must(t, c.Store.Set(t.Context(), a.Name, []byte(kept)))
	return c, a
}

// hold has the server call f at the next refresh, instead of answering it.
func (s *rotating) hold(f func(act func())) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = f
}

// instead has the server answer refreshes in another way.
func (s *rotating) instead(h http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = h
}

func (s *rotating) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
}

func (s *rotating) token(w http.ResponseWriter, req *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if f := s.held; f != nil {
		s.held = nil
		f(func() { s.rotate() })
		return
	}
	if s.answer != nil {
		s.answer(w, req)
		return
	}
	if s.current == "" || req.FormValue("refresh_token") != s.current {
		s.current = ""
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error":"invalid_grant","error_description":"shown twice: `+req.FormValue("refresh_token")+`"}`)
		return
	}
	access := s.rotate()
	fmt.Fprintf(w, `{"access_token":%q,"refresh_token":%q,"token_type":"Bearer"}`, access, s.current)
}

func (s *rotating) rotate() (access string) {
	s.next++
	s.n++
	s.current = fmt.Sprintf("refresh-%07d", s.next)
	return fmt.Sprintf("access-%07d", s.next)
}

// TestLockIsLeftByTheDead has a process die with the lock, and another wait for it only
// as long as it wants to.
func TestLockIsLeftByTheDead(t *testing.T) {
	s := startRotating(t)
	c, a := s.loggedIn(t)
	victim := startProcess(t, dirOf(c), a.Resource)
	arrived, release := make(chan bool), make(chan bool)
	s.hold(func(func()) { close(arrived); <-release })
	victim.ask("access-0000000")
	<-arrived
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := renewed(short, c, a, "access-0000000"); !errors.Is(err, context.DeadlineExceeded) {
		t.Error("did not wait for the lock as long as it should:", err)
	}
	victim.kill()
	close(release)
	if _, err := renewed(t.Context(), c, a, "access-0000000"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dirOf(c), "locks")); err != nil {
		t.Error(err)
	}
}

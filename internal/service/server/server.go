// Package server runs many agents on one machine for clients that connect over HTTP.
//
// A task is work for one agent, described by a [Spec]. Its life is a sequence of stages ([event.Stage],
// stages.go), each an event in the book of the server, a log next to the sessions ([store.Booker]). So the
// server's whole state is a fold over that book (book.go), and everything that an agent does is in the session
// of its task. Nothing else is stored: a server that is killed continues where it was.
//
//	api.go       the endpoints, one row each, and the form of their requests
//	visit.go     the acts of a visitor, for these and for doors of other protocols
//	objects.go   objects that such doors store in the book, and content.go their blobs
//	stream.go    events of a session, from any sequence number on
//	approvals.go questions of all sessions, and their answers
//	page.go      the web page; board.go all sessions at a glance, view.go one session, as it shows them,
//	             signin.go how a browser gets a token, and ours.go sessions of no task
//	shared.go    several servers of one store; engine.go sessions that other machines drive
//	hydrate.go   workspaces of tasks, and the issues that they are about
//	fork.go      copies of sessions; rewind.go rewinds
//	webhooks.go  registered webhooks; news.go their events, deliver.go the deliveries
//	secrets.go   secrets, which are not in the book
//	health.go    liveness, and readiness for tasks
//	identity.go  roles, and the owners of tasks; admin.go changes them, oidc.go has
//	             identities of a provider
//
// One process serves a store at a time: it holds the lease of the book. Others may stand by.
package server

import (
	"context"
	_ "embed" // the contract
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/extend/oauth"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/internal/install/schedule"
	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/internal/world/forge"
	"github.com/inspan/inspan/internal/world/worktree"
	"github.com/inspan/inspan/store"
	"github.com/inspan/inspan/workflow"
)

// Server runs tasks. Fill in the fields of its setup, then [Server.Start] it, serve [Server.Handler] behind a
// gate with [Server.Who], and [Server.Close] it. The fields must not change after Start; the methods are safe
// for concurrent use.
type Server struct {
	Setup

	book     *book
	books    store.Booker // stores it; nil means Sessions does
	pool     *running.Pool
	opens    keep.Turns // opens sessions one at a time, so that requests still get a processor
	live     feeds
	meters   meters
	sources  sources
	pulse    pulse
	disk     disk
	painter  painter // for the page
	quota    quota
	all      *running.Board // sessions at a glance
	codes    codes
	provider provider // of OIDC

	ctx    context.Context // of all work; Close cancels it
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu       sync.Mutex
	at       map[string]*work // tasks in progress here, by id
	keys     sync.Mutex       // held while a key is looked up in a session before its use
	poked    map[string]bool  // idle tasks that may have work, by id
	draining bool
	wake     chan struct{} // has a token if a task may be ready to begin

	secrets   *oauth.Keychain
	renewing  sync.Mutex                // of secrets of webhooks
	leads     leader                    // this server as the book records it, if it is one of several
	ownership atomic.Pointer[ownership] // of one of several; nil means that of Owner
	lost      chan struct{}             // closed when another server has taken over the book
	hookEnded chan struct{}             // has a token if deliveries to a webhook have stopped
}

// Setup is the configuration of a server. It can be copied, for another server of the same store.
type Setup struct {
	// Sessions stores the sessions and the book. It must be a [store.Booker].
	Sessions store.Store
	// Trees stores the separate copies in which agents of tasks work; nil means there are none.
	Trees *worktree.Store
	// Host makes the agents of a task.
	Host func(app.Options) (*inspan.Host, error)
	// ToolNames lists the tools that are installed for sessions in a folder, as [equipment.Set.ToolNames] does. Nil
	// means there are none.
	ToolNames func(ctx context.Context, root string) []string
	// Send appends what a client says to a session, as [app.App.Send] does.
	Send func(ctx context.Context, session string, m app.Message) (event.Event, error)
	// Redact removes the secrets from events before they are written into the book. Nil means nothing is removed.
	Redact func(event.Body) event.Body
	// Git runs git in a folder; its error has git's own message.
	Git func(ctx context.Context, dir string, args ...string) (string, error)
	// Options apply to every task. A task can lower them but not raise them: its own mode, cost and turns count
	// as far as they are below these.
	Options app.Options
	// Dir is the folder of the workspaces of tasks that name no folder.
	Dir string
	// State is the folder of the data of Sessions, which agents can't access: its disk is watched like that of Dir,
	// and doors store secrets there. Empty means there is none, and they store no secrets.
	State string
	// Floor is the number of bytes that must stay free on these disks: with less, no task begins, and running ones
	// pause. 0 means any number.
	Floor int64
	// Folders are those in which, or below which, a task that names a folder may work. Empty means none.
	Folders []string
	// Guard decides which hosts have addresses that repositories may come from; nil means those with public
	// addresses.
	Guard *netguard.Guard
	// CloneFrom are further hosts that they may come from.
	CloneFrom netguard.Hosts
	// Unwalled is the reason why commands run without a sandbox here; empty means they run in one. If set,
	// identities of a tenant can't approve commands.
	Unwalled string
	// Contract is added to the system prompt of every task; empty means [Contract].
	Contract string
	// AtOnce is how many tasks may work at once; 0 means [DefaultAtOnce]. Tasks that wait for a person's decision
	// don't count.
	AtOnce int
	// Keep says which workspaces stay when their task has ended, unless the task itself says so.
	Keep Keep
	// Owner is the token with all permissions; empty means there is none, or one of several servers has that of the
	// others.
	Owner string
	// Runtime says that a runtime such as Bedrock AgentCore is in front of the server and authenticates the
	// senders of requests to /invocations, /ws and /ping: they need no token.
	Runtime bool
	// Also adds endpoints of other protocols, which are built on [Server.Visit]. Nil means there are none. Forms
	// are paths of theirs that take files.
	Also  func(*http.ServeMux)
	Forms []string
	// Equip gives the agent of a task the things that a door stores for it, whenever its session is opened. Nil
	// means it does nothing. Furnish puts the door's things into a new workspace before the session begins. Visits
	// are those of [Server.For].
	Equip   func(v *Visit, t Task, o *app.Options) error
	Furnish func(v *Visit, t Task, dir string) error
	// Workflows returns the workflows that tasks may run, each checked. Nil means there are none.
	Workflows func() []*workflow.Workflow
	// Schedules start scheduled runs on this machine, in addition to the tasks. Nil means this server runs none.
	Schedules *schedule.Set
	// GitHub is where issues and pull requests are read. Its token is only for tasks without a tenant: otherwise a
	// tenant could read things that it has no right to.
	GitHub forge.Site
	// OIDC also lets in tokens of an identity provider. Without an issuer there is none.
	OIDC OIDC
	// Rewind lists the rewind points of sessions, and takes their checkpoints.
	Rewind *running.Rewinds
	// HasModel reports why no request could go to a model, by its name. Nil means every name is accepted.
	HasModel func(name string) error
	// Ours also shows the sessions of the store that belong to no task, those of a person's own terminals, to
	// visitors who see all tenants. They can be watched, answered and taken over as tasks.
	Ours bool
	// Warn is called with messages for the operator. Nil means they are dropped.
	Warn func(string)
	// Clock is the source of time. Nil means the system's.
	Clock Clock
	// Tells returns the types of the webhook events for a change of a door's objects or tasks, and Tellable all
	// such types. Nil means none.
	Tells    func(Change) []string
	Tellable []string
	// Whose returns the agent and environment that own an object of a door, for identities that are confined to
	// some. A task belongs to the owner of the object with its id. Nil means no object has an owner.
	Whose func(of, id string, value json.RawMessage) Place
	// WebhookTo are hosts without public addresses that webhooks may have.
	WebhookTo netguard.Hosts
	// Carry makes the workspaces of tasks travel through the store, except those in Folders: each machine has a
	// folder Dir of its own, at the same path. Nil means all machines that work on a task see the same Dir.
	Carry *running.Carriers
	// Fleeting removes travelling workspaces from this machine when their task ends, even if Keep would have
	// them stay: they stay in the store.
	Fleeting bool
	// Engine makes other machines drive the sessions of tasks, see [Server.Work]. Nil means this one does.
	Engine running.Engine
	// SkipMissed skips scheduled runs that were due while none could begin. Otherwise the last one of each
	// schedule is made up.
	SkipMissed bool
}

// Nice is the niceness, see nice(1), of the commands of tasks: the server responds, however much they compute.
const Nice = 10

// DefaultAtOnce is the default number of tasks that work at once.
const DefaultAtOnce = 8

// Contract tells the model how to do tasks.
//
//go:embed contract.md
var Contract string

// DefaultDrain is how long running calls have to finish when a server ends.
const DefaultDrain = time.Minute

const (
	bookName = "server"
	letGo    = time.Minute // how long a session that waits for an answer stays open
)

// Start takes the book and continues the tasks that are not over. It fails with a [*store.BusyError] if another
// process serves the same store.
func (s *Server) Start(ctx context.Context) error {
	books := s.books
	if books == nil {
		kept, ok := s.Sessions.(store.Booker)
		if !ok {
			return errors.New("serve: the store keeps no books")
		}
		books = kept
	}
	for flag, hosts := range map[string]netguard.Hosts{"--clone-from": s.CloneFrom, "--webhook-to": s.WebhookTo} {
		for _, host := range hosts {
			if err := netguard.CheckHost(host); err != nil {
				return words.Misuse{Err: fmt.Errorf("%s: %w", flag, err)}
			}
		}
	}
	if err := s.OIDC.Check(); err != nil {
		return words.Misuse{Err: err}
	}
	dir, err := filepath.Abs(s.Dir)
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	s.Dir = keep.Real(dir)
	if s.Clock == nil {
		s.Clock = systemClock{}
	}
	log, err := newLedger(ctx, func(ctx context.Context) (store.Log, error) { return books.Book(ctx, bookName) })
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	s.book = newBook(log, s.Redact)
	s.book.tells, s.book.whose, s.secrets = s.Tells, s.Whose, &oauth.Keychain{Dir: filepath.Join(s.State, "server-secrets")}
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s.lost = make(chan struct{})
	log.fenced, log.faulty = sync.OnceFunc(func() { close(s.lost) }), s.disk.failed
	if err := s.book.catchUp(ctx); err != nil {
		s.cancel()
		return errors.Join(fmt.Errorf("serve: %w", err), log.Close())
	}
	s.at, s.poked, s.wake = map[string]*work{}, map[string]bool{}, make(chan struct{}, 1)
	if err := errors.Join(s.sweepAll(), s.sweepTokens(), s.sweepHooks()); err != nil {
		s.cancel()
		return errors.Join(fmt.Errorf("serve: %w", err), log.Close())
	}
	s.hookEnded = make(chan struct{}, 1)
	for _, t := range s.book.open() {
		s.poked[t.ID] = true // a message may have come before a crash
	}
	s.pool = &running.Pool{Open: s.reopen, LetGo: letGo, OnEvent: s.saw}
	s.opens.Most = 1
	s.all = (&running.Table{Sessions: s.Sessions}).NewBoard()
	s.pulse.beat()
	s.lookAtDisk()
	s.wg.Go(s.watchDisk)
	s.wg.Go(s.follow)
	s.wg.Go(s.deliver)
	s.wg.Go(s.dispatch)
	if s.Schedules != nil {
		s.wg.Go(func() { s.Schedules.Keep(s.ctx, s.warn) })
	}
	s.stir()
	return nil
}

// saw is called with every event of every run here.
func (s *Server) saw(e event.Event) {
	s.pulse.beat()
	s.live.tell(e)
	s.meters.count(e)
	if w, ok := e.Body.(event.Workspace); ok {
		s.quota.note(e.Session, w.Bytes)
	}
}

// follow folds events that other processes write into the book.
func (s *Server) follow() {
	for s.ctx.Err() == nil {
		err := s.book.wait(s.ctx)
		if err != nil && s.ctx.Err() == nil {
			s.warn("the book of the server can't be read: " + err.Error())
		}
		if errors.Is(err, store.ErrUnavailable) {
			_ = keep.Sleep(s.ctx, again)
			continue
		}
		if err != nil {
			return
		}
		if s.overtaken() {
			s.book.log.fenced()
		}
		s.stir()
	}
}

// stir makes dispatch check whether a task may begin.
func (s *Server) stir() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *Server) warn(text string) {
	if s.Warn != nil {
		s.Warn(text)
	}
}

// Drain stops the acceptance and the start of tasks. Running calls finish, no new ones begin, and each session
// is released where it is, for the next server. It returns when this is done, or when ctx is done.
func (s *Server) Drain(ctx context.Context) {
	s.mu.Lock()
	s.draining = true
	s.mu.Unlock()
	s.pool.Drain(ctx)
}

// Close ends everything in progress, as a crash would, and waits. The book and the sessions have everything
// that was acknowledged.
func (s *Server) Close() error {
	s.mu.Lock()
	s.draining = true
	s.mu.Unlock()
	s.cancel()
	s.pool.Close()
	s.wg.Wait()
	s.all.Close()
	return s.book.log.Close()
}

func (s *Server) isDraining() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.draining
}

// Handler serves the endpoints. It checks the rights of identities but not the origin of requests: put
// [Server.Gate] in front of it.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	for _, e := range s.endpoints() {
		mux.Handle(e.method+" "+e.path, s.serve(e))
	}
	for _, path := range pagePaths() {
		mux.Handle("GET "+pagePattern(path), s.servePage())
	}
	if s.Also != nil {
		s.Also(mux)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		RefuseWith(w, &Problem{
			Status: http.StatusNotFound, Type: "not_found_error",
			Message: fmt.Sprintf("no endpoint %s %s; see GET /api/v1/openapi.json", r.Method, r.URL.Path),
		})
	})
	return otherMethods(mux)
}

// otherMethods responds to requests to our paths with unsupported methods. The mux itself can't, because it has
// catch-all patterns.
func otherMethods(mux *http.ServeMux) http.Handler {
	taken := func(r *http.Request) bool {
		_, pattern := mux.Handler(r)
		return !strings.HasSuffix(pattern, "/") // which is such a pattern
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var methods []string
		if !taken(r) {
			other := *r
			for _, other.Method = range []string{"DELETE", "GET", "HEAD", "PATCH", "POST", "PUT"} {
				if taken(&other) {
					methods = append(methods, other.Method)
				}
			}
		}
		if len(methods) == 0 {
			mux.ServeHTTP(w, r)
			return
		}
		allow := strings.Join(methods, ", ")
		w.Header().Set("Allow", allow)
		RefuseWith(w, &Problem{
			Status: http.StatusMethodNotAllowed, Type: "invalid_request_error",
			Message: fmt.Sprintf("no endpoint %s %s; this path takes %s", words.OneLine(r.Method, 80), words.OneLine(r.URL.Path, 200), allow),
		})
	})
}

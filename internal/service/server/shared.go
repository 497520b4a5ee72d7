package server

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/store"
)

// Several servers of one store: the one with the lease of the book leads, and records its address in the book.
// The others stand by: they forward requests to it, and one of them leads when its lease has ended.

// Among configures one of several servers.
type Among struct {
	// Advertise is the URL for other servers to reach this one, http://host:port. Empty means its address, which
	// then must name one host.
	Advertise string
	// OnStandby is called with the address of the leader that this server stands by for, and with an empty text
	// when it leads itself. Nil means it is not called.
	OnStandby func(leader string)
	// NewOwner makes the owner's token of this server that of all of them. Without it, a server does not start
	// if its token differs from that of the last leader.
	NewOwner bool
}

// otherOwner returns the error for another owner's token than that of the other servers of the store.
func otherOwner() error {
	return words.Misuse{Err: errors.New("the servers of this store have another owner's token; give this one their --token-file, " +
		"or start it with --new-owner to change the token of all, which ends the others until they have it too")}
}

// ErrTakenOver says that another server leads: this one could not reach the store for too long.
var ErrTakenOver = errors.New("another server has taken over")

const (
	tryLead = time.Second // between attempts to lead
	relayed = "Inspan-Relayed"
)

// ServeAmong is [Server.Serve] for one of several servers of a store. It fails with [ErrTakenOver] if it has
// led and another leads now. The caller starts it again, to stand by.
func (s *Server) ServeAmong(ctx context.Context, d Door, a Among, grace time.Duration) (err error) {
	// A server without a token joins the others with theirs, whose digest is in the book.
	if s.Owner, err = netguard.KnownToken(d.TokenFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	g := s.Gate()
	l, err := d.listen(ctx, g)
	if err != nil {
		return err
	}
	at, err := advertised(a.Advertise, l.Addr().String())
	if err != nil {
		return errors.Join(err, l.Close())
	}
	g.Hosts = append(slices.Clone(d.Hosts), at.Host)
	stand := &standby{server: s, gate: g, at: at.String(), stands: a.OnStandby, anyOwner: a.NewOwner, refused: make(chan error, 1)}
	var front atomic.Pointer[http.Handler]
	front.Store(new(http.Handler(stand)))
	serving, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	served := make(chan error, 1)
	go func() {
		switching := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*front.Load()).ServeHTTP(w, r) })
		served <- netguard.Serve(serving, l, switching, nil)
	}()
	d.Opened(l.Addr().String())
	if err = stand.await(ctx); err == nil {
		v, handler := &vigil{server: s, looked: s.Clock.Now().Round(0)}, g.Wrap(s.Handler())
		awake := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if v.look() != nil {
				stand.unled(w)
				return
			}
			handler.ServeHTTP(w, r)
		})
		front.Store(new(http.Handler(awake)))
		stand.turn(nil)
		leading, over := context.WithCancel(ctx)
		go v.keep(leading)
		err = s.lead(ctx, d, at.String(), a, grace)
		over()
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = nil // it was asked to end
	}
	end()
	return errors.Join(err, <-served)
}

// lead serves as the one server of the book until ctx ends or another has taken over.
func (s *Server) lead(ctx context.Context, d Door, at string, a Among, grace time.Duration) error {
	err := s.own(d.TokenFile, a.NewOwner)
	mine := leader{URL: at, Run: rand.Text(), Owner: s.owned().digest}
	var raw []byte
	if err == nil {
		raw, err = json.Marshal(mine)
	}
	if err == nil {
		err = s.book.add(ctx, event.Recorded{Of: ofLeader, ID: ofLeader, By: "inspan serve", Value: raw})
	}
	if err == nil {
		s.book.mu.Lock()
		s.leads = mine
		s.book.mu.Unlock()
		if a.OnStandby != nil {
			a.OnStandby("")
		}
		select {
		case <-ctx.Done():
			s.drainFor(ctx, d, grace)
		case <-s.lost:
			err = ErrTakenOver
		}
	}
	return errors.Join(err, s.Close())
}

// own finds out whose token is that of the owner, from the file or the last leader. The first server of all makes it.
func (s *Server) own(file string, isNew bool) error {
	token, theirs := s.Owner, s.book.leader.Owner
	if token == "" && (theirs == "" || isNew) {
		var err error
		if token, err = netguard.Token(file); err != nil {
			return err
		}
	}
	o := ownership{digest: theirs, key: rand.Text()}
	if token != "" {
		o = ownership{digest: digestOf(token), key: token}
	}
	if theirs != "" && theirs != o.digest && !isNew {
		return otherOwner()
	}
	s.ownership.Store(&o)
	return nil
}

// vigil makes a leading server refuse requests after its process or its machine has slept, until the book
// confirms that no other leads by now.
type vigil struct {
	server *Server

	mu     sync.Mutex
	looked time.Time // last time that it was known to be awake, by the wall clock
}

const (
	lookEvery = 250 * time.Millisecond
	slept     = time.Second // gap between two checks after which the server counts as having slept
)

// keep checks until ctx ends.
func (v *vigil) keep(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		_ = v.look() // requests check again
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// look returns the reason why the server may no longer lead.
func (v *vigil) look() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := v.server.Clock.Now().Round(0)
	if since := now.Sub(v.looked); since < 0 || since >= slept {
		if err := v.server.book.catchUp(v.server.ctx); err != nil {
			return err
		}
		if v.server.overtaken() {
			v.server.book.log.fenced()
			return ErrTakenOver
		}
	}
	v.looked = now
	return nil
}

// advertised returns the URL of a server that listens at an address.
func advertised(said, listens string) (*url.URL, error) {
	if said == "" {
		said = "http://" + listens
	}
	u, err := url.Parse(said)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Path != "" {
		return nil, fmt.Errorf("--advertise: %q is not the address of a server, such as http://10.0.0.3:8080", said)
	}
	if host := u.Hostname(); host == "::" || host == "0.0.0.0" {
		return nil, errors.New("--advertise is missing; set the address at which other servers can reach this one")
	}
	return u, nil
}

// standby is a server that does not lead.
type standby struct {
	server *Server
	gate   *netguard.Gate
	at     string // its own URL
	stands func(string)
	told   string // the leader last reported to OnStandby
	leader atomic.Pointer[leading]

	anyOwner bool       // the owner's token may differ from that of the leader
	refused  chan error // why this server can't stand by
}

// leading is a current or former leader. Over is cancelled when another server leads.
type leading struct {
	url  *url.URL
	over context.Context
	end  context.CancelFunc
}

// turn forwards requests to another leader; nil means none. Pending requests to the previous one fail: it may hang,
// or be on a machine that is gone.
func (b *standby) turn(to *url.URL) {
	var next *leading
	if to != nil {
		next = &leading{url: to}
		next.over, next.end = context.WithCancel(context.Background())
	}
	if before := b.leader.Swap(next); before != nil {
		before.end()
	}
}

// await returns when the server leads.
func (b *standby) await(ctx context.Context) error {
	following, stop := context.WithCancel(ctx)
	var followed sync.WaitGroup
	defer followed.Wait()
	defer stop()
	follow := sync.OnceFunc(func() { followed.Go(func() { b.follow(following) }) }) // of a book that exists
	tick := time.NewTicker(tryLead)
	defer tick.Stop()
	for {
		err := b.server.Start(ctx)
		switch {
		case errors.Is(err, store.ErrBusy):
			follow()
			b.tell()
		case !errors.Is(err, store.ErrUnavailable):
			return err
		}
		select {
		case <-tick.C:
		case err := <-b.refused:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// tell reports the leader that the server stands by for, if it has changed.
func (b *standby) tell() {
	leader := b.leader.Load()
	if leader == nil || leader.url.String() == b.told {
		return
	}
	if b.told = leader.url.String(); b.stands != nil {
		b.stands(b.told)
	}
}

// follow reads from the book which server leads, until ctx ends.
func (b *standby) follow(ctx context.Context) {
	for ctx.Err() == nil {
		if err := b.read(ctx); err != nil && ctx.Err() == nil {
			b.server.warn("the book of the servers can't be read: " + err.Error())
			_ = keep.Sleep(ctx, again)
		}
	}
}

func (b *standby) read(ctx context.Context) error {
	log, err := newReader(ctx, b.server.Sessions)
	if err != nil {
		return err
	}
	defer log.Close()
	for seq := uint64(0); ; {
		var last *url.URL
		other := false
		for e, err := range log.Read(ctx, seq) {
			if err != nil {
				return err
			}
			seq = e.Seq
			if r, is := e.Body.(event.Recorded); is {
				if l, ok := leaderIn(r); ok {
					last, _ = url.Parse(l.URL) // which the leader has checked
					other = l.another(b.server.Owner)
				}
			}
		}
		if other && !b.anyOwner {
			select {
			case b.refused <- otherOwner():
			default: // one error is already reported
			}
		}
		if last != nil && last.String() != b.at {
			b.turn(last)
		}
		if err := log.Wait(ctx, seq); err != nil {
			return err
		}
	}
}

// leader is the record of a leading server in the book.
type leader struct {
	URL string `json:"url"`
	Run string `json:"run"` // of the process, as another one may have the same URL
	// Owner is the digest of the owner's token; empty means the leader has version 0.1.
	Owner string `json:"owner,omitempty"`
}

// another reports whether the leader has another owner's token than this one, if that is known.
func (l leader) another(token string) bool {
	return token != "" && l.Owner != "" && l.Owner != digestOf(token)
}

// leaderIn returns the recorded leader.
func leaderIn(r event.Recorded) (l leader, ok bool) {
	return l, r.Of == ofLeader && json.Unmarshal(r.Value, &l) == nil
}

// overtaken reports whether this server has led, and another has been recorded since.
func (s *Server) overtaken() bool {
	s.book.mu.Lock()
	defer s.book.mu.Unlock()
	return s.leads.Run != "" && s.book.leader.Run != "" && s.book.leader != s.leads
}

// ServeHTTP forwards requests to the leader. This server checks their origin, and the leader the sender.
func (b *standby) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && r.URL.Path == "/ping" { // it asks about this process
		Reply(w, http.StatusOK, health{Status: "Healthy", Last: b.server.pulse.last.Load()})
		return
	}
	from := netguard.Gate{Hosts: b.gate.Hosts, Open: b.gate.Open, Forms: b.gate.Forms, Refuse: b.gate.Refuse}
	tokens := r.Header.Clone()
	from.Wrap(http.HandlerFunc(func(w http.ResponseWriter, in *http.Request) { b.pass(w, in, tokens) })).ServeHTTP(w, r)
}

func (b *standby) pass(w http.ResponseWriter, r *http.Request, tokens http.Header) {
	leader := b.leader.Load()
	if leader == nil || r.Header.Get(relayed) != "" {
		b.unled(w)
		return
	}
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	defer context.AfterFunc(leader.over, stop)()
	proxy := httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(leader.url)
			for _, name := range []string{"Authorization", "X-Api-Key"} {
				if values := tokens.Values(name); len(values) > 0 {
					p.Out.Header[http.CanonicalHeaderKey(name)] = values
				}
			}
			p.Out.Header.Set(relayed, "1")
			for _, name := range []string{"Origin", "Sec-Fetch-Site"} { // of a page from this server
				p.Out.Header.Del(name)
			}
		},
		FlushInterval: -1, // streams
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, _ error) { b.unled(w) },
	}
	proxy.ServeHTTP(w, r.WithContext(ctx))
}

// unled responds while no server leads.
func (b *standby) unled(w http.ResponseWriter) {
	RefuseWith(w, &Problem{
		Status: http.StatusServiceUnavailable, Type: "overloaded_error", Retry: 1,
		Message: "no server leads at the moment; try again in a second",
	})
}

// Cluster describes the servers that share a store, from its book.
type Cluster struct {
	Leader    string // URL of the server that leads or led last; empty means no server has used the store
	SameOwner bool   // the token is that of their owner, or there is none
}

// ClusterOf reads the book of a store. Token is the owner's token of this machine; empty means it has none.
func ClusterOf(ctx context.Context, s store.Store, token string) (Cluster, error) {
	b, err := peek(ctx, s)
	if b == nil {
		return Cluster{}, err
	}
	return Cluster{Leader: b.leader.URL, SameOwner: !b.leader.another(token)}, err
}

// peek reads the book of a store.
func peek(ctx context.Context, s store.Store) (*book, error) {
	log, err := newReader(ctx, s)
	if err != nil {
		return nil, err
	}
	b := newBook(log, nil)
	return b, errors.Join(b.catchUp(ctx), log.Close())
}

// Free returns the reason why a session can't leave its store: a task works in it, or will.
func Free(ctx context.Context, s store.Store, session string) error {
	of := ""
	if opened, _ := store.Opening(ctx, s, session); opened != nil { // one that can't be read is no task
		of = opened.Labels[labelTask]
	}
	if _, ok := s.(store.Booker); of == "" || !ok {
		return nil
	}
	b, err := peek(ctx, s)
	if err != nil {
		return err
	}
	if t, known := b.taskOf(session); known && !over(t.Stage) {
		return words.Misuse{Err: fmt.Errorf("session %s belongs to task %s, which is %s; cancel or close the task first", session, t.ID, t.Stage)}
	}
	return nil
}

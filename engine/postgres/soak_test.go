package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/inspan/inspan/engine/postgres"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/harnesstest"
	"github.com/inspan/inspan/store"
)

// contender drives a session whenever it can, from one store.
type contender struct {
	log   store.Log
	name  string
	n     int
	acked []string
}

// turn takes the lease, claims the session and appends some events. It repeats each until it knows whether the event
// was stored. It ends when it is fenced, or after enough events.
func (c *contender) turn(ctx context.Context, epochs *epochs, most int) error {
	if err := c.log.Lease(ctx); err != nil {
		return err
	}
	epoch := epochs.next()
	claim, err := harnesstest.Write(ctx, c.log, event.Claimed{Epoch: epoch, Writer: fmt.Sprint(c.name, epoch)})
	if err != nil {
		return err
	}
	as := event.Driver{Epoch: epoch, After: claim[0].Seq}
	for range most {
		text := fmt.Sprint(c.name, " ", c.n)
		c.n++
		for {
			events, err := c.log.AppendAs(ctx, as, note(text))
			if err == nil {
				c.acked, as.After = append(c.acked, text), events[0].Seq
				break
			}
			if errors.Is(err, event.ErrGrown) {
				if as.After, err = c.read(ctx, as.After); err == nil {
					continue
				}
			}
			if errors.Is(err, event.ErrFenced) || ctx.Err() != nil {
				return err
			}
		}
	}
	return c.log.Release()
}

func (c *contender) read(ctx context.Context, after uint64) (uint64, error) {
	for e, err := range c.log.Read(ctx, after) {
		if err != nil {
			return after, err
		}
		after = e.Seq
	}
	return after, nil
}

type epochs struct {
	mu   sync.Mutex
	last uint64
}

func (e *epochs) next() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last++
	return e.last
}

// TestSoak has three contenders drive one session, two of them behind a proxy that cuts and parts at
// random, while inputs come in. INSPAN_RUNS says how many sessions.
func TestSoak(t *testing.T) {
	runs, err := strconv.Atoi(os.Getenv("INSPAN_RUNS"))
	if err != nil {
		runs = 5
	}
	total := 0
	for run := range runs {
		t.Run(strconv.Itoa(run), func(t *testing.T) { total += soak(t, rand.New(rand.NewPCG(uint64(run), 27))) })
	}
	t.Logf("%d sessions, %d acknowledged events", runs, total)
}

func soak(t *testing.T, random *rand.Rand) (acknowledged int) {
	t.Helper()
	c, _, direct, p := proxied(t)
	c.Lease, c.Patience = 50*time.Millisecond, 100*time.Millisecond
	behind := c
	behind.URL = p.URL("postgres")
	l, err := direct.Create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var group sync.WaitGroup
	var all []*contender
	var epochs epochs
	for i, conf := range []postgres.Config{c, behind, behind} {
		s := open(t, conf)
		log, err := s.Open(t.Context(), l.ID())
		if err != nil {
			t.Fatal(err)
		}
		one := &contender{log: log, name: fmt.Sprint("driver", i)}
		all = append(all, one)
		group.Go(func() {
			for ctx.Err() == nil {
				_ = one.turn(ctx, &epochs, 20) // busy, fenced or cut off: then another time
			}
		})
	}
	in := &writer{log: all[1].log, name: "input"}
	group.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			text := fmt.Sprint("input ", n)
			if in.append(ctx, text) == nil { // else no one knows what became of it
				in.acked = append(in.acked, text)
			}
		}
	})
	for range 12 {
		switch random.IntN(3) {
		case 0:
			p.Part(true)
			waitFor(ctx, time.Duration(random.IntN(100))*time.Millisecond)
			p.Part(false)
		case 1:
			p.Arm("driver", random.IntN(1400)-200, 0)
		default:
			p.Arm("driver", -1, random.IntN(100)-20)
		}
		waitFor(ctx, time.Duration(random.IntN(60))*time.Millisecond)
	}
	stop()
	group.Wait()
	for _, one := range append(all, &contender{acked: in.acked}) {
		holds(t, l, one.acked)
		acknowledged += len(one.acked)
	}
	inOrder(t, l)
	return acknowledged
}

// waitFor lets the others continue for a while.
func waitFor(ctx context.Context, d time.Duration) {
	ctx, stop := context.WithTimeout(ctx, d)
	defer stop()
	<-ctx.Done()
}

// inOrder fails unless each event of a driver follows the driver's own claim, with no other claim between them.
func inOrder(t *testing.T, l store.Log) {
	t.Helper()
	driver := ""
	var epochs []uint64
	for e, err := range l.Read(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		switch b := e.Body.(type) {
		case event.Claimed:
			driver, epochs = b.Writer[:len("driver0")], append(epochs, b.Epoch)
		case event.Note:
			if b.Text[:len("driver0")] != driver {
				t.Errorf("%q is driven by %q", b.Text, driver)
			}
		}
	}
	if !slices.IsSorted(epochs) {
		t.Errorf("epochs %v", epochs)
	}
}

package temporal_test

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/install/running"
)

// peer is a worker without an engine: it drives every session whose lease is free. The store alone decides between
// peers.
type peer struct {
	host   *inspan.Host
	open   func(ctx context.Context, id string) (*inspan.Session, error)
	lease  time.Duration
	greedy bool // it tries what others drive, all the time
	saw    func(event.Event)

	pool running.Pool
	free map[string]time.Time // sessions that no process drives, and since when that was seen
}

// run drives sessions until stop is closed, and lets go of them then.
func (p *peer) run(stop <-chan any) {
	p.pool.Open, p.pool.OnEvent, p.free = p.open, p.saw, map[string]time.Time{}
	ctx, end := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() { p.rescue(ctx) })
	work.Go(func() { p.look(ctx) })
	<-stop
	end()
	work.Wait()
	drain, over := context.WithTimeout(context.Background(), 10*time.Second)
	defer over()
	p.pool.Drain(drain)
	p.pool.Close()
}

// rescue drives sessions that have lost their process, where the store knows.
func (p *peer) rescue(ctx context.Context) {
	from, ok := p.host.Store.(interface {
		Lost(ctx context.Context) iter.Seq2[string, error]
	})
	if !ok {
		return
	}
	for id, err := range from.Lost(ctx) {
		if err == nil {
			p.drive(ctx, id)
		}
	}
}

// look drives sessions that are new, or that a driver has released.
func (p *peer) look(ctx context.Context) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		if err := p.looks(ctx); err != nil {
			clear(p.free) // the lease of whoever could not renew it is no sign either
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

func (p *peer) looks(ctx context.Context) error {
	list, err := p.host.Store.List(ctx)
	if err != nil {
		return err
	}
	for _, info := range list {
		if info.Empty || info.Stop != "" {
			continue
		}
		holder, err := p.host.Store.Holder(ctx, info.ID)
		if err != nil {
			return err
		}
		since, known := p.free[info.ID]
		switch {
		case p.greedy:
			p.drive(ctx, info.ID)
		case holder != nil:
			delete(p.free, info.ID)
		case !known:
			p.free[info.ID] = time.Now()
		case time.Since(since) >= p.waits():
			delete(p.free, info.ID)
			p.drive(ctx, info.ID)
		}
	}
	return nil
}

// waits is how long a session must have had no driver. A lock of the kernel ends with its process. A lease may also end
// because the database was away, and is renewed soon after that.
func (p *peer) waits() time.Duration {
	if _, local := p.host.Store.(folder); local {
		return 0
	}
	return p.lease
}

func (p *peer) drive(ctx context.Context, id string) {
	w, err := p.host.Watch(ctx, id)
	if err != nil {
		return
	}
	if w.Status().Active {
		_, _ = p.pool.Drive(context.WithoutCancel(ctx), id, nil) // if another has it, that is fine too
	}
	_ = w.Close()
}

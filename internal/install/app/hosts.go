package app

import (
	"sync"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/store"
)

// Hosts makes hosts for sessions that run beside each other and may have different models. The
// fields are not changed once it is in use; it is safe for concurrent use. What is apart is so for
// all sessions of a model, as its first options say. The sessions are those of guests.
type Hosts struct {
	Load   func() (*App, error) // reads the settings
	Warn   func(string)         // as in [App.Host]
	Nice   int                  // as in [permission.Set]
	Closed []string             // the same

	// Sessions keeps the sessions. Nil: the folder of this machine does.
	Sessions store.Store

	mu   sync.Mutex
	apps map[string]*App // by model, as options name it: each has what the environment has for it
}

// Host is [App.Host]. The settings are read when a model is first used.
func (h *Hosts) Host(o Options) (*inspan.Host, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := h.apps[o.Model]
	if a == nil {
		var err error
		if a, err = h.Load(); err != nil {
			return nil, err
		}
		a.Permission.Nice, a.Permission.Guests = h.Nice, true
		a.Permission.Closed = append(a.Permission.Closed, h.Closed...)
		Use(a, h.Sessions)
		aim(a, o, h.Warn)
		if h.apps == nil {
			h.apps = map[string]*App{}
		}
		h.apps[o.Model] = a
	}
	return hostOf(a, o, h.Warn), nil
}

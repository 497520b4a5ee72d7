package app

import (
	"sync"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/store"
)

// Hosts makes hosts for concurrent sessions that may use different models. Set the fields before the first use;
// then it is safe for concurrent use. The first options for a model decide which folders are apart, for all its
// sessions. The sessions belong to guests.
type Hosts struct {
	Load   func() (*App, error) // reads the settings
	Warn   func(string)         // as in [App.Host]
	Nice   int                  // as in [permission.Set]
	Closed []string             // the same

	// Sessions stores the sessions. Nil means in the folder of this machine.
	Sessions store.Store

	mu   sync.Mutex
	apps map[string]*App // by model name of the options: each app has read the environment for its model
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

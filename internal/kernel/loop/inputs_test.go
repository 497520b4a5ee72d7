package loop_test

import (
	"testing"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/tool"
)

// TestOutside checks which bodies bring text by strangers.
func TestOutside(t *testing.T) {
	effects := func(kinds ...tool.EffectKind) event.Body {
		var list []tool.Effect
		for _, k := range kinds {
			list = append(list, tool.Effect{Kind: k})
		}
		return event.Judged{Effects: list}
	}
	taint := event.Taint{Untrusted: true}
	for _, b := range []event.Body{
		effects(tool.Network), effects(tool.Read, tool.External),
		event.Ended{Untrusted: true},
		event.Said{Taint: taint},
		event.Steered{Origin: event.OriginPerson, Taint: taint},
		event.Added{Taint: taint},
		event.Returned{Taint: taint},
	} {
		if !loop.Outside(b) {
			t.Errorf("%+v is not from outside", b)
		}
	}
	private := event.Taint{Private: true}
	for _, b := range []event.Body{
		effects(), effects(tool.Read, tool.Write, tool.Execute),
		event.Ended{},
		event.Said{Taint: private},
		event.Replied{},
		nil,
	} {
		if loop.Outside(b) {
			t.Errorf("%+v is from outside", b)
		}
	}
}

package policy

import (
	"slices"

	"github.com/inspan/inspan/internal/places"
	"github.com/inspan/inspan/tool"
)

// Private reports whether effects, as they were judged, bring what is the person's
// own beyond the workspace, or what is sensitive in it.
func (p Policy) Private(effects []tool.Effect) bool {
	return slices.ContainsFunc(effects, func(e tool.Effect) bool {
		return e.Kind == tool.Read && (e.Sensitive != "" || p.Map.Of(e.Path).Zone == places.Elsewhere)
	})
}

// Leave asks about a call with a way out where the conversation, or the call
// itself, holds text that nobody here has written and what is private: that
// text could have it carried away. At most two of the three go without a
// person; no rule answers it.
func Leave(untrusted, private bool, mode string, effects []tool.Effect) tool.Verdict {
	out := slices.ContainsFunc(effects, func(e tool.Effect) bool { return e.Kind == tool.Network || e.Kind == tool.External })
	if !out || !untrusted || !private || mode == ModeYolo {
		return tool.Verdict{}
	}
	return tool.Verdict{
		Action: tool.Ask, By: "rule of two",
		Reason: "the conversation holds text from elsewhere and what is private, and this could carry it away",
	}
}

// Hand asks about a call that would give what a placeholder of a secret stands for to
// something beyond this machine that no effect describes, such as a server: a rule that
// allows its tools says nothing about secrets. No rule answers it.
func Hand(secret bool, mode string, effects []tool.Effect) tool.Verdict {
	out := slices.ContainsFunc(effects, func(e tool.Effect) bool { return e.Kind == tool.External })
	if !out || !secret || mode == ModeYolo {
		return tool.Verdict{}
	}
	return tool.Verdict{Action: tool.Ask, By: "secrets", Reason: "it would be given the secret that a placeholder stands for"}
}

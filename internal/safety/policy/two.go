package policy

import (
	"slices"

	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/tool"
)

// Private reports whether effects, as judged, may bring the person's own content from outside of the workspace,
// or sensitive content from inside.
func (p Policy) Private(effects []tool.Effect) bool {
	return slices.ContainsFunc(effects, func(e tool.Effect) bool {
		switch {
		case e.Kind == tool.Execute && e.Class == tool.Unproven:
			return len(p.Pass().Read) > 0
		case e.Kind == tool.Read:
			return e.Sensitive != "" || p.Map.Of(e.Path).Zone == places.Elsewhere
		}
		return false
	})
}

// Pass returns the files that people have opened by rules that name them although they are secret by name. They
// are also open to commands whose effects can't all be known.
func (p Policy) Pass() tool.Pass {
	var pass tool.Pass
	for _, r := range p.Rules {
		path := r.path(p.Map)
		if r.Action != tool.Allow || path == "" || !p.Map.Of(path).Named {
			continue
		}
		s := subject{Effect: tool.Effect{Kind: tool.EffectKind(r.tool), Path: path}}
		if p.ruled(tool.Deny, &tool.Call{}, s).Action != tool.Abstain || p.ruled(tool.Ask, &tool.Call{}, s).Action != tool.Abstain {
			continue
		}
		switch s.Kind {
		case tool.Read:
			pass.Read = append(pass.Read, path)
		case tool.Write:
			pass.Write = append(pass.Write, path)
		}
	}
	return pass
}

// AskBeforeLeak asks about a call with network access if the conversation, or the call itself, contains both unverified
// and private text: the unverified text could make the model send the private one away. At most two of the
// three are allowed without a person; no rule answers it.
func AskBeforeLeak(untrusted, private bool, mode tool.Mode, effects []tool.Effect) tool.Verdict {
	out := slices.ContainsFunc(effects, func(e tool.Effect) bool {
		return e.Kind == tool.Network && !netguard.Loopback(e.Text) || e.Kind == tool.External
	})
	if !out || !untrusted || !private || mode == tool.ModeYolo {
		return tool.Verdict{}
	}
	return tool.Verdict{
		Action: tool.Ask, By: "rule of two",
		Reason: "the conversation holds outside text and private data, and this call could send data out",
	}
}

// AskBeforeSecret asks about a call that would reveal the secret behind a placeholder to a command, which could print it
// encoded, or to something outside of this machine that no effect describes, such as a server. A rule that
// allows those does not cover secrets. No rule answers it. In mode auto a command in a sandbox without network
// gets secrets from texts, as from another command; named says that some is a key or variable of the person,
// which the sandbox lacks.
func AskBeforeSecret(secret, named bool, mode tool.Mode, walls tool.Walls, effects []tool.Effect) tool.Verdict {
	held := mode == tool.ModeAuto && walls.Workspace && !named
	command := slices.ContainsFunc(effects, func(e tool.Effect) bool { return e.Kind == tool.Execute })
	out := slices.ContainsFunc(effects, func(e tool.Effect) bool {
		switch e.Kind {
		case tool.External, tool.Keep:
			return true
		case tool.Execute:
			return !held
		case tool.Network:
			return command && !netguard.Loopback(e.Text)
		}
		return false
	})
	if !out || !secret || mode == tool.ModeYolo {
		return tool.Verdict{}
	}
	return tool.Verdict{Action: tool.Ask, By: "secrets", Reason: "it would receive a secret"}
}

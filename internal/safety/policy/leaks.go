package policy

import (
	"slices"

	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/tool"
)

// Private reports whether judged effects may bring private content into the conversation: the person's own files from
// outside the workspace, or sensitive files from inside.
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

// Pass returns the files that are secret by name and that allow rules name exactly. They are open even to commands
// whose effects can't all be known.
func (p Policy) Pass() tool.Pass {
	var pass tool.Pass
	for _, r := range p.Rules {
		path := r.singlePath(p.Map)
		if r.Action != tool.Allow || path == "" || !p.Map.Of(path).Named {
			continue
		}
		s := subject{Effect: tool.Effect{Kind: tool.EffectKind(r.tool), Path: path}}
		if p.applyRules(tool.Deny, &tool.Call{}, s).Action != tool.Abstain || p.applyRules(tool.Ask, &tool.Call{}, s).Action != tool.Abstain {
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

// AskBeforeLeak asks about a call that could send data out if the conversation, or the call itself, contains both
// untrusted and private text: the untrusted text could make the model send out the private text. Only two of the three
// are allowed without a person. No rule can answer this question. Mode yolo does not ask it.
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

// AskBeforeSecret asks about a call that would get a secret instead of its placeholder. A command could print it
// encoded, and an external tool or a host could keep it. No rule can answer this question.
//
// In mode auto, a command in a sandbox without network gets a secret that was found in text without asking, because it
// could read that text itself. Named means that the secret is a named key or variable of the person, which the sandbox
// withholds, so that question is asked. Mode yolo does not ask.
func AskBeforeSecret(secret, named bool, mode tool.Mode, walls tool.Walls, effects []tool.Effect) tool.Verdict {
	confined := mode == tool.ModeAuto && walls.Workspace && !named
	command := slices.ContainsFunc(effects, func(e tool.Effect) bool { return e.Kind == tool.Execute })
	out := slices.ContainsFunc(effects, func(e tool.Effect) bool {
		switch e.Kind {
		case tool.External, tool.Keep:
			return true
		case tool.Execute:
			return !confined
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

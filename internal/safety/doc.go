// Package safety decides whether a call may run. It proves the effects of a command or an edit, knows which
// places and values are secret, and holds the rules, modes and approvals that judge a call.
//
// A call is judged in this order: the tool names its effects (those of bash come from the syntax tree of the
// command line, see shell), policy judges each effect alone (deny rules, sensitive places, ask rules, files
// whose names make them secret, the mode, allow rules), further judges can only tighten the verdict, a person
// answers questions, and the tool runs in the sandbox that follows from the same effects.
//
// Nothing here acts: files with secret names are read only through places.Map.Look, which the sandbox
// implements.
//
// Begin with policy, then shell.
//
//	places    classes of paths: workspace, secret, ignored by git ...; pure
//	secret    finding secrets by value and by shape, and their placeholders; pure
//	netguard  addresses that tools may fetch, the proxy of the sandbox, access to our own servers
//	shell     effects of command lines and git settings, proven from the text; pure
//	foreign   tool names and permission rules of other agents, translated into ours
//	policy    modes, rules and sensitive places; pure
//	consent   approvals that outlive a session
//	guard     the reviewer model, your own checks, marks on untrusted text
package safety

package places

import (
	"slices"

	"github.com/inspan/inspan/tool"
)

// Beyond reports whether an effect is on a file outside of a workspace; none is if that is not known.
func Beyond(root string, e tool.Effect) bool {
	return (e.Kind == tool.Write || e.Kind == tool.Read) && !e.Own && root != "" && !tool.Inside(root, e.Path)
}

// Worst reports whether effects of a call in a workspace are what a person must see first: what is sensitive,
// and what leaves the workspace or the sandbox.
func Worst(root string, effects []tool.Effect) bool {
	return slices.ContainsFunc(effects, func(e tool.Effect) bool {
		return e.Sensitive != "" || e.Kind == tool.Network || e.Kind == tool.External || Beyond(root, e)
	})
}

package places

import (
	"slices"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/tool"
)

// Beyond reports whether an effect concerns a file outside of a workspace; false if that is unknown.
func Beyond(root string, e tool.Effect) bool {
	return (e.Kind == tool.Write || e.Kind == tool.Read) && !e.Own && root != "" && !text.Inside(root, e.Path)
}

// Worst reports whether a person must see an effect in a workspace first: it is sensitive, or leaves the
// workspace or the sandbox.
func Worst(root string, effects []tool.Effect) bool {
	return slices.ContainsFunc(effects, func(e tool.Effect) bool {
		return e.Sensitive != "" || e.Kind == tool.Network || e.Kind == tool.External || Beyond(root, e)
	})
}

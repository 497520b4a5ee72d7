package loop

import "github.com/inspan/inspan/tool"

// conflict reports whether two calls must not run at once: one writes what the
// other touches. Commands and external effects may touch anything.
func conflict(a, b []tool.Effect) bool {
	for _, x := range a {
		for _, y := range b {
			if clash(x, y) {
				return true
			}
		}
	}
	return false
}

func clash(x, y tool.Effect) bool {
	switch {
	case reader(x), reader(y): // what it reads stands beside it
		return false
	case x.Kind == tool.Read && y.Kind == tool.Read,
		x.Kind == tool.Network && y.Kind == tool.Network,
		isFile(x) && y.Kind == tool.Network,
		x.Kind == tool.Network && isFile(y):
		return false
	case isFile(x) && isFile(y):
		unknown := x.Path == "" || y.Path == ""
		return unknown || tool.Inside(x.Path, y.Path) || tool.Inside(y.Path, x.Path)
	}
	return true
}

func reader(e tool.Effect) bool { return e.Kind == tool.Execute && e.Class == tool.ProvenRead }

func isFile(e tool.Effect) bool { return e.Kind == tool.Read || e.Kind == tool.Write }

package permission

import "github.com/inspan/inspan/internal/policy"

// Mode is a mode for the people who choose one.
type Mode struct {
	Name string
	Doc  string
	Warn string // what a person is to agree to first; empty: nothing
}

// Modes lists the modes, from the most careful to the least.
func (s *Set) Modes() []Mode {
	var out []Mode
	for _, m := range policy.Modes() {
		mode := Mode{Name: m[0], Doc: m[1]}
		if mode.Name == policy.ModeYolo {
			mode.Warn = "nothing asks any more, not even what deletes or talks to the network"
		}
		out = append(out, mode)
	}
	return out
}

// Mode is the mode of a name. The error names the nearest one.
func (s *Set) Mode(name string) (Mode, error) {
	for _, m := range s.Modes() {
		if m.Name == name {
			return m, nil
		}
	}
	return Mode{}, policy.CheckMode(name)
}

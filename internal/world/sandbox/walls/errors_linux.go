package walls

// BuildError is a failure to build the walls.
type BuildError struct {
	what string
	err  error
}

func (e *BuildError) Error() string { return e.what + ": " + e.err.Error() }

func (e *BuildError) Unwrap() error { return e.err }

// During names the step of building walls that failed.
func During(what string, err error) error {
	if err == nil {
		return nil
	}
	return &BuildError{what, err}
}

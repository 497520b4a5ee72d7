package walls

// BuildError is a failure to build a box.
type BuildError struct {
	what string
	err  error
}

func (e *BuildError) Error() string { return e.what + ": " + e.err.Error() }

func (e *BuildError) Unwrap() error { return e.err }

// During adds the failed step of building a box to an error.
func During(what string, err error) error {
	if err == nil {
		return nil
	}
	return &BuildError{what, err}
}

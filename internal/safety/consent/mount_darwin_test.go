package consent_test

import "errors"

func mountSmall(string) error { return errors.ErrUnsupported }

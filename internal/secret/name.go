package secret

import "regexp"

var named = regexp.MustCompile(`(?i)(KEY|TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|COOKIE|(^|_)(AUTH|PAT|PWD)(_|$))`)

// Named reports whether a variable of the environment is called like one that
// holds a secret. It errs on the side of yes.
func Named(variable string) bool { return named.MatchString(variable) }

package secret

import "regexp"

var (
	named = regexp.MustCompile(`(?i)(KEY|TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|COOKIE|JWT|(^|_)BEARER` +
		`|(^|_)(AUTH|PAT|PWD)(_|$)|(^|_)(PASS|DSN|SEED|SK)(_?[0-9]+)?$)`)
	// unnamed are the folder of a shell, folders where secrets lie, and switches.
	unnamed = regexp.MustCompile(`^(OLD)?PWD$|(?i:_(DIR|BYPASS)$)`)
)

// Named reports whether a variable of the environment is called like one that
// holds a secret. It errs on the side of yes.
func Named(variable string) bool {
	return named.MatchString(variable) && !unnamed.MatchString(variable)
}

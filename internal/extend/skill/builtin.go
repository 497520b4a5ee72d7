package skill

import "embed"

const builtIn = "built in"

//go:embed builtin
var builtins embed.FS

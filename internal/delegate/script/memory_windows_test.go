package script_test

import "testing"

// memoryOfChildren returns 0: nothing measures processes that have ended.
func memoryOfChildren(*testing.T) int64 { return 0 }

package profile

import "testing"

// TestTable checks that no row of the table is there in vain.
func TestTable(t *testing.T) {
	for _, row := range table() {
		if err := row.Check(); err != nil {
			t.Errorf("%s: %v", row.Match, err)
		}
	}
}

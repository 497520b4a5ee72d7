package setup

import (
	"testing"

	"github.com/inspan/inspan"
)

// A build of a tag has the version of the tag. Any other has that of the source.
func TestVersionOf(t *testing.T) {
	for mod, want := range map[string]string{
		"v1.2.3":                               "1.2.3",
		"v1.2.3-rc.1":                          "1.2.3-rc.1",
		"v1.2.3+dirty":                         inspan.Version,
		"v1.2.4-0.20261124160439-057443fecfda": inspan.Version,
		"(devel)":                              inspan.Version,
		"":                                     inspan.Version,
	} {
		if got := versionOf(mod); got != want {
			t.Errorf("%q: %s, want %s", mod, got, want)
		}
	}
}

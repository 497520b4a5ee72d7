package netguard

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFetchHeader checks that the headers that package managers need reach a registry, and that other text of a process
// does not.
func TestFetchHeader(t *testing.T) {
	t.Parallel()
	date := "Sun, 06 Nov 1994 08:49:37 GMT"
	for name, c := range map[string]struct {
		public     bool
		give, want map[string]string
	}{
		"pip": {
			true,
			map[string]string{
				"User-Agent": `pip/24.0 {"ci":null,"cpu":"data"}`, "Accept-Encoding": "identity", "Cache-Control": "max-age=0",
				"Accept": "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html; q=0.1, text/html; q=0.01",
			},
			map[string]string{
				"User-Agent": "pip/24.0", "Accept-Encoding": "identity",
				"Accept": "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.1, text/html;q=0.01",
			},
		},
		"npm": {
			true,
			map[string]string{
				"User-Agent": "npm/10.2.4 node/v20.11.0 linux x64", "Npm-Command": "install", "Npm-Session": "data", "Accept-Encoding": "gzip,deflate,br",
				"Accept": "application/vnd.npm.install-v1+json; q=1.0, application/json; q=0.8, */*",
			},
			map[string]string{
				"User-Agent": "npm/10.2.4", "Accept-Encoding": "gzip, deflate, br",
				"Accept": "application/vnd.npm.install-v1+json;q=1.0, application/json;q=0.8, */*",
			},
		},
		"apt goes on": {
			true,
			map[string]string{"User-Agent": "Debian APT-HTTP/1.3 (2.6.1)", "Range": "bytes=1000-", "If-Range": date},
			map[string]string{"User-Agent": "inspan", "Range": "bytes=1000-", "If-Range": date},
		},
		"a part with a tag": {
			true,
			map[string]string{"Range": "bytes=1000-", "If-Range": `"data"`, "If-None-Match": `"data"`},
			map[string]string{"User-Agent": "inspan"},
		},
		"a login for a public one": {true, map[string]string{"Authorization": "Bearer data", "Cookie": "data"}, map[string]string{"User-Agent": "inspan"}},
		"a login for the person's": {
			false,
			map[string]string{"Authorization": "Bearer x", "Cookie": "data"},
			map[string]string{"User-Agent": "inspan", "Authorization": "Bearer x"},
		},
		"data in all": {
			true,
			map[string]string{
				"User-Agent": "da-ta data/1.2", "Accept": "application/data, text/html;data, gzip;q=0.1234", "Accept-Encoding": "data", "Range": "bytes=data",
				"If-Modified-Since": "data", "X-Data": "data", "Te": "data", "Via": "data",
			},
			map[string]string{"User-Agent": "inspan", "Accept": "text/html, gzip"},
		},
	} {
		give, want := http.Header{}, http.Header{}
		for k, v := range c.give {
			give.Set(k, v)
		}
		for k, v := range c.want {
			want.Set(k, v)
		}
		if diff := cmp.Diff(want, fetchHeader(give, c.public)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

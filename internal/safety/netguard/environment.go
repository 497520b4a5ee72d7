package netguard

import (
	"cmp"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"

	"golang.org/x/net/http/httpproxy"
)

// HeedAllProxy makes http.DefaultTransport use ALL_PROXY if HTTPS_PROXY or HTTP_PROXY is not set, as curl, pip
// and git do. A program calls it before its first request.
func HeedAllProxy() {
	if own, ok := http.DefaultTransport.(*http.Transport); ok {
		find := sync.OnceValue(func() func(*url.URL) (*url.URL, error) { return proxies(os.Getenv) })
		own.Proxy = func(r *http.Request) (*url.URL, error) { return find()(r.URL) }
	}
}

// proxies returns a function that returns the proxy for an address.
func proxies(getenv func(string) string) func(*url.URL) (*url.URL, error) {
	either := func(name string) string { return cmp.Or(getenv(name), getenv(strings.ToLower(name))) }
	all := either("ALL_PROXY")
	return (&httpproxy.Config{
		HTTPProxy: cmp.Or(either("HTTP_PROXY"), all), HTTPSProxy: cmp.Or(either("HTTPS_PROXY"), all), NoProxy: either("NO_PROXY"),
		CGI: getenv("REQUEST_METHOD") != "", // then HTTP_PROXY is a header from the client
	}).ProxyFunc()
}

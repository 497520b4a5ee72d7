package wire

import (
	"bytes"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/llm"
)

// Whole reports whether the body is JSON instead of a stream, which some servers send even if a stream was requested.
// It looks at the first byte, as content types are often wrong.
func (r *Reply) Whole() bool { return strings.ContainsAny(r.first(), "{[") }

// first skips white space and a byte order mark, and returns the first character after them; empty means there is
// none.
func (r *Reply) first() string {
	for {
		head, err := r.in.Peek(1)
		if err != nil {
			return ""
		}
		if strings.IndexByte(" \t\r\n\xef\xbb\xbf", head[0]) < 0 {
			return string(head)
		}
		_, _ = r.in.Discard(1)
	}
}

// prose reports whether the body is a text, which no server of models sends as a stream.
func (r *Reply) prose() bool {
	if c := r.first(); c != `"` && (c < "A" || c > "Z") && (c < "a" || c > "z") {
		return false
	}
	head, _ := r.in.Peek(len("event:")) // less than that is none of these
	field, _, found := strings.Cut(string(head), ":")
	return !found || !slices.Contains([]string{"data", "event", "id", "retry"}, field)
}

// elsewhere returns the error for an answer that does not come from a model's server, such as a web page, or that
// redirects to another; nil means it comes from one.
func (p Post) elsewhere(r *Reply, body []byte, page bool) *llm.Error {
	to := r.Header.Get("Location")
	switch {
	case r.Status >= 300 && r.Status < 400 && to != "":
		return &llm.Error{Kind: llm.KindNoReply, Status: r.Status, Message: "the server sends the request on to " + p.resolve(to) +
			"; it was not followed, as the key would go there too. If that is right, set base_url to it"}
	case r.Status == http.StatusProxyAuthRequired:
		return &llm.Error{
			Kind: llm.KindAuth, Status: r.Status,
			Message: "the proxy wants a name and a password; put them into the address in HTTPS_PROXY, as http://NAME:PASSWORD@HOST",
		}
	case page, r.Status == http.StatusNetworkAuthenticationRequired:
		return &llm.Error{Kind: llm.KindNoReply, Message: titleOf(body) + " came instead of a reply; log in to the network or the proxy that shows it, or correct base_url"}
	}
	return nil
}

// resolve returns the address that an answer points to, without parts that may be secret.
func (p Post) resolve(to string) string {
	base, err := url.Parse(p.URL)
	if err != nil {
		return Excerpt([]byte(to))
	}
	u, err := base.Parse(to)
	if err != nil {
		return Excerpt([]byte(to))
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return Excerpt([]byte(u.String()))
}

var (
	titled = text.Pattern(`(?is)<title[^>]*>(.*?)</title>`)
	tags   = text.Pattern(`(?is)<script.*?</script>|<style.*?</style>|<!--.*?-->|<[^>]*>`)
)

// titleOf names a web page by its title, and any other text by its first words.
func titleOf(page []byte) string {
	if m := titled().FindSubmatch(page); m != nil && Visible(string(m[1])) {
		return fmt.Sprintf("an HTML page with the title %q", Excerpt([]byte(html.UnescapeString(string(m[1])))))
	}
	what := "a text"
	if bytes.HasPrefix(bytes.TrimSpace(page), []byte("<")) {
		what = "an HTML page"
	}
	if words := html.UnescapeString(tags().ReplaceAllString(string(page), " ")); Visible(words) {
		return fmt.Sprintf("%s that says %q", what, text.Short(words, 100))
	}
	return what
}

var retryDelay = text.Pattern(`"retry_?[dD]elay"\s*:\s*"(\d+(?:\.\d+)?s)"`)

// retryInfo returns how long the body of an error asks to wait in the form of Google's RetryInfo
// (google/rpc/error_details.proto), which gateways pass on; 0 means it has none.
func retryInfo(body []byte) time.Duration {
	m := retryDelay().FindSubmatch(body)
	if m == nil {
		return 0
	}
	d, err := time.ParseDuration(string(m[1]))
	if err != nil {
		return 0
	}
	return bounded(d)
}

// replySize is the most bytes of a reply.
type replySize struct {
	content int   // text, reasoning and arguments
	body    int64 // the answer, as it is sent and decoded
}

// sizeOf returns a size that no reply of at most maxOutput tokens exceeds. No token is 64 bytes long on average,
// and each may have an event of its own. 0 stands for a number that is unknown.
func sizeOf(maxOutput int) replySize {
	most := replySize{content: 8 << 20, body: 128 << 20}
	if maxOutput > 0 {
		most.content = min(most.content, max(4<<20, 64*maxOutput))
		most.body = min(most.body, 8<<20+int64(maxOutput)<<10)
	}
	return most
}

// Bounded forwards the chunks of the reply until it is longer than it can be. over returns the error for that, nil
// otherwise.
func (r *Reply) Bounded(emit func(llm.Chunk) bool) (bounded func(llm.Chunk) bool, over func() error) {
	most, size := r.most.content, 0
	return func(c llm.Chunk) bool {
			size += len(c.Text) + len(c.Reasoning)
			if c.Call != nil {
				size += len(c.Call.Args)
			}
			return size <= most && emit(c)
		}, func() error {
			if size > most {
				return Endless()
			}
			return nil
		}
}

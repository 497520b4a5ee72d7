package wiretest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/inspan/inspan/llm"
)

// everyRefusal applies to every wire: the status decides if the vendor's body does not, the wait comes from the
// header, and the page of a proxy is cut short.
const everyRefusal = `
302
Location: http://elsewhere/
= no_reply

200 <html><head><title>Sign in</title></head></html>
= no_reply

200 <html><style>b{}</style><h1>Blocked &amp; logged</h1></html>
= no_reply

200 Blocked by policy 7
= no_reply

200 {"detail":"out of order"}
= transient, message out of order

200 {"code":500,"msg":"out of order"}
= transient, message out of order

200 {"message":"out of order","success":false}
= transient, message out of order

401
= auth

403 <html>forbidden</html>
= auth

408
= transient

418 short and stout
= invalid_request, message short and stout

429
= rate_limited

429
Retry-After: 7
= rate_limited, wait 7s

429
Retry-After: Sat, 01 Jan 2000 01:00:00 GMT
= rate_limited, wait 1h0m0s

429
Date: Sat, 01 Jan 2011 00:00:00 GMT
Retry-After: Sat, 01 Jan 2011 01:00:00 GMT
= rate_limited, wait 1h0m0s

429
Retry-After: 8000000
= rate_limited, wait 744h0m0s

429
Retry-After: soon
= rate_limited

500 [1, null]
= transient

502 <html>bad gateway</html>
= transient

503
Retry-After: 2.5
= overloaded, wait 2.5s

504
= transient

529
= overloaded
`

// TestRefusals proves that each error answer in a file becomes the [*llm.Error] that follows it, and that any
// adapter handles the answers of proxies, and failing connections. At makes the model that sends its requests
// with a transport.
//
// An entry of the file is the status, then the body, if any; lines of the header, if any; and behind "= " the
// kind, and the used tokens, the limit, the wait and the message as far as there are any:
//
//	429 {"error":{"type":"rate_limit_error"}}
//	Retry-After: 9
//	= rate_limited, wait 9s
//
// A body of status 200 is a stream with the error in it. The message is the last, and is only checked if it is
// given. The clock shows 2000-01-01 00:00 UTC.
func TestRefusals(t *testing.T, file string, at func(http.RoundTripper) llm.Model) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	own := refusals(t, string(text))
	if len(own) == 0 {
		t.Fatalf("%s: no entries", file)
	}
	for _, r := range append(own, refusals(t, everyRefusal)...) {
		wrong := ""
		synctest.Test(t, func(t *testing.T) { wrong = r.wrong(t.Context(), at) })
		if wrong != "" {
			t.Errorf("%d %s\n%s", r.status, r.body, wrong)
		}
	}
	for name, body := range map[string]func(page io.Reader) io.Reader{
		"cut":     func(page io.Reader) io.Reader { return io.MultiReader(page, iotest.ErrReader(errors.New("reset"))) },
		"endless": func(page io.Reader) io.Reader { return io.MultiReader(page, new(forever)) },
		"long":    func(page io.Reader) io.Reader { return io.LimitReader(io.MultiReader(page, new(forever)), 50_000) },
	} {
		e := refusal(t.Context(), at(tripper(func(*http.Request) (*http.Response, error) {
			return answered500(body(strings.NewReader("<html>\nbad\ngateway "))), nil
		})))
		if e == nil || e.Kind != llm.KindTransient || e.Status != 500 || len(e.Message) > 1000 || strings.Contains(e.Message, "\n") {
			t.Errorf("a page that is %s: %+v", name, e)
		}
	}
	e := refusal(t.Context(), at(tripper(func(*http.Request) (*http.Response, error) { return nil, errors.New("connection refused") })))
	if e == nil || e.Kind != llm.KindTransient || e.Status != 0 || !strings.Contains(e.Error(), "connection refused") {
		t.Errorf("a connection that fails: %+v", e)
	}
}

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answered500(body io.Reader) *http.Response {
	return &http.Response{StatusCode: http.StatusInternalServerError, Header: http.Header{}, Body: io.NopCloser(body)}
}

// forever is a body without an end. A reader of all of it fails instead of filling the memory.
type forever struct{ read int }

func (f *forever) Read(b []byte) (int, error) {
	if f.read += len(b); f.read > 200<<20 {
		return 0, errors.New("somebody reads all of a body without an end")
	}
	for i := range b {
		b[i] = 'x'
	}
	return len(b), nil
}

// entry is an entry of a file of refusals.
type entry struct {
	status  int
	body    string
	header  http.Header
	want    string
	message string // empty means any
}

// refusals parses entries, which blank lines separate. Lines that begin with "#" are comments.
func refusals(t *testing.T, text string) (list []entry) {
	t.Helper()
	var e *entry
	for n, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		status, body, _ := strings.Cut(line, " ")
		code, err := strconv.Atoi(status)
		name, value, isHeader := strings.Cut(line, ": ")
		switch {
		case line == "", strings.HasPrefix(line, "#"):
		case e == nil && err == nil:
			e = &entry{status: code, body: body, header: http.Header{"X-Request-Id": {"req_1"}}}
		case e != nil && status == "=":
			e.want, e.message, _ = strings.Cut(body, ", message ")
			list, e = append(list, *e), nil
		case e != nil && isHeader:
			e.header.Set(name, value)
		default:
			t.Fatalf("line %d is neither a status, nor a header, nor a result: %s", n+1, line)
		}
	}
	if e != nil {
		t.Fatalf("%d %s has no result", e.status, e.body)
	}
	return list
}

// wrong returns the fault of the error that a model makes from an entry, "" if nothing is.
func (r entry) wrong(ctx context.Context, at func(http.RoundTripper) llm.Model) string {
	body := r.body
	if r.status == http.StatusOK {
		body += "\n\n"
	}
	m := at(tripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: r.status, Header: r.header.Clone(), Body: io.NopCloser(strings.NewReader(body))}, nil
	}))
	e := refusal(ctx, m)
	switch {
	case e == nil:
		return " got no error\nwant " + r.want
	case summary(e) != r.want:
		return fmt.Sprintf(" got %s\nwant %s", summary(e), r.want)
	case r.message != "" && e.Message != r.message:
		return fmt.Sprintf(" got %q\nwant %q", e.Message, r.message)
	case e.Provider != m.Info().Provider, e.RequestID == "", r.status != http.StatusOK && e.Status != r.status:
		return fmt.Sprintf("it is of provider %q, request %q and status %d", e.Provider, e.RequestID, e.Status)
	}
	return ""
}

// summary returns an error in the form of a file of refusals.
func summary(e *llm.Error) string {
	s := string(e.Kind)
	if e.Used != 0 {
		s += fmt.Sprint(", used ", e.Used)
	}
	if e.Limit != 0 {
		s += fmt.Sprint(", limit ", e.Limit)
	}
	if e.RetryAfter != 0 {
		s += ", wait " + e.RetryAfter.String()
	}
	return s
}

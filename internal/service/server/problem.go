package server

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strconv"
	"strings"

	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/store"
)

// Problem is the reason why a request failed, in the form of the errors of the Messages API, with the field and the
// right value in addition.
type Problem struct {
	Status  int    `json:"-"`
	Type    string `json:"type"` // such as "invalid_request_error"
	Message string `json:"message"`
	Field   string `json:"field,omitempty"`
	Want    string `json:"want,omitempty"`
	Retry   int    `json:"-"` // seconds after which a retry makes sense; 0: unknown
}

// Error implements error.
func (p *Problem) Error() string { return p.Message }

// Wrong returns the problem of a field with an invalid value. the parameter what names the fault, want the remedy.
func Wrong(field, what, want string) *Problem {
	p := &Problem{Status: http.StatusBadRequest, Type: "invalid_request_error", Field: field, Want: want}
	if p.Message = field + ": " + what; want != "" {
		p.Message += "; use " + want
	}
	return p
}

// Within returns the error of a part of a request as one of the whole: At names the part. Parts are named by
// their fields and their indexes in lists, as in "servers.0.url".
func Within(at string, err error) error {
	p, is := errors.AsType[*Problem](err)
	if !is || at == "" {
		return err
	}
	inner := *p
	inner.Field = at
	if p.Field != "" && p.Field != theBody {
		inner.Field += "." + p.Field
	}
	inner.Message = inner.Field + ": " + strings.TrimPrefix(p.Message, p.Field+": ")
	return &inner
}

// Missing returns the problem for something that does not exist, or that the visitor may not see.
func Missing(what, id string) *Problem {
	return &Problem{Status: http.StatusNotFound, Type: "not_found_error", Message: fmt.Sprintf("%s %q not found", what, words.OneLine(id, 80))}
}

// Forbidden returns the problem for something that the visitor may not do.
func Forbidden(why string) *Problem {
	return &Problem{Status: http.StatusForbidden, Type: "permission_error", Message: why}
}

// BodyTooLarge returns the problem for a request that has too many bytes.
func BodyTooLarge() *Problem {
	return &Problem{Status: http.StatusRequestEntityTooLarge, Type: "request_too_large", Message: "the body is too large"}
}

// ending returns the problem for a request to a server that is shutting down.
func ending() *Problem {
	return &Problem{Status: http.StatusServiceUnavailable, Type: "overloaded_error", Message: "the server is shutting down", Retry: 30}
}

// Conflict returns the problem for a request that the current state does not allow.
func Conflict(format string, args ...any) *Problem {
	return &Problem{Status: http.StatusConflict, Type: "conflict_error", Message: fmt.Sprintf(format, args...)}
}

// ProblemOf returns an error as a problem for a client. An error that the client did not cause is an error of
// the server.
func ProblemOf(err error) *Problem {
	p, ok := errors.AsType[*Problem](err)
	misuse, misused := errors.AsType[words.Misuse](err)
	switch {
	case ok:
		return p
	case misused:
		return &Problem{Status: http.StatusBadRequest, Type: "invalid_request_error", Message: misuse.Error()}
	case diskFault(err):
		return &Problem{Status: http.StatusServiceUnavailable, Type: "overloaded_error", Message: noRoom, Retry: 30}
	case errors.Is(err, store.ErrUnavailable):
		return &Problem{Status: http.StatusServiceUnavailable, Type: "overloaded_error", Message: store.ErrUnavailable.Error(), Retry: 5}
	case errors.Is(err, fs.ErrNotExist):
		return &Problem{Status: http.StatusNotFound, Type: "not_found_error", Message: "it was removed on the server"}
	}
	return &Problem{Status: http.StatusInternalServerError, Type: "api_error", Message: err.Error()}
}

// RefuseWith responds with an error, in the shape that the vendor's SDKs also read. Each refusal has an id,
// which the client can name.
func RefuseWith(w http.ResponseWriter, err error) {
	p, id := ProblemOf(err), newID("req_")
	if p.Retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(p.Retry))
	}
	w.Header().Set("Request-Id", id)
	Reply(w, p.Status, map[string]any{"type": "error", "error": p, "request_id": id})
}

// Refuse responds for a [netguard.Gate]. A person who has opened an address that does not exist gets the page, which
// says so.
func Refuse(w http.ResponseWriter, r *http.Request, status int, why string) {
	if status == http.StatusUnauthorized && strays(r) {
		sendFile(w, r, "index.html", http.StatusNotFound)
		return
	}
	kinds := map[int]string{
		http.StatusUnauthorized: "authentication_error", http.StatusForbidden: "permission_error",
		http.StatusRequestEntityTooLarge: "request_too_large",
	}
	p := &Problem{Status: status, Type: "invalid_request_error", Message: why}
	if kind := kinds[status]; kind != "" {
		p.Type = kind
	}
	RefuseWith(w, p)
}

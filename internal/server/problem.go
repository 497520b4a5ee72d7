package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/words"
	"github.com/inspan/inspan/tool"
)

// Problem is why a request is not done, in the form of the errors of the Messages API with more
// to it: which field, and what would be right.
type Problem struct {
	Status  int    `json:"-"`
	Type    string `json:"type"` // such as "invalid_request_error"
	Message string `json:"message"`
	Field   string `json:"field,omitempty"`
	Want    string `json:"want,omitempty"`
	Retry   int    `json:"-"` // seconds after which it may be tried again; 0: nothing is said of that
}

// Error implements error.
func (p *Problem) Error() string { return p.Message }

// Wrong is a field that can't be as it is.
func Wrong(field, what, want string) *Problem {
	p := &Problem{Status: http.StatusBadRequest, Type: "invalid_request_error", Field: field, Want: want}
	if p.Message = field + ": " + what; want != "" {
		p.Message += "; use " + want
	}
	return p
}

// Missing says that there is no such thing, or none that the visitor may know of.
func Missing(what, id string) *Problem {
	return &Problem{Status: http.StatusNotFound, Type: "not_found_error", Message: fmt.Sprintf("%s %q not found", what, words.OneLine(id, 80))}
}

// Forbidden says that the visitor may not do that.
func Forbidden(why string) *Problem {
	return &Problem{Status: http.StatusForbidden, Type: "permission_error", Message: why}
}

// BodyTooLarge says that a request has more bytes than it may have.
func BodyTooLarge() *Problem {
	return &Problem{Status: http.StatusRequestEntityTooLarge, Type: "request_too_large", Message: "the body is too large"}
}

// ending says that the server takes nothing more.
func ending() *Problem {
	return &Problem{Status: http.StatusServiceUnavailable, Type: "overloaded_error", Message: "the server is shutting down", Retry: 30}
}

// Conflict says that things are not so that it could be done.
func Conflict(format string, args ...any) *Problem {
	return &Problem{Status: http.StatusConflict, Type: "conflict_error", Message: fmt.Sprintf(format, args...)}
}

// ProblemOf is what an error is to a client. What is none of the client's making is one of the
// server.
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
	case errors.Is(err, fs.ErrNotExist):
		return &Problem{Status: http.StatusNotFound, Type: "not_found_error", Message: "it is gone: somebody has removed it on the server"}
	}
	return &Problem{Status: http.StatusInternalServerError, Type: "api_error", Message: err.Error()}
}

// RefuseWith answers with what an error is, in the shape that the vendor's SDKs read too. Each
// refusal has an id, which the client can name.
func RefuseWith(w http.ResponseWriter, err error) {
	p, id := ProblemOf(err), newID("req_")
	if p.Retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(p.Retry))
	}
	w.Header().Set("Request-Id", id)
	Reply(w, p.Status, map[string]any{"type": "error", "error": p, "request_id": id})
}

// Refuse answers for a [gate.Gate].
func Refuse(w http.ResponseWriter, status int, why string) {
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

// Decode reads the body of a request, strictly: what it does not know, or what follows, is wrong.
func Decode(r io.Reader, into any) error {
	dec := json.NewDecoder(r)
	dec.DisallowUnknownFields()
	err := dec.Decode(into)
	if err == nil {
		if _, more := dec.Token(); !errors.Is(more, io.EOF) {
			return Wrong("body", "more data follows the object", "one JSON object")
		}
		return nil
	}
	kind, typed := errors.AsType[*json.UnmarshalTypeError](err)
	_, big := errors.AsType[*http.MaxBytesError](err)
	unknown, is := strings.CutPrefix(err.Error(), "json: unknown field ")
	inner, told := errors.AsType[*Problem](err)
	switch {
	case told: // a part of it was decoded as strictly
		return inner
	case big:
		return BodyTooLarge()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &Problem{Status: http.StatusRequestTimeout, Type: "timeout_error", Message: "the body did not come in time"}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return Wrong("body", "it ends before the object does", "one JSON object")
	case errors.Is(err, io.EOF):
		return Wrong("body", "it is empty", "one JSON object")
	case isTime(err):
		return Wrong("expires", "it is not a time", "a time such as 2027-01-31T12:00:00Z")
	case typed && kind.Field == "" && kind.Type.Kind() != reflect.Struct:
		return Wrong("body", "it has the JSON type "+kind.Value, named(kind.Type))
	case typed && kind.Field == "":
		return Wrong("body", "it has the JSON type "+kind.Value, "one JSON object")
	case typed:
		return Wrong(kind.Field, "it has the JSON type "+kind.Value, named(kind.Type))
	case is:
		name, _ := strconv.Unquote(unknown)
		return Wrong(words.OneLine(name, 80), "unknown field", near(name, reflect.TypeOf(into)))
	}
	if syntax, is := errors.AsType[*json.SyntaxError](err); is {
		return Wrong("body", "not valid JSON: "+syntax.Error(), "one JSON object")
	}
	return Wrong("body", "it can't be read", "one JSON object")
}

func isTime(err error) bool {
	_, is := errors.AsType[*time.ParseError](err)
	return is
}

// named names a type as clients know it.
func named(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "a list"
	}
	return "an object"
}

// near is the field of a type that a name was probably meant to be, or else all that there are.
func near(name string, t reflect.Type) string {
	if n := tool.Nearest(name, fieldsOf(t, map[reflect.Type]bool{})); n != "" && tool.Distance(name, n) <= max(1, len(name)/3) {
		return n
	}
	fields := fieldsOf(t, nil)
	if len(fields) == 0 {
		return "none"
	}
	return "one of " + strings.Join(fields, ", ")
}

// fieldsOf are the fields of a type, and of what it holds if seen is there to take down the types
// that were looked at.
func fieldsOf(t reflect.Type, seen map[reflect.Type]bool) (out []string) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || seen[t] {
		return nil
	}
	if seen != nil {
		seen[t] = true
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			out = append(out, fieldsOf(f.Type, seen)...)
			continue
		}
		if name != "" && name != "-" {
			out = append(out, name)
		}
		if name != "-" && seen != nil {
			out = append(out, fieldsOf(f.Type, seen)...)
		}
	}
	return out
}

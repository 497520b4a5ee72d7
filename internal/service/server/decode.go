package server

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/words"
)

// theBody is the field of a mistake that is not in a field.
const theBody = "body"

const oneObject = "one JSON object"

// Decode reads the body of a request strictly: unknown fields and trailing data are errors. Its errors are Problems
// that name the field, even if a part of the body decodes itself.
func Decode(r io.Reader, into any) error {
	raw, err := ReadBody(r)
	if err != nil {
		return err
	}
	return DecodeRaw(raw, into)
}

// DecodeRaw is Decode for a body, or a part of one, that is already in memory.
func DecodeRaw(raw []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	err := dec.Decode(into)
	if err == nil {
		if _, more := dec.Token(); !errors.Is(more, io.EOF) {
			return Wrong(theBody, "more data follows the object", oneObject)
		}
		return nil
	}
	syntax, broken := errors.AsType[*json.SyntaxError](err)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return Wrong(theBody, "it ends before the object does", oneObject)
	case errors.Is(err, io.EOF):
		return Wrong(theBody, "it is empty", oneObject)
	case broken:
		return Wrong(theBody, "not valid JSON: "+syntax.Error(), oneObject)
	}
	if p := mistake(raw, reflect.TypeOf(into)); p != nil {
		return p
	}
	return Wrong(theBody, "it can't be read", oneObject)
}

// ReadBody reads the body of a request, which is text.
func ReadBody(r io.Reader) ([]byte, error) {
	raw, err := io.ReadAll(r)
	_, big := errors.AsType[*http.MaxBytesError](err)
	switch {
	case big:
		return nil, BodyTooLarge()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, &Problem{Status: http.StatusRequestTimeout, Type: "timeout_error", Message: "the body did not arrive in time"}
	case err != nil:
		return nil, Wrong(theBody, "it can't be read", oneObject)
	case !utf8.Valid(raw):
		return nil, Wrong(theBody, "it is not in UTF-8", "JSON in UTF-8")
	}
	return raw, shallow(raw)
}

// mistake returns the first thing in a JSON value that does not match a type, or nil.
func mistake(raw json.RawMessage, t reflect.Type) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	first, _ := dec.Token()
	switch {
	case first == nil || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()):
	case first == json.Delim('{') && t.Kind() == reflect.Struct:
		return mistakenField(dec, t)
	case first == json.Delim('{') && t.Kind() == reflect.Map:
		return mistakenPart(dec, func(int) (string, reflect.Type, error) {
			name, err := dec.Token()
			return fmt.Sprint(name), t.Elem(), err
		})
	case first == json.Delim('[') && t.Kind() == reflect.Slice:
		return mistakenPart(dec, func(i int) (string, reflect.Type, error) { return strconv.Itoa(i), t.Elem(), nil })
	}
	err := json.Unmarshal(raw, reflect.New(t).Interface())
	p, told := errors.AsType[*Problem](err)
	kind, typed := errors.AsType[*json.UnmarshalTypeError](err)
	_, noTime := errors.AsType[*time.ParseError](err)
	switch {
	case err == nil:
		return nil
	case told: // by a part that decodes itself
		return p
	case typed:
		return Wrong(theBody, "it has the JSON type "+kind.Value, named(kind.Type))
	case noTime:
		return Wrong(theBody, "it is not a time", "a time such as 2027-01-31T12:00:00Z")
	}
	return Wrong(theBody, words.OneLine(err.Error(), 200), "")
}

func mistakenField(dec *json.Decoder, t reflect.Type) error {
	return mistakenPart(dec, func(int) (string, reflect.Type, error) {
		key, err := dec.Token()
		if err != nil {
			return "", nil, err
		}
		name := fmt.Sprint(key)
		for _, f := range fieldsOf(t) {
			if strings.EqualFold(nameOf(f), name) {
				return nameOf(f), f.Type, nil
			}
		}
		return "", nil, Wrong(words.OneLine(name, 80), "unknown field", near(name, namesOf(t)))
	})
}

// mistakenPart returns the first mistake in the parts of an object or a list. Next names each part.
func mistakenPart(dec *json.Decoder, next func(int) (string, reflect.Type, error)) error {
	for i := 0; dec.More(); i++ {
		name, t, err := next(i)
		if err != nil {
			return err
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return err
		}
		if err := mistake(raw, t); err != nil {
			return Within(words.OneLine(name, 80), err)
		}
	}
	return nil
}

// named returns the name of a type for clients.
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

// near returns the known name that was probably meant, or else all known names.
func near(name string, known []string) string {
	if n := text.Nearest(name, known); n != "" && text.Distance(name, n) <= max(1, len(name)/3) {
		return n
	}
	if len(known) == 0 {
		return "none"
	}
	return "one of " + strings.Join(known, ", ")
}

// fieldsOf returns the JSON fields of a type, including those of embedded types.
func fieldsOf(t reflect.Type) (out []reflect.StructField) {
	for i := range t.NumField() {
		f := t.Field(i)
		switch {
		case f.Anonymous && f.Tag.Get("json") == "":
			if f.Type.Kind() == reflect.Pointer {
				f.Type = f.Type.Elem()
			}
			out = append(out, fieldsOf(f.Type)...)
		case f.IsExported() && nameOf(f) != "-":
			out = append(out, f)
		}
	}
	return out
}

func namesOf(t reflect.Type) (out []string) {
	for _, f := range fieldsOf(t) {
		out = append(out, nameOf(f))
	}
	return out
}

// nameOf returns the JSON name of a field.
func nameOf(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return cmp.Or(name, f.Name)
}

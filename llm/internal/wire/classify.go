package wire

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/inspan/inspan/internal/base/repair"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/llm"
)

// KindOfStatus returns the kind for an HTTP status if nothing else is known.
func KindOfStatus(status int) llm.Kind {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return llm.KindAuth
	case http.StatusPaymentRequired:
		return llm.KindBilling
	case http.StatusNotFound:
		return llm.KindNoModel
	case http.StatusRequestEntityTooLarge:
		return llm.KindTooLarge
	case http.StatusTooManyRequests:
		return llm.KindRateLimited
	case http.StatusServiceUnavailable, 529:
		return llm.KindOverloaded
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly:
		return llm.KindTransient
	}
	if status >= 300 && status < 500 {
		return llm.KindInvalid
	}
	return llm.KindTransient
}

// Excerpt returns the start of a body that is not an answer of the API, such as the page of a proxy, in one line.
func Excerpt(body []byte) string {
	return text.Short(strings.ToValidUTF8(string(body), "\ufffd"), 300)
}

// Said returns the text of an error in a form that is not the vendor's, as gateways send it, or else the start of the
// body.
func Said(body []byte) string {
	var v any
	if json.Unmarshal(body, &v) == nil {
		if words := said(v); words != "" {
			return Excerpt([]byte(words))
		}
	}
	return Excerpt(body)
}

// said returns the first text under a name that gateways use for it.
func said(v any) string {
	switch v := v.(type) {
	case string:
		return strings.TrimSpace(v)
	case []any:
		for _, inner := range v {
			if words := said(inner); words != "" {
				return words
			}
		}
	case map[string]any:
		for _, name := range []string{"message", "msg", "error_msg", "errmsg", "detail", "error_description", "error", "errors", "description"} {
			if words := said(v[name]); words != "" {
				return words
			}
		}
	}
	return ""
}

// Secrets returns the values in h that grant access, under the usual names and keyHeader.
func Secrets(h http.Header, keyHeader string) []string {
	var secrets []string
	for _, name := range []string{keyHeader, "Authorization", "X-Api-Key", "Api-Key", "Proxy-Authorization"} {
		for _, v := range h.Values(name) {
			secrets = append(secrets, v)
			if _, token, ok := strings.Cut(v, " "); ok {
				secrets = append(secrets, token)
			}
		}
	}
	return secrets
}

// Args returns the arguments of a finished call, or {} and the model's text if it can't be read as an object. A
// reply that was cut is not repaired: a repaired fragment may mean something else than the whole.
func Args(raw string, stop llm.Stop) (args json.RawMessage, invalid string) {
	if stop == llm.StopLength || stop == llm.StopWindow {
		if !json.Valid([]byte(raw)) {
			return json.RawMessage("{}"), raw
		}
	}
	if args, ok := repair.Args(raw); ok {
		return args, ""
	}
	return json.RawMessage("{}"), raw
}

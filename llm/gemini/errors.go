package gemini

import (
	"bytes"
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/internal/wire"
)

// status is Google's error model (google.rpc.Status) with the details that are read: ErrorInfo, RetryInfo and
// QuotaFailure.
type status struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Status  string `json:"status"`
	Details []struct {
		Reason     string            `json:"reason"`
		Metadata   map[string]string `json:"metadata"`
		RetryDelay string            `json:"retryDelay"`
		Violations []struct {
			QuotaID string `json:"quotaId"`
		} `json:"violations"`
	} `json:"details"`
}

// classify turns an error body, or the data of an error event, into an [llm.Error]. The vendor's status decides;
// without one the HTTP status does, as in answers of a proxy.
func classify(code int, body []byte) *llm.Error {
	body = bytes.TrimSpace(body)
	var v struct {
		Error status `json:"error"`
	}
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0]
	}
	_ = json.Unmarshal(body, &v) // v stays empty if it is not JSON
	s := v.Error
	e := &llm.Error{Code: s.Status, Message: s.Message}
	if code != http.StatusOK {
		e.Status = code
	} else if s.Code != 0 {
		code = s.Code
	}
	if e.Message == "" {
		e.Message = wire.Said(body)
	}
	e.Kind = kindOf(s.Status)
	switch {
	case e.Kind != "":
	case code == 499: // cancelled on the vendor's side
		e.Kind = llm.KindTransient
	default:
		e.Kind = wire.KindOfStatus(code)
	}
	refine(e, s)
	return e
}

// kindOf returns the kind of one of Google's canonical statuses.
func kindOf(status string) llm.Kind {
	switch status {
	case "INVALID_ARGUMENT", "FAILED_PRECONDITION", "OUT_OF_RANGE", "UNIMPLEMENTED":
		return llm.KindInvalid
	case "UNAUTHENTICATED", "PERMISSION_DENIED":
		return llm.KindAuth
	case "NOT_FOUND":
		return llm.KindNoModel
	case "RESOURCE_EXHAUSTED":
		return llm.KindRateLimited
	case "UNAVAILABLE":
		return llm.KindOverloaded
	case "INTERNAL", "UNKNOWN", "DEADLINE_EXCEEDED", "CANCELLED", "ABORTED", "DATA_LOSS":
		return llm.KindTransient
	}
	return ""
}

// history matches the messages of errors in the conversation; it is compiled when one occurs.
const history = `(?i)thought.?signature|function response|function call (?:turn|part)|alternate between|unsupported mime type|unable to process input image|image is not valid`

var (
	overflow = regexp.MustCompile(`(?i)input token count(?: is)?(?: \(?(\d+)\)?)?.*?(?:allowed|supports up to) \(?(\d+)`)
	noLimit  = regexp.MustCompile(`\blimit: 0\b`)
	retryIn  = regexp.MustCompile(`(?i)\bretry in ((?:\d+(?:\.\d+)?(?:h|ms|m|s))+)`)
)

// refine distinguishes errors that the vendor reports under one status, by their details and text.
func refine(e *llm.Error, s status) {
	var reasons string
	for _, d := range s.Details {
		if d.Reason != "" {
			reasons += d.Reason + " "
		}
	}
	text := strings.ToLower(reasons + e.Message)
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(text, w) {
				return true
			}
		}
		return false
	}
	switch e.Kind {
	case llm.KindRateLimited:
		refineQuota(e, s, has)
	case llm.KindAuth:
		switch {
		case has("validation_required"):
			e.Message += link(s)
		case has("expired"):
			e.Kind = llm.KindAuthExpired
		case has("billing"):
			e.Kind = llm.KindBilling
		}
	case llm.KindInvalid:
		refineInvalid(e, has)
	case llm.KindOverloaded:
		e.RetryAfter = delay(s)
	}
}

// link returns the address where a person has to verify their identity, in brackets.
func link(s status) string {
	for _, d := range s.Details {
		if at := d.Metadata["validation_link"]; at != "" {
			return " (" + at + ")"
		}
	}
	return ""
}

// refineQuota distinguishes a temporary limit from a used-up allowance, and both from a model without capacity. The
// delay that comes with a daily allowance belongs to some other limit and is ignored. A limit of 0 means that the
// model requires payment.
func refineQuota(e *llm.Error, s status, has func(...string) bool) {
	daily := has("perday", "per day", "daily", "spending cap")
	for _, d := range s.Details {
		for _, v := range d.Violations {
			daily = daily || strings.Contains(v.QuotaID, "PerDay") || strings.Contains(v.QuotaID, "Daily")
		}
	}
	switch {
	case noLimit.MatchString(e.Message), has("prepayment credits"):
		e.Kind, e.RetryAfter = llm.KindBilling, wire.NoWait
	case has("model_capacity_exhausted", "no capacity available"):
		e.Kind, e.RetryAfter = llm.KindOverloaded, delay(s)
	case daily: // the stated delay belongs to another limit
		e.Kind, e.RetryAfter = llm.KindQuota, wire.NoWait
	case has("quota_exhausted"):
		e.Kind, e.RetryAfter = llm.KindQuota, delay(s)
	default:
		e.RetryAfter = delay(s)
	}
}

func refineInvalid(e *llm.Error, has func(...string) bool) {
	if m := overflow.FindStringSubmatch(e.Message); m != nil {
		e.Kind = llm.KindWindow
		e.Used, _ = strconv.Atoi(m[1]) // stays 0 if not stated
		e.Limit, _ = strconv.Atoi(m[2])
		return
	}
	switch {
	case has("api key expired"):
		e.Kind = llm.KindAuthExpired
	case has("api_key_invalid", "api key not valid", "api key not found"):
		e.Kind = llm.KindAuth
	case has("billing"):
		e.Kind = llm.KindBilling
	case has("payload size exceeds"):
		e.Kind = llm.KindTooLarge
	case regexp.MustCompile(history).MatchString(e.Message):
		e.Kind = llm.KindHistory
	}
}

// delay returns how long the vendor asks to wait: from RetryInfo, or from the text.
func delay(s status) time.Duration {
	for _, d := range s.Details {
		if wait, err := time.ParseDuration(d.RetryDelay); err == nil && wait > 0 {
			return wait
		}
	}
	if m := retryIn.FindStringSubmatch(s.Message); m != nil {
		wait, _ := time.ParseDuration(m[1])
		return wait
	}
	return 0
}

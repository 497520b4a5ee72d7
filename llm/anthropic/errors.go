package anthropic

import (
	"cmp"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/internal/wire"
)

// classify turns an error body, or the data of an error event, into an [llm.Error]. The vendor's type decides;
// without one the status does, as in answers of the CDN in front of the API.
func classify(status int, body []byte) *llm.Error { return classifyAs("", status, body) }

// classifyAs is classify for errors whose type is outside the body, such as Bedrock's.
func classifyAs(code string, status int, body []byte) *llm.Error {
	f := parse(body)
	e := &llm.Error{Code: cmp.Or(code, f.Error.Type, f.Error.Status), RequestID: f.RequestID}
	e.Message = cmp.Or(f.Error.Message, f.Message, wire.Said(body))
	if raw := f.Error.Metadata.Raw; raw != "" {
		e.Message += ": " + wire.Said([]byte(raw))
	}
	if status != http.StatusOK {
		e.Status = status
	}
	if e.Kind = kindOfType(strings.ToLower(e.Code)); e.Kind == "" {
		e.Kind = wire.KindOfStatus(status)
	}
	refine(e, f.reasons())
	return e
}

// failure is the body of an error: the vendor's, Bedrock's, which has only a message, or Google's.
type failure struct {
	Error struct {
		Type    string `json:"type"`
		Message string `json:"message"`
		Status  string `json:"status"`
		Details []struct {
			Reason string `json:"reason"`
		} `json:"details"`
		Metadata struct {
			Raw string `json:"raw"` // OpenRouter: the text of the provider behind it
		} `json:"metadata"`
	} `json:"error"`
	Message   string `json:"message"`
	RequestID string `json:"request_id"`
}

// parse returns the zero failure if the body is not an API's answer. Google sends a list of one.
func parse(body []byte) failure {
	var f failure
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0]
	}
	if json.Unmarshal(body, &f) != nil {
		return failure{}
	}
	return f
}

func (f failure) reasons() string {
	var all string
	for _, d := range f.Error.Details {
		all += " " + d.Reason
	}
	return all
}

// kindOfType returns the kind of an error type, in lower case: the vendor's own,
// Bedrock's exceptions, and Google's statuses.
func kindOfType(code string) llm.Kind {
	switch code {
	case "invalid_request_error", "validationexception", "invalid_argument", "failed_precondition":
		return llm.KindInvalid
	case "authentication_error", "permission_error", "accessdeniedexception", "unrecognizedclientexception",
		"invalidsignatureexception", "incompletesignature", "missingauthenticationtokenexception", "unauthenticated", "permission_denied":
		return llm.KindAuth
	case "expiredtokenexception":
		return llm.KindAuthExpired
	case "billing_error":
		return llm.KindBilling
	case "not_found_error", "resourcenotfoundexception", "not_found":
		return llm.KindNoModel
	case "request_too_large":
		return llm.KindTooLarge
	case "rate_limit_error", "throttlingexception", "resource_exhausted":
		return llm.KindRateLimited
	case "servicequotaexceededexception":
		return llm.KindQuota
	case "overloaded_error", "serviceunavailableexception", "modelnotreadyexception", "unavailable":
		return llm.KindOverloaded
	case "api_error", "timeout_error", "conflict_error",
		"internalserverexception", "modelstreamerrorexception", "modelerrorexception", "modeltimeoutexception",
		"internal", "unknown", "cancelled", "aborted", "deadline_exceeded":
		return llm.KindTransient
	}
	return ""
}

// history matches the messages of errors in the conversation; it is compiled when one occurs.
const history = "(?i)tool_use|tool_result|signature|thinking. block|roles must|text content blocks|could not process image|image exceeds|image dimensions"

var (
	promptTooLong = regexp.MustCompile(`prompt is too long: (\d+) tokens? > (\d+)`)
	sumTooLong    = regexp.MustCompile(`exceed context limit: (\d+) \+ (\d+) > (\d+)`)
)

// refine distinguishes errors that the vendor reports under one type, by their text and, on Vertex AI, by their
// reasons.
func refine(e *llm.Error, reasons string) {
	if m := promptTooLong.FindStringSubmatch(e.Message); m != nil {
		e.Kind = llm.KindWindow
		e.Used, _ = strconv.Atoi(m[1])
		e.Limit, _ = strconv.Atoi(m[2])
		return
	}
	if m := sumTooLong.FindStringSubmatch(e.Message); m != nil {
		e.Kind = llm.KindWindow
		e.Used, _ = strconv.Atoi(m[1])
		reserved, _ := strconv.Atoi(m[2])
		e.Limit, _ = strconv.Atoi(m[3])
		e.Limit = max(e.Limit-reserved, 0)
		return
	}
	text := strings.ToLower(e.Message + reasons)
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
	}
	switch e.Kind {
	case llm.KindAuth:
		switch {
		case has("expired"):
			e.Kind = llm.KindAuthExpired
		case has("payment instrument", "requires billing", "billing to be enabled"):
			e.Kind = llm.KindBilling
		}
	case llm.KindRateLimited:
		if has("spend limit", "per day") {
			e.Kind = llm.KindQuota
		}
	case llm.KindInvalid:
		refineInvalid(e, has)
	}
}

func refineInvalid(e *llm.Error, has func(...string) bool) {
	switch {
	case has("prompt is too long", "input is too long", "too many total text bytes"):
		e.Kind = llm.KindWindow
	case has("member must have length less than or equal to"):
		e.Kind = llm.KindTooLarge
	case has("credit balance"):
		e.Kind = llm.KindBilling
	case has("usage limits", "spend limit"):
		e.Kind = llm.KindQuota
	case has("content filtering policy"):
		e.Kind = llm.KindRefused
	case has("model identifier is invalid", "on-demand throughput"):
		e.Kind = llm.KindNoModel
	case regexp.MustCompile(history).MatchString(e.Message):
		e.Kind = llm.KindHistory
	}
}

package openai

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/internal/wire"
)

// failure is the union of the formats in which servers report an error.
type failure struct {
	Error    json.RawMessage `json:"error"`   // an object like this one, or a string
	Message  json.RawMessage `json:"message"` // a string; from some gateways, an object
	Type     string          `json:"type"`
	Code     json.RawMessage `json:"code"` // a string or a number
	Detail   json.RawMessage `json:"detail"`
	Metadata struct {
		Raw json.RawMessage `json:"raw"` // OpenRouter: the text of the provider behind it
	} `json:"metadata"`
	Wait     float64 `json:"estimated_time"`    // Hugging Face, seconds
	ResetsIn float64 `json:"resets_in_seconds"` // OpenAI, for a used-up allowance
	ResetsAt float64 `json:"resets_at"`         // the same as a Unix time
	Prompt   int     `json:"n_prompt_tokens"`   // llama.cpp
	Context  int     `json:"n_ctx"`
}

// classify turns an error body, or an error in the middle of a stream, into an
// [llm.Error].
func classify(status int, body []byte) *llm.Error {
	f := parseFailure(body)
	e := &llm.Error{Message: f.message(), Code: f.code(), Used: f.Prompt, Limit: f.Context, RetryAfter: f.wait(time.Now())}
	if status != http.StatusOK {
		e.Status = status
	} else if n, err := strconv.Atoi(e.Code); err == nil && n >= 400 && n < 600 {
		status = n
	}
	if e.Message == "" {
		e.Message = wire.Said(body)
	}
	e.Kind = kindOf(status, e.Code+" "+f.Type, e.Message)
	if e.Kind != llm.KindWindow {
		e.Used, e.Limit = 0, 0
	} else if e.Limit == 0 {
		e.Used, e.Limit = windowNumbers(e.Message)
	}
	return e
}

// classify adds rules of the dialect to the function of that name.
func (d dialect) classify(status int, body []byte) *llm.Error {
	e := classify(status, body)
	empty := len(strings.TrimSpace(string(body))) == 0
	if d.bareOverflow && empty && (status == http.StatusBadRequest || status == http.StatusRequestEntityTooLarge) {
		e.Kind, e.Message = llm.KindWindow, "refused without a word, as prompts are that are too long"
	}
	return e
}

func parseFailure(body []byte) failure {
	body = []byte(strings.TrimSpace(string(body)))
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 { // Gemini's compatible endpoint
		body = list[0]
	}
	var f failure
	if json.Unmarshal(body, &f) != nil {
		return failure{}
	}
	if _, isText := asText(f.Error); isText {
		f.Message = f.Error
	} else if len(f.Error) > 0 {
		outer := f.Wait
		var inner failure
		if json.Unmarshal(f.Error, &inner) == nil {
			f = inner
			f.Wait = max(f.Wait, outer)
		}
	}
	if !isSet(f.Message) {
		f.Message = f.Detail
	}
	return f
}

// message returns the text of the error. If the server passes on another server's error, the text of that, which
// has the cause.
func (f failure) message() string {
	text, isText := asText(f.Message)
	if !isText && isSet(f.Message) {
		text = wire.Excerpt(f.Message)
	}
	raw, isText := asText(f.Metadata.Raw)
	if !isText && isSet(f.Metadata.Raw) {
		raw = string(f.Metadata.Raw)
	}
	if raw == "" {
		return text
	}
	if inner := parseFailure([]byte(raw)); inner.Message != nil {
		raw = inner.message()
	}
	return text + ": " + wire.Excerpt([]byte(raw))
}

// wait returns how long the body asks to wait; 0 if it does not say.
func (f failure) wait(now time.Time) time.Duration {
	if s := max(f.Wait, f.ResetsIn); s > 0 {
		return wire.Wait(s, now)
	}
	return wire.Wait(f.ResetsAt, now)
}

func asText(raw json.RawMessage) (string, bool) {
	var s string
	err := json.Unmarshal(raw, &s)
	return s, isSet(raw) && err == nil
}

func (f failure) code() string {
	if s, ok := asText(f.Code); ok {
		return s
	}
	if isSet(f.Code) {
		return string(f.Code)
	}
	return f.Type
}

// kindOf classifies by the vendor's code and type first, which have words such as context_length_exceeded, then by
// its message, then by the status.
func kindOf(status int, codes, message string) llm.Kind {
	codes, message = strings.ToLower(codes), strings.ToLower(message)
	all := codes + " " + message
	switch {
	case (says(all, window()) || exceeds(all)) && (status < 500 || status == http.StatusInternalServerError):
		return llm.KindWindow
	case status == http.StatusUnauthorized:
		if strings.Contains(all, "expired") {
			return llm.KindAuthExpired
		}
		return llm.KindAuth
	case says(all, noTools()):
		return llm.KindNoTools
	case says(all, filter()):
		return llm.KindRefused
	case status == http.StatusPaymentRequired, says(all, billing()):
		return llm.KindBilling
	case status == http.StatusTooManyRequests || containsAny(codes, "rate_limit", "usage_limit"):
		if says(all, quota()) {
			return llm.KindQuota
		}
		return llm.KindRateLimited
	case strings.Contains(all, "overloaded"):
		return llm.KindOverloaded
	}
	return kindOfRequest(status, all)
}

// kindOfRequest classifies an error of the request itself.
func kindOfRequest(status int, all string) llm.Kind {
	kind := wire.KindOfStatus(status)
	switch {
	case status == http.StatusNotFound && !strings.Contains(all, "model") && !says(all, noModel()):
		return llm.KindInvalid // a wrong base URL
	case kind == llm.KindInvalid && says(all, noModel()):
		return llm.KindNoModel
	case (kind == llm.KindInvalid || status == http.StatusInternalServerError || status == http.StatusOK) && says(all, broken()):
		return llm.KindHistory
	}
	return kind
}

package openai

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The phrases by which servers describe failures, in lower case; "*" stands for anything. They are lists in
// functions, not regular expressions, because most processes never need one.

func window() []string {
	return []string{
		"maximum context length", "maximum prompt length", "context_length_exceeded", "context_window_exceeded", "exceed_context_size",
		"max_prompt_tokens_exceeded", "string_above_max_length",
		"context length exceed", "context window exceed", "context size exceed",
		"context length is exceeded", "context window is exceeded", "context size is exceeded",
		"context length has been exceeded", "context window has been exceeded", "context size has been exceeded",
		"exceeded model token limit", "reduce the length of the messages", "reduce the length of the prompt", "greater than the context length",
		"loaded with context length of only", "prompt is too long", "prompt too long", "input is too long", "too large for model with",
		"tokens + `max_new_tokens` must be", "tokens + max_new_tokens must be", "prompt token count of", "maximum input length",
		"maximum input tokens",
		"max input length", "max input tokens", "body too large for * model", "request too large for model", "too many tokens in the prompt",
	}
}

// exceeds reports whether s says that something exceeds a context, in any common wording: "exceeds the model's
// maximum context length".
func exceeds(s string) bool {
	for {
		_, after, found := strings.Cut(s, "exceed")
		if !found {
			return false
		}
		s = after
		words := strings.Fields(after[:min(len(after), 100)])
		if len(words) > 0 && !strings.HasPrefix(after, " ") {
			words = words[1:] // the rest of "exceeded"
		}
		for len(words) > 0 && slices.Contains([]string{"the", "its", "model's", "available", "maximum", "max", "model"}, words[0]) {
			words = words[1:]
		}
		what := strings.Join(words, " ")
		for _, start := range []string{"context", "token limit", "number of tokens", "input length", "length"} {
			if strings.HasPrefix(what, start) {
				return true
			}
		}
	}
}

func noTools() []string {
	return []string{
		"support tool use", "support tool_use", "support the provided 'tool_choice' value", "tool choice requires --enable-auto-tool-choice",
		"requires --enable-auto-tool-choice", "tools param requires --jinja", "unsupported param: tools", "not support tool",
		"not support function call",
		"tools is not supported", "`tools` is not supported", "'tools' is not supported", "tools are not supported", "tool use is not supported",
		"tool calling is not supported",
		"tool calls are not supported", "function calling is not supported", "function calling is not enabled", "function calling not supported",
	}
}

func billing() []string {
	return []string{
		"insufficient_quota", "insufficient balance", "insufficient credit", "billing", "payment", "credit balance",
		"exceeded your current quota",
		"monthly included credits", "more credits", "key limit exceeded", "out of credits",
	}
}

func quota() []string {
	return []string{
		"per day", "per-day", "(tpd)", " tpd", "(rpd)", " rpd", "daily limit",
		"weekly limit", "monthly limit", "usage limit", "usage_limit_reached", "quota",
	}
}

func filter() []string {
	return []string{
		"content_filter", "content_policy", "content management policy", "flagged", "moderation", "data_inspection_failed", "sensitive content",
		"_policy_violation", "bio_policy",
	}
}

func noModel() []string {
	return []string{
		"model_not_found", "no endpoints found", "not a valid model", "no such model", "unknown model", "invalid model", "try pulling",
		"model *not found", "model *does not exist", "model *not exist", "model *not supported", "model *unknown",
	}
}

func broken() []string {
	return []string{
		"tool_call", "role 'tool'", "after role '", "reasoning_content", "must alternate", "roles must", "'messages[", "messages with role",
		"thought signature", "thought_signature",
		"thoughtsignature", "invalid image", "image_url", "could not process image", "no user query", "unterminated string",
		"failed to parse tool",
		"required following item", "required 'reasoning' item", "no tool call found", "no tool output found", "encrypted_content",
		"encrypted content",
		"items are not persisted", "invalid_image", "image_parse_error", "image_too_", "image_file_", "empty_image_file", "unsupported_image",
		"expects the `tools=` param", "must define tools", "not the same number of function calls",
	}
}

// says reports whether s has one of the phrases.
func says(s string, phrases []string) bool {
	return slices.ContainsFunc(phrases, func(phrase string) bool {
		rest := s
		for part := range strings.SplitSeq(phrase, "*") {
			_, after, found := strings.Cut(rest, part)
			if !found {
				return false
			}
			rest = after
		}
		return true
	})
}

// windowNumbers finds the size of the prompt and the limit in the text of an overflow, 0 if missing.
func windowNumbers(message string) (used, limit int) {
	message = strings.ReplaceAll(message, ",", "")
	numbers := func(pattern string) []int {
		var list []int
		for _, s := range regexp.MustCompile(`(?i)` + pattern).FindStringSubmatch(message) {
			n, _ := strconv.Atoi(s) // 0 for the whole match, which is dropped
			list = append(list, n)
		}
		return list[min(1, len(list)):]
	}
	if n := numbers("must be <= `?(\\d+)\\D+(\\d+) `?inputs`? tokens and (\\d+)"); len(n) > 0 {
		return n[1] + n[2], n[0]
	}
	if n := numbers(`(\d{2,}) ?(?:tokens?)?\)? (?:.*?)(?:>|exceeds?|too large)\D*(\d{2,})`); len(n) > 0 {
		return n[0], n[1]
	}
	if n := numbers("keep the first (\\d+) tokens\\D*context length of only (\\d+)"); len(n) > 0 {
		return n[0], n[1]
	}
	if n := numbers("(?:maximum (?:context|prompt) length(?: of| is)?|limit of|must be <=|limit) `?(\\d+)\\D.*?(\\d{2,})"); len(n) > 0 {
		return n[1], n[0]
	}
	if n := numbers(`(?:context size|length is|limit|max size)\D{0,12}(\d{3,})`); len(n) > 0 {
		return 0, n[0]
	}
	return 0, 0
}

package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
)

// The search engines of model vendors: one of their models searches, once, and its results are taken from the
// response in addition to its text. A search costs that model's price, plus a fee.

const nativeTokens = 2000 // of the model's text about the results

// order returns the instructions for the searching model.
func order(q Query) string {
	text := "Search the web for this, once, and say in one sentence for each useful result what it says, citing it:\n" + q.Text
	if q.Recency != "" {
		text += "\nOnly what was published in the last " + q.Recency + " counts."
	}
	return text
}

// anthropic has a model of Anthropic search.
// https://platform.claude.com/docs/en/agents-and-tools/tool-use/web-search-tool
type anthropic struct{ model string }

func (anthropic) home() string { return "https://api.anthropic.com" }

func (a anthropic) ask(ctx context.Context, base, key string, q Query) (*http.Request, error) {
	if len(q.Domains) > 0 && len(q.Exclude) > 0 {
		return nil, errors.New("it takes domains or exclude, not both")
	}
	type search struct {
		Type    string   `json:"type"`
		Name    string   `json:"name"`
		Uses    int      `json:"max_uses"`
		Allowed []string `json:"allowed_domains,omitempty"`
		Blocked []string `json:"blocked_domains,omitempty"`
	}
	return post(ctx, base+"/v1/messages", struct {
		Model    string   `json:"model"`
		Max      int      `json:"max_tokens"`
		Messages []said   `json:"messages"`
		Tools    []search `json:"tools"`
	}{a.model, nativeTokens, []said{{"user", order(q)}}, []search{{"web_search_20250305", "web_search", 1, q.Domains, q.Exclude}}}, map[string]string{"X-Api-Key": key, "Anthropic-Version": "2023-06-01"})
}

type said struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

func (anthropic) hits(body []byte) ([]Hit, error) {
	var a struct {
		Type    string `json:"type"`
		Content []struct {
			Type      string          `json:"type"`
			Content   json.RawMessage `json:"content"` // of a web_search_tool_result: results, or one error
			Citations []struct {
				URL  string `json:"url"`
				Text string `json:"cited_text"`
			} `json:"citations"` // of a text
		} `json:"content"`
	}
	if err := json.Unmarshal(body, &a); err != nil {
		return nil, err
	}
	if a.Type != "message" {
		return nil, fmt.Errorf("its type is %q, not message", text.Short(a.Type, 40))
	}
	var out []Hit
	quotes := map[string][]string{}
	for _, block := range a.Content {
		for _, c := range block.Citations {
			quotes[c.URL] = append(quotes[c.URL], c.Text)
		}
		if block.Type != "web_search_tool_result" {
			continue
		}
		results, err := found(block.Content)
		if err != nil {
			return nil, err
		}
		for _, r := range results {
			out = append(out, Hit{Title: r.Title, Address: r.URL, Date: r.Age})
		}
	}
	for i := range out {
		out[i].Snippet = strings.Join(quotes[out[i].Address], " … ")
	}
	return out, nil
}

// result is Anthropic's result for one page.
type result struct {
	Title string `json:"title"`
	URL   string `json:"url"`
	Age   string `json:"page_age"` // may be null
}

// found reads the results of a search, or its error.
func found(raw json.RawMessage) ([]result, error) {
	var failed struct {
		Code string `json:"error_code"`
	}
	if json.Unmarshal(raw, &failed) == nil && failed.Code != "" {
		return nil, fmt.Errorf("the search failed: %s", text.Short(failed.Code, 60))
	}
	var out []result
	return out, json.Unmarshal(raw, &out)
}

// openai has a model of OpenAI search.
// https://platform.openai.com/docs/guides/tools-web-search
type openai struct{ model string }

func (openai) home() string { return "https://api.openai.com" }

func (o openai) ask(ctx context.Context, base, key string, q Query) (*http.Request, error) {
	type filters struct {
		Allowed []string `json:"allowed_domains"`
	}
	type search struct {
		Type    string   `json:"type"`
		Filters *filters `json:"filters,omitempty"`
	}
	s := search{Type: "web_search"}
	if len(q.Domains) > 0 {
		s.Filters = &filters{q.Domains}
	}
	return post(ctx, base+"/v1/responses", struct {
		Model   string   `json:"model"`
		Input   string   `json:"input"`
		Max     int      `json:"max_output_tokens"`
		Store   bool     `json:"store"`
		Tools   []search `json:"tools"`
		Choice  string   `json:"tool_choice"`
		Include []string `json:"include"`
	}{o.model, order(q), 4 * nativeTokens, false, []search{s}, "required", []string{"web_search_call.action.sources"}}, map[string]string{"Authorization": "Bearer " + key})
}

func (openai) hits(body []byte) ([]Hit, error) {
	var a struct {
		Object string `json:"object"`
		Output []struct {
			Type   string `json:"type"`
			Action struct {
				Sources []struct {
					URL string `json:"url"`
				} `json:"sources"`
			} `json:"action"` // of a web_search_call
			Content []struct {
				Text        string `json:"text"`
				Annotations []struct {
					Type  string `json:"type"`
					Start int    `json:"start_index"` // in characters
					URL   string `json:"url"`
					Title string `json:"title"`
				} `json:"annotations"`
			} `json:"content"` // of a message
		} `json:"output"`
	}
	if err := json.Unmarshal(body, &a); err != nil {
		return nil, err
	}
	if a.Object != "response" {
		return nil, fmt.Errorf("its object is %q, not response", text.Short(a.Object, 40))
	}
	var cited, sources []Hit
	for _, item := range a.Output {
		for _, s := range item.Action.Sources {
			sources = append(sources, Hit{Address: s.URL})
		}
		for _, c := range item.Content {
			for _, n := range c.Annotations {
				if n.Type == "url_citation" {
					cited = append(cited, Hit{Title: n.Title, Address: unmarked(n.URL), Snippet: sentence(c.Text, n.Start)})
				}
			}
		}
	}
	return append(cited, sources...), nil
}

// unmarked removes the parameters that OpenAI adds to cited addresses.
func unmarked(address string) string {
	for _, mark := range []string{"?utm_source=openai", "&utm_source=openai"} {
		address = strings.TrimSuffix(address, mark)
	}
	return address
}

// sentence returns the text that a citation at a character refers to: its line up to there.
func sentence(text string, at int) string {
	runes := []rune(text)
	text = string(runes[:min(max(at, 0), len(runes))])
	text = strings.TrimRight(text, " \n\t([")
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// gemini has a model of Google search. The addresses that it gives lead through
// Google to the pages, whose sites are all that is said of them, so that limits to
// sites can't be held.
// https://ai.google.dev/gemini-api/docs/generate-content/google-search
type gemini struct{ model string }

func (gemini) home() string { return "https://generativelanguage.googleapis.com" }

func (g gemini) ask(ctx context.Context, base, key string, q Query) (*http.Request, error) {
	if len(q.Domains)+len(q.Exclude) > 0 {
		return nil, errors.New("it can't be limited to sites; leave domains and exclude out")
	}
	type part struct {
		Text string `json:"text"`
	}
	type content struct {
		Parts []part `json:"parts"`
	}
	type search struct {
		Google struct{} `json:"google_search"`
	}
	return post(ctx, base+"/v1beta/models/"+g.model+":generateContent", struct {
		Contents []content `json:"contents"`
		Tools    []search  `json:"tools"`
	}{[]content{{[]part{{order(q)}}}}, []search{{}}}, map[string]string{"X-Goog-Api-Key": key})
}

func (gemini) hits(body []byte) ([]Hit, error) {
	var a struct {
		Candidates *[]struct {
			Grounding struct {
				Chunks []struct {
					Web struct {
						URI   string `json:"uri"`
						Title string `json:"title"`
					} `json:"web"`
				} `json:"groundingChunks"`
				Supports []struct {
					Segment struct {
						Text string `json:"text"`
					} `json:"segment"`
					Chunks []int `json:"groundingChunkIndices"`
				} `json:"groundingSupports"`
			} `json:"groundingMetadata"` // missing if nothing was searched
		} `json:"candidates"`
	}
	if err := json.Unmarshal(body, &a); err != nil {
		return nil, err
	}
	if a.Candidates == nil {
		return nil, errors.New("it has no candidates")
	}
	var out []Hit
	for _, c := range *a.Candidates {
		said := map[int][]string{}
		for _, s := range c.Grounding.Supports {
			for _, i := range s.Chunks {
				said[i] = append(said[i], s.Segment.Text)
			}
		}
		for i, chunk := range c.Grounding.Chunks {
			out = append(out, Hit{Title: chunk.Web.Title, Address: chunk.Web.URI, Snippet: strings.Join(said[i], " … ")})
		}
	}
	return out, nil
}

package markdown

import (
	"slices"
	"strings"

	"github.com/alecthomas/chroma/v2"
)

const (
	longCode = 1000   // bytes of a line beyond which it is not highlighted
	muchCode = 20_000 // lines of one block beyond which it is not
)

// code highlights line by line: the look of a line never depends on later ones, so that it can be settled at
// once. The zero value changes nothing. It can be copied to look ahead.
type code struct {
	style Style
	all   *Lexers
	lexer *lexer
	state chroma.LexerState // between lines
	lines int
	in    block // the open block; its end is "" if there is none
	kind  chroma.TokenType
}

// highlighter returns a highlighter for a language.
func highlighter(s Style, language string) code {
	c := code{style: s, all: s.Lexers}
	if c.all == nil {
		c.all = &Lexers{}
	}
	if s.NoColor {
		return c
	}
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.lexer = c.all.get(language)
	if c.lexer != nil && !c.begin() {
		c.lexer = nil
	}
	return c
}

// begin gets a state of the lexer, or reports that it can't.
func (c *code) begin() (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	next, err := c.lexer.rules.Tokenise(&chroma.TokeniseOptions{State: "root", Nested: true}, probe)
	if err != nil {
		return false
	}
	c.lexer.state = nil
	for t := next(); t != chroma.EOF; t = next() {
		continue
	}
	if c.lexer.state == nil {
		return false
	}
	c.state = *c.lexer.state
	c.lexer.state = nil
	return true
}

// line highlights the next line, which has no newline.
func (c *code) line(text string) line {
	c.lines++
	if c.lexer == nil || len(text) > longCode || c.lines > muchCode {
		return line{{text: text}}
	}
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	var out line
	if c.in.end != "" {
		i := strings.Index(text, c.in.end)
		if i < 0 {
			return line{{text, c.style.token(c.kind)}}
		}
		i += len(c.in.end)
		out = line{{text[:i], c.style.token(c.kind)}}
		text, c.in = text[i:], block{}
	}
	return append(out, c.open(text)...)
}

// open highlights a line, or the end of one, that begins outside of any block.
func (c *code) open(text string) line {
	for _, b := range c.lexer.blocks {
		if !strings.Contains(text, b.open) {
			continue
		}
		trial := c.state
		trial.Stack = slices.Clone(trial.Stack)
		tokens, ok := lex(&trial, text+"\n"+b.end+"\n")
		if kind, spans := spanning(tokens, len(text)); ok && spans {
			c.in, c.kind, c.state = b, kind, trial
			return c.spans(tokens, text)
		}
	}
	state := c.state
	state.Stack = slices.Clone(state.Stack)
	tokens, ok := lex(&state, text+"\n")
	if !ok {
		return line{{text: text}}
	}
	c.state = state
	return c.spans(tokens, text)
}

// lex reads text with the open state. It fails if the lexer does.
func lex(state *chroma.LexerState, text string) (tokens []chroma.Token, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	state.Text, state.Pos = []rune(text), 0
	if len(state.Stack) == 0 {
		state.Stack = []string{"root"}
	}
	for t := state.Iterator(); t != chroma.EOF; t = state.Iterator() {
		tokens = append(tokens, t)
	}
	return tokens, true
}

// spanning returns the kind of a token that contains the newline at the given byte and more, if there is one.
func spanning(tokens []chroma.Token, newline int) (chroma.TokenType, bool) {
	at := 0
	for _, t := range tokens {
		end := at + len(t.Value)
		if at < newline && end > newline+1 {
			return t.Type, t.Type.InCategory(chroma.Comment) || t.Type.InCategory(chroma.Literal)
		}
		at = end
	}
	return 0, false
}

// spans paints the tokens of text. If they don't add up to text, it stays as it is.
func (c *code) spans(tokens []chroma.Token, text string) line {
	var out line
	at := 0
	for _, t := range tokens {
		if at == len(text) {
			break
		}
		v := t.Value[:min(len(t.Value), len(text)-at)]
		if text[at:at+len(v)] != v {
			return line{{text: text}}
		}
		out = append(out, span{v, c.style.token(t.Type)})
		at += len(v)
	}
	if at != len(text) {
		return line{{text: text}}
	}
	return out
}

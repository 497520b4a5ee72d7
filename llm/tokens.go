package llm

// imageTokens is about what vendors count for a picture of usual size.
const imageTokens = 1500

// Tokens estimates the size of the prompt: one token for 3.5 bytes of text, and
// 1,500 for an image. English prose has about four bytes a token, code about
// three; an estimate that is a little high keeps requests off windows they would
// just not fit.
func (r Request) Tokens() int {
	n := r.Bytes() * 2 / 7
	for _, m := range r.Messages {
		n += m.Parts.Images() * imageTokens
	}
	return n
}

// Tokens estimates the size of a message as [Request.Tokens] does.
func (m Message) Tokens() int { return m.Parts.Bytes()*2/7 + m.Parts.Images()*imageTokens }

// Images counts the images, those in results included.
func (p Parts) Images() int {
	n := 0
	for _, part := range p {
		switch v := part.(type) {
		case Image:
			n++
		case Result:
			n += v.Parts.Images()
		}
	}
	return n
}

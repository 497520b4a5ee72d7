package memo_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/base/memo"
)

// A memo encodes each text of a conversation once in each form, forgets texts that are no longer sent, and stays within
// its bound, whatever the requests contain.
func TestMemo(t *testing.T) {
	var m memo.Memo
	encodings := 0
	upper := func(dst []byte, s string) []byte { encodings++; return append(dst, strings.ToUpper(s)...) }
	send := func(form memo.Form, texts ...string) int {
		m.Begin()
		before := encodings
		for _, text := range texts {
			if got := string(memo.Append(&m, []byte("x"), form, text, upper)); got != "x"+strings.ToUpper(text) {
				t.Fatalf("%.20q became %.20q", text, got)
			}
		}
		return encodings - before
	}
	text := func(n int) string { return strings.Repeat(fmt.Sprintf("text %04d ", n), 100) }
	said := []string{"short"}
	for n := range 50 {
		said = append(said, text(n))
		send(memo.String, said...)
	}
	if encodings != 50+50 { // the short one each time
		t.Errorf("%d encodings of 50 texts and a short one", encodings)
	}
	if n := send(memo.JSON, text(1)); n != 1 {
		t.Errorf("%d encodings: another form takes one of its own", n)
	}
	send(memo.String, text(2))
	send(memo.String, text(2))
	if n := send(memo.String, text(2), text(3)); n != 1 {
		t.Errorf("%d encodings: what two requests lacked is to be forgotten", n)
	}
	huge := []string{text(4), strings.Repeat("a", 5<<20), strings.Repeat("b", 5<<20)}
	send(memo.String, huge...)
	if n := send(memo.String, huge...); n != 1 {
		t.Errorf("%d encodings: one of two texts of 5 MiB can be kept", n)
	}
	if got := string(memo.Append(nil, nil, memo.String, text(1), upper)); got != strings.ToUpper(text(1)) {
		t.Errorf("without a memo: %.20q", got)
	}
}

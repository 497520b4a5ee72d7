package router_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/inspan/inspan/internal/keep"
	"github.com/inspan/inspan/internal/testkit"
)

// TestWords holds that the words that a router looks for are those of words.txt.
func TestWords(t *testing.T) {
	const packed = "words.txt.gz"
	want, err := os.ReadFile("words.txt")
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := testkit.Pack(packed, want); err != nil {
			t.Fatal(err)
		}
	}
	has, err := os.ReadFile(packed)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := keep.Unpack(string(has)); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not words.txt, %v; 'make update' writes it anew", packed, err)
	}
}

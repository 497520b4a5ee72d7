package recall

import (
	"context"
	"fmt"
	"maps"
	"strings"
)

// Inside reads all that is in the file of an index: how many documents there are, and how
// many of them hold each word. What does not fit together is an error.
func Inside(x *Index) (docs int, words map[string]int, err error) {
	db, err := x.use(context.Background())
	if err != nil {
		return 0, nil, err
	}
	var sound string
	if err := db.QueryRow("PRAGMA integrity_check").Scan(&sound); err != nil || sound != "ok" {
		return 0, nil, fmt.Errorf("%s: %w", sound, err)
	}
	list := func(query string, each func(word string, n int)) {
		rows, e := db.Query(query)
		if err = e; err != nil {
			return
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			word, n := "", 0
			if err = rows.Scan(&word, &n); err != nil {
				return
			}
			each(word, n)
		}
		err = rows.Err()
	}
	words, should, known := map[string]int{}, map[string]int{}, map[string]int{}
	list("SELECT term, doc FROM terms", func(word string, n int) { words[word] = n })
	if err == nil {
		list("SELECT word, 1 FROM vocabulary", func(word string, _ int) { known[word] = words[word] })
	}
	if err == nil {
		list("SELECT s.name || char(10) || d.root || char(10) || d.kind || char(10) || d.text, 0 FROM docs d JOIN sessions s ON s.id = d.session",
			func(text string, _ int) { docs, should = docs+1, counted(should, text) })
	}
	if err != nil {
		return 0, nil, err
	}
	if !maps.Equal(words, should) {
		return 0, nil, fmt.Errorf("the words are %v, and should be %v", words, should)
	}
	maps.DeleteFunc(words, func(word string, _ int) bool { return word[0] == '_' })
	if !maps.Equal(words, known) {
		return 0, nil, fmt.Errorf("the words are %v, and known %v", words, known)
	}
	return docs, should, nil
}

// counted counts the words by which a document is found.
func counted(words map[string]int, of string) map[string]int {
	part := strings.SplitN(of, "\n", 4)
	here := map[string]bool{filter("session", part[0]): true, filter("root", part[1]): true, filter("kind", part[2]): true}
	for t := range each(part[3]) {
		here[t.text] = true
	}
	for word := range here {
		words[word]++
	}
	return words
}

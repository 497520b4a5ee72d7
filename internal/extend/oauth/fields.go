package oauth

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

// fields is a JSON object from a server. Names are case-sensitive, and duplicates are refused, so that it has
// one meaning.
type fields struct {
	values map[string]json.RawMessage
	err    error // of the first field that was not what it has to be
}

// maxLife is the longest lifetime of a token that is accepted.
const maxLife = 10 * 365 * 24 * time.Hour

func parseFields(data []byte) (*fields, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return nil, errors.New("it is not a JSON object")
	}
	f := &fields{values: map[string]json.RawMessage{}}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, errors.New("it is not a JSON object")
		}
		name, _ := key.(string)
		if _, twice := f.values[name]; twice {
			return nil, fmt.Errorf("it has the field %.80q twice", name)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, errors.New("it is not a JSON object")
		}
		f.values[name] = value
	}
	if _, err := d.Token(); err != nil {
		return nil, errors.New("it is not a JSON object")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the JSON object")
	}
	return f, nil
}

// read decodes a field. A missing or null field leaves into unchanged.
func (f *fields) read(name string, into any) {
	raw := f.values[name]
	if len(raw) == 0 || string(raw) == "null" {
		return
	}
	if err := json.Unmarshal(raw, into); err != nil && f.err == nil {
		f.err = fmt.Errorf("the field %q has the wrong type", name)
	}
}

func (f *fields) text(name string) (s string) {
	f.read(name, &s)
	return s
}

func (f *fields) texts(name string) (list []string) {
	f.read(name, &list)
	return list
}

func (f *fields) flag(name string) (b bool) {
	f.read(name, &b)
	return b
}

// seconds reads a lifetime, which some servers send as a text. Values that are not positive count as missing.
func (f *fields) seconds(name string) time.Duration {
	var any any
	f.read(name, &any)
	n, isNumber := any.(float64)
	if s, isText := any.(string); isText {
		n, _ = strconv.ParseFloat(strings.TrimSpace(s), 64)
	} else if !isNumber && any != nil && f.err == nil {
		f.err = fmt.Errorf("the field %q has the wrong type", name)
	}
	if math.IsNaN(n) || n <= 0 {
		return 0
	}
	return time.Duration(min(n, maxLife.Seconds()) * float64(time.Second))
}

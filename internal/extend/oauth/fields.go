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

// fields is a JSON object that a server sent. Names count by case, and none comes
// twice: what is read in two ways is refused.
type fields struct {
	values map[string]json.RawMessage
	err    error // of the first field that was not what it has to be
}

// maxLife is the longest life of a token that is believed.
const maxLife = 10 * 365 * 24 * time.Hour

func parseFields(data []byte) (*fields, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return nil, errors.New("it is not JSON object")
	}
	f := &fields{values: map[string]json.RawMessage{}}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, errors.New("it is not JSON object")
		}
		name, _ := key.(string)
		if _, twice := f.values[name]; twice {
			return nil, fmt.Errorf("it has the field %.80q twice", name)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, errors.New("it is not JSON object")
		}
		f.values[name] = value
	}
	if _, err := d.Token(); err != nil {
		return nil, errors.New("it is not JSON object")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the JSON object")
	}
	return f, nil
}

// read decodes a field. One that is not there, or null, leaves into as it is.
func (f *fields) read(name string, into any) {
	raw := f.values[name]
	if len(raw) == 0 || string(raw) == "null" {
		return
	}
	if err := json.Unmarshal(raw, into); err != nil && f.err == nil {
		f.err = fmt.Errorf("the field %q is not what it has to be", name)
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

// seconds reads a time to live, which some servers send as a text. What is not
// positive counts as not there.
func (f *fields) seconds(name string) time.Duration {
	var any any
	f.read(name, &any)
	n, isNumber := any.(float64)
	if s, isText := any.(string); isText {
		n, _ = strconv.ParseFloat(strings.TrimSpace(s), 64)
	} else if !isNumber && any != nil && f.err == nil {
		f.err = fmt.Errorf("the field %q is not what it has to be", name)
	}
	if math.IsNaN(n) || n <= 0 {
		return 0
	}
	return time.Duration(min(n, maxLife.Seconds()) * float64(time.Second))
}

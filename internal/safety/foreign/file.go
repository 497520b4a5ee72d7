package foreign

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// Unmarshal reads JSON of other programs as [Plain] does. Its errors are for people.
func Unmarshal(data []byte, into any) error {
	data, err := Plain(data)
	if err != nil {
		return err
	}
	err = json.Unmarshal(data, into)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("%s can't be a JSON %s", cmp.Or(wrong.Field, "it"), wrong.Value)
	}
	return err
}

// Plain returns the JSON in another program's file, without the extensions that these programs and their editors
// accept: a byte order mark, comments, and trailing commas. All readers of such a file use it, so that people see
// exactly the content that applies and runs. The error says that it is not text.
func Plain(data []byte) ([]byte, error) {
	switch {
	case bytes.HasPrefix(data, []byte("\xff\xfe")), bytes.HasPrefix(data, []byte("\xfe\xff")):
		return nil, errors.New("it is UTF-16; save it as UTF-8")
	case !utf8.Valid(data):
		return nil, errors.New("it is not UTF-8")
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	out := make([]byte, 0, len(data))
	comma := -1 // position in out of a possibly trailing comma
	for i := 0; i < len(data); {
		n := comment(data[i:])
		switch c := data[i]; {
		case n > 0:
			out = append(out, ' ')
			i += n
			continue
		case c == '"':
			end := i + stringLen(data[i:])
			out, comma = append(out, data[i:end]...), -1
			i = end
			continue
		case c == ',':
			comma = len(out)
		case (c == '}' || c == ']') && comma >= 0:
			out[comma], comma = ' ', -1
		case !bytes.ContainsRune([]byte(" \t\r\n"), rune(c)):
			comma = -1
		}
		out = append(out, data[i])
		i++
	}
	return out, nil
}

// comment returns the length of a comment at the start of data, or 0.
func comment(data []byte) int {
	switch {
	case bytes.HasPrefix(data, []byte("//")):
		if end := bytes.IndexByte(data, '\n'); end >= 0 {
			return end
		}
		return len(data)
	case bytes.HasPrefix(data, []byte("/*")):
		if end := bytes.Index(data[2:], []byte("*/")); end >= 0 {
			return end + 4
		}
		return len(data)
	}
	return 0
}

// stringLen returns the length of the string at the start of data.
func stringLen(data []byte) int {
	for i := 1; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(data)
}

package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/simplifiedchinese"

	"github.com/inspan/inspan/internal/base/text"
)

// decode converts a body to UTF-8. A byte order mark determines the encoding, otherwise the header, otherwise
// the page itself. Otherwise text that is not UTF-8 is Windows-1252, as in browsers.
func decode(body []byte, label string, isHTML bool) (string, error) {
	switch {
	case bytes.HasPrefix(body, []byte("\xef\xbb\xbf")):
		return strings.ToValidUTF8(string(body[3:]), "\ufffd"), nil
	case bytes.HasPrefix(body, []byte("\xff\xfe")):
		return wide(body[2:], false), nil
	case bytes.HasPrefix(body, []byte("\xfe\xff")):
		return wide(body[2:], true), nil
	}
	if label == "" && isHTML {
		label = declared(body)
	}
	if label == "" && !valid(body) {
		label = "windows-1252"
	}
	label = strings.ToLower(strings.TrimSpace(label))
	switch label {
	case "utf-16", "utf-16le":
		return wide(body, false), nil
	case "utf-16be":
		return wide(body, true), nil
	case "utf-8", "utf8", "":
		return strings.ToValidUTF8(string(body), "\ufffd"), nil
	}
	if enc := encodingOf(label); enc != nil {
		text, err := enc.NewDecoder().Bytes(body)
		return string(text), err
	}
	if utf8.Valid(body) {
		return string(body), nil
	}
	return "", fmt.Errorf("it is in the encoding %q, which can't be read here; save it with http_request and save_to, and convert it with "+
		"bash and iconv", text.Short(text.Page(label), 40))
}

// encodingOf returns an encoding by its lower-case name in pages, as listed in the WHATWG's standard for
// encodings; nil if unknown. Encodings of Japan, Korea and Taiwan are not included since their tables are
// large; see decision 005.
func encodingOf(label string) encoding.Encoding {
	switch label {
	case "iso-8859-1", "iso8859-1", "latin1", "latin-1", "l1", "us-ascii", "ascii", "windows-1252", "cp1252", "x-cp1252":
		return charmap.Windows1252
	case "gb18030", "gbk", "gb2312", "gb_2312-80", "x-gbk", "chinese":
		return simplifiedchinese.GB18030
	}
	for _, table := range charmap.All {
		name := strings.ToLower(fmt.Sprint(table))
		if tableName(label) == tableName(name) {
			return table
		}
	}
	return nil
}

// tableName returns the significant part of a table's name: "cp1250", "windows-1250" and "Windows 1250" are the
// same.
func tableName(label string) string {
	label = strings.NewReplacer("latin-9", "iso-8859-15", "latin9", "iso-8859-15",
		"ibm code page ", "cp", "windows", "cp", "x-cp", "cp", "ibm", "cp").Replace(label)
	return strings.NewReplacer("-", "", " ", "", "_", "").Replace(label)
}

// valid reports whether a body is UTF-8; its last character may be cut.
func valid(body []byte) bool {
	for range utf8.UTFMax {
		if utf8.Valid(body) || len(body) < maxBody-utf8.UTFMax {
			break
		}
		body = body[:len(body)-1]
	}
	return utf8.Valid(body)
}

// declared finds the charset that the head of a page names.
func declared(body []byte) string {
	head := bytes.ToLower(body[:min(len(body), 4<<10)])
	for {
		_, rest, found := bytes.Cut(head, []byte("<meta"))
		if !found {
			return ""
		}
		tag, after, _ := bytes.Cut(rest, []byte(">"))
		if _, value, found := bytes.Cut(tag, []byte("charset=")); found {
			value = bytes.TrimLeft(value, `"' `)
			if end := bytes.IndexAny(value, `"' ;/`); end >= 0 {
				value = value[:end]
			}
			if label := string(value); !strings.HasPrefix(label, "utf-16") { // otherwise it could not be read
				return label
			}
			return "utf-8"
		}
		head = after
	}
}

func wide(body []byte, big bool) string {
	units := make([]uint16, 0, len(body)/2)
	for i := 0; i+1 < len(body); i += 2 {
		u := uint16(body[i]) | uint16(body[i+1])<<8
		if big {
			u = u<<8 | u>>8
		}
		units = append(units, u)
	}
	return string(utf16.Decode(units))
}

// reindent indents JSON; other text is unchanged.
func reindent(text string) string {
	var b bytes.Buffer
	if json.Indent(&b, []byte(text), "", "  ") != nil {
		return text
	}
	return strings.TrimSpace(b.String())
}

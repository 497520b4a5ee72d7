package running

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
)

// Requests of OTLP in protobuf: the same messages as in JSON, field by field. The numbers are those of
// opentelemetry-proto, which never change.

// protoField describes the encoding of a field.
type protoField struct {
	number int
	form   protoForm
	of     func() map[string]protoField // fields of a message
}

type protoForm int

const (
	protoText    protoForm = iota
	protoHex               // bytes, as hexadecimal text in JSON
	protoWhole             // a varint
	protoFixed             // eight bytes of a whole number
	protoDouble            // eight bytes of a floating-point number
	protoMessage           // or a list of messages
)

// protoRequest describes a request for traces or metrics.
func protoRequest() map[string]protoField {
	return map[string]protoField{"resourceSpans": {1, protoMessage, protoResource}, "resourceMetrics": {1, protoMessage, protoResource}}
}

func protoResource() map[string]protoField {
	return map[string]protoField{
		"resource": {1, protoMessage, func() map[string]protoField {
			return map[string]protoField{"attributes": {1, protoMessage, protoAttribute}}
		}},
		"scopeSpans": {2, protoMessage, func() map[string]protoField {
			return map[string]protoField{"scope": {1, protoMessage, protoScope}, "spans": {2, protoMessage, protoSpan}, "schemaUrl": {3, protoText, nil}}
		}},
		"scopeMetrics": {2, protoMessage, func() map[string]protoField {
			return map[string]protoField{"scope": {1, protoMessage, protoScope}, "metrics": {2, protoMessage, protoMetric}, "schemaUrl": {3, protoText, nil}}
		}},
	}
}

func protoScope() map[string]protoField {
	return map[string]protoField{"name": {1, protoText, nil}, "version": {2, protoText, nil}}
}

func protoSpan() map[string]protoField {
	return map[string]protoField{
		"traceId": {1, protoHex, nil}, "spanId": {2, protoHex, nil}, "parentSpanId": {4, protoHex, nil}, "name": {5, protoText, nil},
		"kind": {6, protoWhole, nil}, "startTimeUnixNano": {7, protoFixed, nil}, "endTimeUnixNano": {8, protoFixed, nil},
		"attributes": {9, protoMessage, protoAttribute},
		"status": {15, protoMessage, func() map[string]protoField {
			return map[string]protoField{"message": {2, protoText, nil}, "code": {3, protoWhole, nil}}
		}},
	}
}

func protoMetric() map[string]protoField {
	return map[string]protoField{
		"name": {1, protoText, nil}, "description": {2, protoText, nil}, "unit": {3, protoText, nil},
		"histogram": {9, protoMessage, func() map[string]protoField {
			return map[string]protoField{"dataPoints": {1, protoMessage, protoPoint}, "aggregationTemporality": {2, protoWhole, nil}}
		}},
	}
}

func protoPoint() map[string]protoField {
	return map[string]protoField{
		"startTimeUnixNano": {2, protoFixed, nil}, "timeUnixNano": {3, protoFixed, nil}, "count": {4, protoFixed, nil}, "sum": {5, protoDouble, nil},
		"bucketCounts": {6, protoFixed, nil}, "explicitBounds": {7, protoDouble, nil}, "attributes": {9, protoMessage, protoAttribute},
	}
}

func protoAttribute() map[string]protoField {
	return map[string]protoField{"key": {1, protoText, nil}, "value": {2, protoMessage, protoValue}}
}

func protoValue() map[string]protoField {
	return map[string]protoField{
		"stringValue": {1, protoText, nil}, "boolValue": {2, protoWhole, nil}, "intValue": {3, protoWhole, nil}, "doubleValue": {4, protoDouble, nil},
		"arrayValue": {5, protoMessage, func() map[string]protoField { return map[string]protoField{"values": {1, protoMessage, protoValue}} }},
	}
}

// protobuf encodes a request given in JSON.
func protobuf(request []byte) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(request))
	dec.UseNumber()
	var message map[string]any
	if err := dec.Decode(&message); err != nil {
		return nil, err
	}
	return protoAppend(nil, protoRequest(), message)
}

func protoAppend(out []byte, fields map[string]protoField, message map[string]any) ([]byte, error) {
	for _, name := range slices.SortedFunc(maps.Keys(message), func(a, b string) int { return cmp.Compare(fields[a].number, fields[b].number) }) {
		f, known := fields[name]
		if !known {
			return nil, fmt.Errorf("no field %q of OTLP is known", name)
		}
		list, many := message[name].([]any)
		if !many {
			list = []any{message[name]}
		}
		if many && f.form != protoMessage { // numbers are packed
			packed := []byte{}
			for _, v := range list {
				raw, err := f.value(v)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", name, err)
				}
				packed = append(packed, raw...)
			}
			out = protoBytes(out, f.number, packed)
			continue
		}
		for _, v := range list {
			raw, err := f.value(v)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			switch f.form {
			case protoWhole:
				out = append(binary.AppendUvarint(out, uint64(f.number)<<3), raw...)
			case protoFixed, protoDouble:
				out = append(binary.AppendUvarint(out, uint64(f.number)<<3|1), raw...)
			default:
				out = protoBytes(out, f.number, raw)
			}
		}
	}
	return out, nil
}

func protoBytes(out []byte, number int, raw []byte) []byte {
	out = binary.AppendUvarint(out, uint64(number)<<3|2)
	return append(binary.AppendUvarint(out, uint64(len(raw))), raw...)
}

// value encodes the value of a field without its number.
func (f protoField) value(v any) ([]byte, error) {
	text := fmt.Sprint(v) // also for numbers, and whole numbers in quotes
	switch f.form {
	case protoText:
		return []byte(text), nil
	case protoHex:
		return hex.DecodeString(text)
	case protoWhole:
		if yes, is := v.(bool); is {
			text = map[bool]string{true: "1", false: "0"}[yes]
		}
		n, err := strconv.ParseInt(text, 10, 64)
		return binary.AppendUvarint(nil, uint64(n)), err
	case protoFixed:
		n, err := strconv.ParseUint(text, 10, 64)
		return binary.LittleEndian.AppendUint64(nil, n), err
	case protoDouble:
		n, err := strconv.ParseFloat(text, 64)
		return binary.LittleEndian.AppendUint64(nil, math.Float64bits(n)), err
	}
	message, is := v.(map[string]any)
	if !is {
		return nil, fmt.Errorf("%T is not a message", v)
	}
	return protoAppend(nil, f.of(), message)
}

// protoRejected returns the number of rejected parts in an answer in protobuf, and the reason.
func protoRejected(said []byte) (n uint64, why string) {
	walk := func(message []byte, each func(number uint64, n uint64, raw []byte)) {
		for len(message) > 0 {
			key, size := binary.Uvarint(message)
			if size <= 0 || key&7 != 0 && key&7 != 2 {
				return
			}
			n, more := binary.Uvarint(message[size:])
			if more <= 0 {
				return
			}
			message = message[size+more:]
			if key&7 == 0 {
				each(key>>3, n, nil)
				continue
			}
			if n > uint64(len(message)) {
				return
			}
			each(key>>3, 0, message[:n])
			message = message[n:]
		}
	}
	walk(said, func(number, _ uint64, partial []byte) {
		walk(partial, func(field, count uint64, text []byte) {
			switch {
			case number == 1 && field == 1:
				n = count
			case number == 1 && field == 2:
				why = string(text)
			}
		})
	})
	return n, why
}

package event

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/inspan/inspan/internal/base/text"
)

// Bounds of labels.
const (
	mostLabels    = 32
	mostLabelName = 64  // bytes
	mostLabel     = 256 // bytes of a value
)

// Check returns an error if the labels or the span of a session are invalid.
func (o Opened) Check() error {
	if len(o.Labels) > mostLabels {
		return fmt.Errorf("%d labels, and a session has at most %d", len(o.Labels), mostLabels)
	}
	for _, name := range slices.Sorted(maps.Keys(o.Labels)) {
		value := o.Labels[name]
		switch {
		case name == "" || len(name) > mostLabelName || strings.Trim(name, letters+digits+"._-") != "":
			return fmt.Errorf("label %q: a name has up to %d letters, digits, dots, dashes and underscores", name, mostLabelName)
		case len(value) > mostLabel || !utf8.ValidString(value):
			return fmt.Errorf("label %s: its value has %d bytes, and may have %d of UTF-8", name, len(value), mostLabel)
		}
	}
	if o.Traceparent != "" && !text.IsTraceparent(o.Traceparent) {
		return fmt.Errorf("traceparent %q is not in the form of W3C Trace Context, 00-TRACE-SPAN-FLAGS", o.Traceparent)
	}
	return nil
}

const (
	letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	digits  = "0123456789"
)

package text

import (
	"crypto/sha256"
	"fmt"
	"regexp"
)

// UUID returns a UUID that is always the same for a text.
func UUID(of string) string {
	sum := sha256.Sum256([]byte(of))
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80 // version 8, for private use
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

// IsUUID reports whether a text has the form of a UUID in small letters.
func IsUUID(s string) bool { return uuid.MatchString(s) }

var uuid = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

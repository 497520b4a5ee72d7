package text

import (
	"crypto/sha256"
	"fmt"
)

// UUID returns a UUID that is always the same for a text.
func UUID(of string) string {
	sum := sha256.Sum256([]byte(of))
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80 // version 8, for private use
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

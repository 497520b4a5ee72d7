package anthropic

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/internal/wire"
)

// Limits of one image (platform.claude.com/docs/en/build-with-claude/vision).
const (
	maxOneImage = 5 << 20 // in base64
	maxPixels   = 8000    // of a side
)

// imageLimits are those of one request. Above 20 images those of more than
// 2,000 pixels are refused too; Bedrock takes the smallest requests, of 25 MB.
func imageLimits() wire.Images { return wire.Images{Count: 20, Bytes: 20 << 20, Fits: fits} }

// fits reports whether the vendor takes an image by itself.
func fits(v llm.Image) bool {
	if base64.StdEncoding.EncodedLen(len(v.Data)) > maxOneImage {
		return false
	}
	var c image.Config
	var err error
	switch v.MediaType {
	case "image/png":
		c, err = png.DecodeConfig(bytes.NewReader(v.Data))
	case "image/jpeg":
		c, err = jpeg.DecodeConfig(bytes.NewReader(v.Data))
	case "image/gif":
		c, err = gif.DecodeConfig(bytes.NewReader(v.Data))
	}
	return err != nil || c.Width <= maxPixels && c.Height <= maxPixels // the vendor judges what we can't read
}

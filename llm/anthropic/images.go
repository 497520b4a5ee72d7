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
	maxPixels   = 8000    // of one side
)

// imageLimits returns the limits of one request. With more than 20 images, any above 2,000 pixels is refused too;
// Bedrock has the lowest limit for a request, 25 MB.
func imageLimits() wire.Images { return wire.Images{Count: 20, Bytes: 20 << 20, Fits: fits} }

// fits reports whether the vendor accepts an image on its own.
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
	return err != nil || c.Width <= maxPixels && c.Height <= maxPixels // the vendor judges images that we can't read
}

package markdown

import (
	"bytes"
	"image"
	"image/png"
)

// Limits of a thumbnail.
const (
	thumbnailRows  = 60       // of a terminal, each of two pixels
	thumbnailBytes = 24 << 10 // of PNG
)

// Thumbnail makes an image small enough to be drawn in the given columns of a terminal, with two pixels in each
// cell, one above the other. It is at most 60 rows high and 24 KiB of PNG, and never larger than the image. Nil
// means there is nothing to show.
func Thumbnail(img image.Image, cols int) []byte {
	b := img.Bounds()
	if b.Empty() || cols < 1 {
		return nil
	}
	w, h := sizeWithin(b, cols, 2*thumbnailRows)
	for {
		var out bytes.Buffer
		encoder := png.Encoder{CompressionLevel: png.BestCompression}
		if encoder.Encode(&out, Shrink(img, b, w, h)) != nil {
			return nil
		}
		if out.Len() <= thumbnailBytes {
			return out.Bytes()
		}
		w, h = max(1, w*9/10), max(1, h*9/10)
	}
}

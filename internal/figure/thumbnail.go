package figure

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
)

// Bounds of a thumbnail.
const (
	thumbnailRows  = 60       // of a terminal, each of two pixels
	thumbnailBytes = 24 << 10 // of PNG
)

// Thumbnail makes an image small enough to be drawn in so many columns of a terminal,
// each cell of which shows two pixels, one above the other. It is at most 60 rows high
// and 24 KiB of PNG, and never larger than the image. Nil: there is nothing to show.
func Thumbnail(img image.Image, cols int) []byte {
	b := img.Bounds()
	if b.Empty() || cols < 1 {
		return nil
	}
	w := min(b.Dx(), cols)
	h := max(1, b.Dy()*w/b.Dx())
	if h > 2*thumbnailRows {
		h = 2 * thumbnailRows
		w = max(1, b.Dx()*h/b.Dy())
	}
	for {
		var out bytes.Buffer
		encoder := png.Encoder{CompressionLevel: png.BestCompression}
		if encoder.Encode(&out, shrunk(img, w, h)) != nil {
			return nil
		}
		if out.Len() <= thumbnailBytes {
			return out.Bytes()
		}
		w, h = max(1, w*9/10), max(1, h*9/10)
	}
}

// shrunk is an image of w by h pixels, each the mean of those it stands for.
func shrunk(img image.Image, w, h int) image.Image {
	b := img.Bounds()
	out := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			out.Set(x, y, mean(img, image.Rect(b.Min.X+x*b.Dx()/w, b.Min.Y+y*b.Dy()/h, b.Min.X+(x+1)*b.Dx()/w, b.Min.Y+(y+1)*b.Dy()/h)))
		}
	}
	return out
}

// mean is the colour of a part of an image, which is not empty.
func mean(img image.Image, part image.Rectangle) color.Color {
	var r, g, b, a, n uint64
	for y := part.Min.Y; y < part.Max.Y; y++ {
		for x := part.Min.X; x < part.Max.X; x++ {
			pr, pg, pb, pa := img.At(x, y).RGBA()
			r, g, b, a, n = r+uint64(pr), g+uint64(pg), b+uint64(pb), a+uint64(pa), n+1
		}
	}
	return color.RGBA64{uint16(r / n), uint16(g / n), uint16(b / n), uint16(a / n)}
}

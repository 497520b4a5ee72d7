package markdown

import (
	"image"
	"image/color"
)

// sizeWithin returns the size of an image of this form in at most so many columns and rows, without enlarging it.
func sizeWithin(b image.Rectangle, columns, rows int) (w, h int) {
	w = min(b.Dx(), columns)
	if h = max(1, b.Dy()*w/b.Dx()); h > rows {
		h = rows
		w = max(1, b.Dx()*h/b.Dy())
	}
	return w, h
}

// Shrink returns a part of an image as w by h pixels, each the [Mean] of the pixels that it covers. The part is
// in the image and not empty, w and h are 1 or more; if the part has fewer pixels than that, some are repeated.
func Shrink(img image.Image, part image.Rectangle, w, h int) *image.NRGBA {
	out := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			out.Set(x, y, Mean(img, Cell(part, x, y, w, h)))
		}
	}
	return out
}

// Cell returns the rectangle that the pixel at x, y covers if the part is shown as w by h pixels. It is never
// empty.
func Cell(part image.Rectangle, x, y, w, h int) image.Rectangle {
	left, right := stretch(part.Dx(), x, w)
	top, bottom := stretch(part.Dy(), y, h)
	return image.Rect(left, top, right, bottom).Add(part.Min)
}

// stretch returns the i-th of n pieces of a length.
func stretch(length, i, n int) (from, to int) {
	from = i * length / n
	return from, max((i+1)*length/n, from+1)
}

// Mean returns the mean colour of a part of an image, which is not empty.
func Mean(img image.Image, part image.Rectangle) color.RGBA64 {
	var r, g, b, a, n uint64
	for y := part.Min.Y; y < part.Max.Y; y++ {
		for x := part.Min.X; x < part.Max.X; x++ {
			r1, g1, b1, a1 := img.At(x, y).RGBA()
			r, g, b, a, n = r+uint64(r1), g+uint64(g1), b+uint64(b1), a+uint64(a1), n+1
		}
	}
	return color.RGBA64{R: uint16(r / n), G: uint16(g / n), B: uint16(b / n), A: uint16(a / n)} //nolint:gosec // a mean of 16 bits has 16
}

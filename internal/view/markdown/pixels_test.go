package markdown_test

import (
	"image"
	"image/color"
	"testing"

	"github.com/inspan/inspan/internal/view/markdown"
)

// TestShrink checks that each pixel is the mean of those that it replaces, for all sizes and positions of the part, and
// that no pixel of the part is left out.
func TestShrink(t *testing.T) {
	img := image.NewNRGBA(image.Rect(-3, -2, 8, 7))
	seen := map[image.Point]bool{}
	for y := -2; y < 7; y++ {
		for x := -3; x < 8; x++ {
			img.Set(x, y, color.NRGBA{R: uint8(20 * (x + 3)), G: uint8(20 * (y + 2)), A: 255})
		}
	}
	part := image.Rect(-1, 0, 6, 5)
	for w := 1; w <= 9; w++ {
		for h := 1; h <= 7; h++ {
			clear(seen)
			small := markdown.Shrink(img, part, w, h)
			for y := range h {
				for x := range w {
					cell := markdown.Cell(part, x, y, w, h)
					if cell.Empty() || !cell.In(part) {
						t.Fatalf("%d, %d of %d by %d is %v", x, y, w, h, cell)
					}
					for j := cell.Min.Y; j < cell.Max.Y; j++ {
						for i := cell.Min.X; i < cell.Max.X; i++ {
							seen[image.Pt(i, j)] = true
						}
					}
					got := small.NRGBAAt(x, y)
					// Colours grow evenly, so a mean is that of the corners.
					want := color.NRGBA{R: uint8(10 * (cell.Min.X + cell.Max.X + 5)), G: uint8(10 * (cell.Min.Y + cell.Max.Y + 3)), A: 255}
					if got != want {
						t.Errorf("%d, %d of %d by %d: %v, want %v", x, y, w, h, got, want)
					}
				}
			}
			if len(seen) != part.Dx()*part.Dy() {
				t.Errorf("%d by %d stands for %d of %d pixels", w, h, len(seen), part.Dx()*part.Dy())
			}
		}
	}
}

// TestMeanOfClear checks that transparent pixels add no colour to a mean.
func TestMeanOfClear(t *testing.T) {
	img := image.NewNRGBA(image.Rect(0, 0, 2, 1))
	img.Set(0, 0, color.NRGBA{R: 200, A: 255})
	img.Set(1, 0, color.NRGBA{G: 200})
	if got := markdown.Shrink(img, img.Bounds(), 1, 1).NRGBAAt(0, 0); got.R != 200 || got.G != 0 || got.A != 127 {
		t.Errorf("%v", got)
	}
}

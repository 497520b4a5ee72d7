package tools_test

import (
	"bytes"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"github.com/inspan/inspan/llm"
)

// halves is an image whose left half is red and whose right is blue.
func halves(w, h int) image.Image {
	m := image.NewPaletted(image.Rect(0, 0, w, h), color.Palette{color.RGBA{R: 255, A: 255}, color.RGBA{B: 255, A: 255}})
	for y := range h {
		for x := w / 2; x < w; x++ {
			m.SetColorIndex(x, y, 1)
		}
	}
	return m
}

func TestViewImage(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	var small, large, photo, anim bytes.Buffer
	for _, err := range []error{
		png.Encode(&small, halves(20, 10)), png.Encode(&large, halves(4000, 1000)), jpeg.Encode(&photo, halves(3000, 3000), nil),
		gif.Encode(&anim, halves(10, 2000), nil),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	s.put("small.png", small.String())
	s.put("large.png", large.String())
	s.put("photo.jpg", photo.String())
	s.put("anim.gif", anim.String())
	s.put("odd.webp", "RIFF\x00\x00\x00\x00WEBPVP8 rest")
	for _, tc := range []struct {
		args  args
		text  string
		media string
		size  image.Point // zero means not taken apart
	}{
		{args{"path": "small.png"}, "small.png: 20 by 10 pixels", "image/png", image.Pt(20, 10)},
		{args{"path": "large.png"}, "as 1568 by 392", "image/png", image.Pt(1568, 392)},
		{args{"path": "photo.jpg"}, "as 1568 by 1568", "image/jpeg", image.Pt(1568, 1568)},
		{args{"path": "anim.gif"}, "as 7 by 1568", "image/png", image.Pt(7, 1568)},
		{args{"path": "large.png", "crop": []int{3990, 0, 50, 40}}, "shown is 10 by 40 from 3990, 0, as 10 by 40", "image/png", image.Pt(10, 40)},
		{args{"path": "odd.webp"}, "odd.webp: image/webp", "image/webp", image.Point{}},
	} {
		res, err := s.try(t.Context(), "view_image", tc.args)
		if err != nil {
			t.Errorf("%v: %v", tc.args, err)
			continue
		}
		img, ok := res.Parts[len(res.Parts)-1].(llm.Image)
		if !ok || img.MediaType != tc.media || !strings.Contains(res.Parts.Text(), tc.text) {
			t.Errorf("%v: %s %q", tc.args, img.MediaType, res.Parts.Text())
		}
		if tc.size == (image.Point{}) {
			continue
		}
		m, _, err := image.Decode(bytes.NewReader(img.Data))
		if err != nil || m.Bounds().Size() != tc.size {
			t.Errorf("%v: %v, %v", tc.args, m.Bounds(), err)
			continue
		}
		// The last pixel is blue, whatever was made of the image.
		if r, _, b, _ := m.At(tc.size.X-1, 0).RGBA(); b < 0xe000 || r > 0x2000 {
			t.Errorf("%v: the last pixel has red %x and blue %x", tc.args, r, b)
		}
	}
	for want, a := range map[string]args{
		"no image":                  {"path": "a.txt"},
		"crop has 3 numbers":        {"path": "small.png", "crop": []int{1, 2, 3}},
		"nothing of the image lies": {"path": "small.png", "crop": []int{20, 0, 5, 5}},
		"it has 20 by 10 pixels":    {"path": "small.png", "crop": []int{0, 0, 0, 5}},
		"can't be taken apart":      {"path": "odd.webp", "crop": []int{0, 0, 5, 5}},
		"cut.png can't be taken":    {"path": "cut.png", "crop": []int{0, 0, 5, 5}},
	} {
		s.put("a.txt", "text")
		s.put("cut.png", large.String()[:200])
		s.fails("view_image", a, want)
	}
}

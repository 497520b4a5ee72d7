package tools

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/markdown"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

//go:embed view_image.md
var viewImageDoc string

const (
	// Vendors shrink longer sides to this, so a larger image only costs more.
	longestSide = 1568
	maxPixels   = 100 << 20 // largest image that is decoded
	goodQuality = 85
)

type viewArgs struct {
	Path string `json:"path" jsonschema:"image file"`
	Crop []int  `json:"crop,omitempty" jsonschema:"x, y, width, height"`
}

func viewImage() tool.Tool {
	t := tool.New("view_image", viewImageDoc, runView)
	t.Effects = pathEffect(tool.Read, func(in viewArgs) string { return in.Path })
	return t
}

func runView(ctx context.Context, c *tool.Call, in viewArgs) (tool.Result, error) {
	path, err := Resolve(ctx, c, in.Path)
	if err != nil {
		return tool.Result{}, err
	}
	data, err := readWhole(ctx, c, path)
	if err != nil {
		return tool.Result{}, err
	}
	media := llm.ImageType(data)
	if media == "" {
		return tool.Result{}, fmt.Errorf("%s is no image of a kind that models see: PNG, JPEG, GIF or WebP", Shown(c, path))
	}
	r, err := viewed(Shown(c, path), media, data, in.Crop)
	r.Files = []tool.File{{Path: path, Digest: tool.Digest(data)}}
	return r, err
}

// viewed returns the image, or a part of it, no larger than useful.
func viewed(name, media string, data []byte, crop []int) (tool.Result, error) {
	size, err := sizeOf(media, data)
	switch {
	case errors.Is(err, errors.ErrUnsupported) && crop == nil:
		return imageResult(name, media, data) // unchanged
	case err != nil:
		return tool.Result{}, fmt.Errorf("%s can't be taken apart: %w", name, err)
	case size.X*size.Y > maxPixels:
		return tool.Result{}, fmt.Errorf("%s has %d by %d pixels, too many to look at", name, size.X, size.Y)
	}
	part := image.Rectangle{Max: size}
	if crop != nil {
		if part, err = cropOf(size, crop); err != nil {
			return tool.Result{}, err
		}
	}
	if part.Max == size && part.Min == (image.Point{}) && max(size.X, size.Y) <= longestSide && len(data) <= maxImage {
		r, err := imageResult(name, media, data)
		r.Parts = append(llm.Parts{llm.Text{Text: fmt.Sprintf("%s: %d by %d pixels", name, size.X, size.Y)}}, r.Parts[1:]...)
		return r, err
	}
	whole, err := decodeImage(media, data)
	if err != nil {
		return tool.Result{}, fmt.Errorf("%s can't be taken apart: %w", name, err)
	}
	small := shrunk(whole, part.Add(whole.Bounds().Min))
	var b bytes.Buffer
	if media == "image/jpeg" {
		err = jpeg.Encode(&b, small, &jpeg.Options{Quality: goodQuality})
	} else {
		media, err = "image/png", png.Encode(&b, small)
	}
	if err != nil {
		return tool.Result{}, err
	}
	text := fmt.Sprintf("%s: %d by %d pixels; shown is %d by %d from %d, %d, as %d by %d", name, size.X, size.Y,
		part.Dx(), part.Dy(), part.Min.X, part.Min.Y, small.Bounds().Dx(), small.Bounds().Dy())
	return tool.Result{Parts: llm.Parts{llm.Text{Text: text}, llm.Image{MediaType: media, Data: b.Bytes()}}}, nil
}

func cropOf(size image.Point, crop []int) (image.Rectangle, error) {
	if len(crop) != 4 {
		return image.Rectangle{}, fmt.Errorf("crop has %s; it is x, y, width and height", text.Count(len(crop), "number"))
	}
	want := image.Rect(crop[0], crop[1], crop[0]+crop[2], crop[1]+crop[3])
	part := want.Intersect(image.Rectangle{Max: size})
	if crop[2] <= 0 || crop[3] <= 0 || part.Empty() {
		return image.Rectangle{}, fmt.Errorf("nothing of the image lies in the crop; it has %d by %d pixels", size.X, size.Y)
	}
	return part, nil
}

// sizeOf reads the size of an image. For a type that can't be decoded here the error wraps
// [errors.ErrUnsupported].
func sizeOf(media string, data []byte) (image.Point, error) {
	var c image.Config
	var err error
	switch media {
	case "image/png":
		c, err = png.DecodeConfig(bytes.NewReader(data))
	case "image/jpeg":
		c, err = jpeg.DecodeConfig(bytes.NewReader(data))
	case "image/gif":
		c, err = gif.DecodeConfig(bytes.NewReader(data))
	default:
		err = fmt.Errorf("%s: %w", media, errors.ErrUnsupported)
	}
	return image.Pt(c.Width, c.Height), err
}

func decodeImage(media string, data []byte) (image.Image, error) {
	switch media {
	case "image/png":
		return png.Decode(bytes.NewReader(data))
	case "image/jpeg":
		return jpeg.Decode(bytes.NewReader(data))
	}
	return gif.Decode(bytes.NewReader(data)) // the first picture
}

// shrunk returns a part of an image with its longer side at most longestSide.
func shrunk(src image.Image, part image.Rectangle) image.Image {
	w, h := part.Dx(), part.Dy()
	if long := max(w, h); long > longestSide {
		w, h = max(1, w*longestSide/long), max(1, h*longestSide/long)
	}
	return markdown.Shrink(src, part, w, h)
}

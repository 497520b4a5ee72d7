// Package request asks a model: it loads images, retries, watches the prompt cache and turns replies and
// failures into events.
package request

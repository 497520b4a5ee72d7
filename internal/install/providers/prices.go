package providers

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/catalog"
)

// mostBook is how many bytes a person's own price book has at the most.
const mostBook = 1 << 20

// PricesPath is the file of the person's own price book, which need not be there.
func PricesPath(set *config.Installation) string {
	return filepath.Join(filepath.Dir(set.ConfigPath), "prices.toml")
}

// OwnPrices reads the person's own price book; nil: there is none.
func OwnPrices(set *config.Installation) (*catalog.Book, error) {
	path := PricesPath(set)
	data, err := config.ReadAtMost(path, mostBook)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, config.Error{Err: err}
	}
	b, err := catalog.Read(data)
	if err != nil {
		return nil, config.Error{Err: fmt.Errorf("%s: %w; correct it, or remove it to use the built-in prices", path, err)}
	}
	return b, nil
}

// TakePrices makes a file the person's own price book, if it is one.
func TakePrices(set *config.Installation, from string) (*catalog.Book, error) {
	data, err := config.ReadAtMost(from, mostBook)
	if err != nil {
		return nil, err
	}
	b, err := catalog.Read(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	if err := os.MkdirAll(filepath.Dir(PricesPath(set)), 0o700); err != nil {
		return nil, err
	}
	return b, keep.Write(PricesPath(set), data)
}

// book is the price book that counts.
func (s *Set) book() *catalog.Book {
	if s.Prices != nil {
		return s.Prices
	}
	return catalog.BuiltIn()
}

// priced is what the price book knows of a provider's model. The adapters know the built-in book themselves.
func (s *Set) priced(p Provider, id string) llm.Info {
	vendor := p.Dialect
	switch {
	case p.Kind == "anthropic" || p.Kind == "gemini":
		vendor = p.Kind
	case vendor == "" || vendor == "azure":
		vendor = "openai"
	}
	return s.book().Find(vendor, id)
}

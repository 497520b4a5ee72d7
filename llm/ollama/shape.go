package ollama

import (
	"encoding/json"

	"github.com/inspan/inspan/llm"
)

// Shape is a server's description of one of its models, with the properties that determine how large a window fits
// into a machine.
type Shape struct {
	llm.Info       // Window: the maximum it was trained for
	Weights  int64 // bytes of the weights on disk; 0 if unknown
	PerToken int64 // bytes of memory per token of the window at 16 bits a value, or somewhat fewer; 0 if unknown
	Loaded   int   // window it is loaded with now; 0 means not loaded, or the server does not say
	OnCPU    int64 // bytes of the loaded model that are not in a GPU's memory
	Taken    int64 // bytes of GPU memory of all loaded models of the server, which make room for one another
}

// smallest is the smallest useful window, unless the model itself has less.
const smallest = 4 << 10

// besides is the memory that a server needs in addition to the weights and the window, in bytes.
const besides = 1e9

// byMemory returns the window that usually fits into this much memory, for models whose own figures are unknown.
// Vendors count 24 GB in powers of ten, and a card reports a little less than 24 GiB.
func byMemory(memory int64) int {
	switch {
	case memory >= 24e9:
		return 128 << 10
	case memory >= 16e9:
		return 32 << 10
	}
	return 8 << 10
}

// Fit returns the window that fits into this many bytes of memory, a multiple of 1024 and at least 4096, but never
// above the model's own. Zero memory means that it is unknown, and the zero Shape stands for an unknown model.
func (s Shape) Fit(memory int64) int {
	window := byMemory(memory)
	if s.PerToken > 0 && s.Weights > 0 && memory > 0 {
		window = int(max(memory/10*9-s.Weights-besides, 0) / s.PerToken)
	}
	window = max(window, smallest)
	if s.Window > 0 {
		window = min(window, s.Window)
	}
	if window < 1<<10 {
		return window
	}
	return window &^ (1<<10 - 1)
}

// value returns the property of the model with this name, prefixed by its architecture.
func (d described) value(name string) json.RawMessage {
	var arch string
	_ = json.Unmarshal(d.ModelInfo["general.architecture"], &arch) // an unknown structure has no names
	return d.ModelInfo[arch+"."+name]
}

// number returns a property between 0 and the possible maximum; 0 if it is missing.
func (d described) number(name string) int64 { return count(d.value(name)) }

func count(raw json.RawMessage) int64 {
	var f float64
	if json.Unmarshal(raw, &f) != nil || !(f > 0 && f < 1e9) {
		return 0
	}
	return int64(f)
}

const headsKV = "attention.head_count_kv"

// elided reports whether the number of heads differs by layer and was left out like a long list: as null, or as an
// empty one.
func (d described) elided() bool {
	raw := string(d.value(headsKV))
	return raw == "null" || raw == "[]"
}

// perToken adds up the memory of a token in every layer. Layers that look at only a part of the window, like half
// of Gemma's, are counted in full.
func (d described) perToken() int64 {
	heads := d.number("attention.head_count")
	key, value := d.number("attention.key_length"), d.number("attention.value_length")
	if width := d.number("embedding_length"); heads > 0 && width > 0 {
		if key == 0 {
			key = width / heads
		}
		if value == 0 {
			value = width / heads
		}
	}
	if d.value("attention.kv_lora_rank") != nil || key == 0 || value == 0 {
		return 0 // the cache is compressed, or its size unknown
	}
	return d.heads(heads) * (key + value) * 2
}

// heads counts the heads whose keys and values are kept, in all layers. usual is the number in a layer if no other
// is stated.
func (d described) heads(usual int64) int64 {
	layers := d.number("block_count")
	if every := d.number("full_attention_interval"); every > 0 {
		layers /= every // the others keep a state of fixed size
	}
	raw := d.value(headsKV)
	if raw == nil {
		return layers * usual
	}
	var perLayer []json.RawMessage
	if json.Unmarshal(raw, &perLayer) != nil {
		return layers * count(raw)
	}
	sum := int64(0)
	for _, n := range perLayer {
		sum += count(n)
	}
	return sum
}

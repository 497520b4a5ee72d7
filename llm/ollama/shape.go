package ollama

import (
	"encoding/json"

	"github.com/inspan/inspan/llm"
)

// Shape is what a server tells of one of its models, as far as it matters for
// how large a window fits into a machine.
type Shape struct {
	llm.Info       // Window: the most it was trained for
	Weights  int64 // bytes of the weights on disk; 0 if unknown
	PerToken int64 // bytes that a token of the window takes in memory at 16 bits a value, or somewhat fewer; 0 if it can't be told
	Loaded   int   // window it is loaded with now; 0: not loaded, or the server does not say
	OnCPU    int64 // bytes of the loaded model that are not in a GPU's memory
	Taken    int64 // bytes of GPU memory that all loaded models of the server take, which make room for one another
}

// smallest is the least window worth having, unless the model itself has less.
const smallest = 4 << 10

// besides is what a server needs beside the weights and the window, in bytes.
const besides = 1e9

// byMemory is the window that usually fits into so many bytes, for models whose
// own figures are not known. Makers count 24 GB in tens, and a card reports a
// little less than 24 GiB.
func byMemory(memory int64) int {
	switch {
	case memory >= 24e9:
		return 128 << 10
	case memory >= 16e9:
		return 32 << 10
	}
	return 8 << 10
}

// Fit returns the window that fits into so many bytes of memory, a multiple of
// 1024 and at least 4096, but never above the model's own. Zero memory means that
// it is not known, and the zero Shape a model of which nothing is known.
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

// value returns what is told of the model under a name of its architecture.
func (d described) value(name string) json.RawMessage {
	var arch string
	_ = json.Unmarshal(d.ModelInfo["general.architecture"], &arch) // one of another kind has no names
	return d.ModelInfo[arch+"."+name]
}

// number returns a figure between 0 and what a model can have; 0 if there is
// none.
func (d described) number(name string) int64 { return count(d.value(name)) }

func count(raw json.RawMessage) int64 {
	var f float64
	if json.Unmarshal(raw, &f) != nil || !(f > 0 && f < 1e9) {
		return 0
	}
	return int64(f)
}

const headsKV = "attention.head_count_kv"

// elided reports whether the heads differ by layer and were left out as a long
// list is: as null, or as an empty one.
func (d described) elided() bool {
	raw := string(d.value(headsKV))
	return raw == "null" || raw == "[]"
}

// perToken adds up what every layer keeps of a token. Layers that look at a part
// of the window only, as half of Gemma's do, are counted in full.
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
		return 0 // what is kept is compressed, or nothing is known of it
	}
	return d.heads(heads) * (key + value) * 2
}

// heads counts those whose keys and values are kept, in all layers. usual is how
// many a layer has where nothing else is told.
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

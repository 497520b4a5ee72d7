package profile

import (
	"context"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"
)

// Device is a graphics card, or the graphics part of a system on a chip.
type Device struct {
	Name    string
	Memory  int64 // bytes for models, if it were empty
	Free    int64 // free bytes of those; 0 means unknown
	Unified bool  // the memory is the machine's own
}

// Run runs a program and returns its standard output. A missing or failing program is an error.
type Run func(ctx context.Context, args ...string) (string, error)

// Devices returns the devices, none if they are unknown. sys is the tree at /sys, which only Linux has; nil
// stands for none. NVIDIA's cards come before AMD's, and Apple's chips are queried last. It takes five seconds
// at most: a driver in trouble does not respond at all.
func Devices(ctx context.Context, run Run, sys fs.FS) []Device {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	text, err := run(ctx, "nvidia-smi", "--query-gpu=name,memory.total,memory.free", "--format=csv,noheader,nounits")
	if err != nil {
		text = ""
	}
	devices := nvidia(text)
	if sys != nil {
		devices = append(devices, amd(sys)...)
	}
	if len(devices) > 0 {
		return devices
	}
	if arm, err := run(ctx, "sysctl", "-n", "hw.optional.arm64"); err != nil || strings.TrimSpace(arm) != "1" {
		return nil
	}
	size, err := run(ctx, "sysctl", "-n", "hw.memsize")
	if err != nil {
		return nil
	}
	return apple(size)
}

// Memory adds up the memory of the devices: servers spread a model over all.
func Memory(devices []Device) int64 {
	sum := int64(0)
	for _, d := range devices {
		sum += d.Memory
	}
	return sum
}

// Free adds up the free memory for models. A device that does not report it counts whole.
func Free(devices []Device) int64 {
	sum := int64(0)
	for _, d := range devices {
		if d.Free > 0 {
			sum += d.Free
		} else {
			sum += d.Memory
		}
	}
	return sum
}

// nvidia parses lines of a name, the memory and its free part, in MiB. A chip that shares the machine's memory
// reports neither and is omitted.
func nvidia(text string) []Device {
	var devices []Device
	for line := range strings.Lines(text) {
		fields := strings.Split(line, ",")
		if len(fields) < 3 {
			continue
		}
		figures := fields[len(fields)-2:]
		memory, free := size(figures[0]), size(figures[1])
		if name := strings.TrimSpace(fields[0]); memory > 0 {
			devices = append(devices, Device{Name: name, Memory: memory << 20, Free: free << 20})
		}
	}
	return devices
}

// amd reads the amdgpu driver's report for each card, in bytes. See
// https://docs.kernel.org/gpu/amdgpu/driver-misc.html.
func amd(sys fs.FS) []Device {
	cards, _ := fs.Glob(sys, "class/drm/card*/device/mem_info_vram_total") // the pattern is not malformed
	var devices []Device
	for _, file := range cards {
		total, _ := fs.ReadFile(sys, file)
		used, err := fs.ReadFile(sys, path.Join(path.Dir(file), "mem_info_vram_used"))
		d := Device{Name: "AMD " + path.Base(path.Dir(path.Dir(file))), Memory: size(string(total))}
		if err == nil {
			d.Free = max(d.Memory-size(string(used)), 0)
		}
		if d.Memory > 0 {
			devices = append(devices, d)
		}
	}
	return devices
}

// apple parses the machine's memory in bytes, about two thirds of which the system allows for graphics.
func apple(text string) []Device {
	memory := size(text)
	if memory == 0 {
		return nil
	}
	return []Device{{Name: "Apple", Memory: memory / 3 * 2, Unified: true}}
}

// size parses a plausible memory size; 0 if it is not one.
func size(text string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n < 0 || n > 1<<42 {
		return 0
	}
	return n
}

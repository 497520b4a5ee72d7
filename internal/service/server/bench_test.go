package server_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/service/server"
)

// memory is the current and the peak memory of the server's process, in MB.
func (p *process) memory() (now, peak float64) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		p.t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		kb, _ := strconv.ParseFloat(fields[1], 64)
		switch fields[0] {
		case "VmRSS:":
			now = kb / 1024
		case "VmHWM:":
			peak = kb / 1024
		}
	}
	return now, peak
}

// cpu is the time that the server's process has used.
func (p *process) cpu() time.Duration {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		p.t.Fatal(err)
	}
	fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')'):]))
	user, _ := strconv.Atoi(fields[12])
	system, _ := strconv.Atoi(fields[13])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// submitAll submits so many tasks with a prompt and returns their ids.
func (p *process) submitAll(n int, prompt string) (ids []string) {
	p.t.Helper()
	for range n {
		status, raw, err := p.send("POST", "/api/v1/tasks", "", server.Spec{Prompt: prompt})
		var made server.Task
		if err != nil || status != http.StatusCreated || json.Unmarshal(raw, &made) != nil {
			p.t.Fatalf("%d %s %v", status, raw, err)
		}
		ids = append(ids, made.ID)
	}
	return ids
}

// count is how many tasks are in a stage.
func (p *process) count(stage event.Stage) int {
	_, raw, err := p.send("GET", "/api/v1/tasks?limit=1000&stage="+string(stage), "", nil)
	var list struct{ Tasks []struct{ ID string } }
	if err != nil || json.Unmarshal(raw, &list) != nil {
		p.t.Fatalf("%v %s", err, raw)
	}
	return len(list.Tasks)
}

// sample asks for a path every so often until it is to end, and returns how long the answers took.
func (p *process) sample(path string, every time.Duration, end <-chan struct{}) (took []time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	var mu sync.Mutex
	var asked sync.WaitGroup
	defer asked.Wait()
	for {
		select {
		case <-tick.C:
			asked.Go(func() {
				began := time.Now()
				if _, _, err := p.send("GET", path, "", nil); err != nil {
					p.t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				took = append(took, time.Since(began))
			})
		case <-end:
			asked.Wait()
			return took
		}
	}
}

// millis is a percentile of times.
func millis(took []time.Duration, percentile int) float64 {
	slices.Sort(took)
	return float64(took[min(len(took)-1, len(took)*percentile/100)].Microseconds()) / 1000
}

// BenchmarkThousandTasks submits 1,000 tasks at once and measures the answer time of the health check until all are
// over, and the memory of the server.
func BenchmarkThousandTasks(b *testing.B) {
	for b.Loop() {
		p := newProcess(b)
		p.start()
		end, took := make(chan struct{}), make(chan []time.Duration)
		go func() { took <- p.sample("/ping", 10*time.Millisecond, end) }()
		began := time.Now()
		p.submitAll(1000, "bash: echo done")
		submitted := time.Since(began)
		for p.count(server.StageCompleted) < 1000 {
			<-time.After(200 * time.Millisecond)
		}
		close(end)
		times := <-took
		_, peak := p.memory()
		b.ReportMetric(millis(times, 99), "ping-p99-ms")
		b.ReportMetric(submitted.Seconds(), "submitted-s")
		b.ReportMetric(time.Since(began).Seconds(), "all-over-s")
		b.ReportMetric(peak, "peak-MB")
		p.kill()
	}
	b.ReportMetric(0, "ns/op")
}

// BenchmarkIdleStreams opens 2,000 streams of a session in which nothing happens.
func BenchmarkIdleStreams(b *testing.B) {
	const streams = 2000
	for b.Loop() {
		p := newProcess(b)
		p.start()
		id := p.submitAll(1, "bash: sleep 600")[0]
		for p.count(server.StageRunning) < 1 {
			<-time.After(50 * time.Millisecond)
		}
		before, _ := p.memory()
		var opened []io.Closer
		for range streams {
			req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, "http://"+p.addr+"/api/v1/tasks/"+id+"/events", nil)
			if err != nil {
				b.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+ownersToken)
			res, err := http.DefaultClient.Do(req) //nolint:bodyclose // all at once, after the loop
			if err != nil || res.StatusCode != http.StatusOK {
				b.Fatal(err, res)
			}
			opened = append(opened, res.Body)
		}
		<-time.After(5 * time.Second)
		cpu := p.cpu()
		<-time.After(20 * time.Second)
		used := p.cpu() - cpu
		now, _ := p.memory()
		for _, body := range opened {
			_ = body.Close()
		}
		b.ReportMetric(now, "MB")
		b.ReportMetric(now-before, "MB-of-streams")
		b.ReportMetric(100*used.Seconds()/20, "%-of-a-core")
		p.kill()
	}
	b.ReportMetric(0, "ns/op")
}

// BenchmarkReads asks for 200 pages of tasks a second while 50 tasks work.
func BenchmarkReads(b *testing.B) {
	for b.Loop() {
		p := newProcess(b)
		p.start("--at-once", "50")
		p.submitAll(50, strings.Repeat("bash: sleep 0.5\n", 40))
		end, took := make(chan struct{}), make(chan []time.Duration)
		go func() { took <- p.sample("/api/v1/tasks?limit=50", 5*time.Millisecond, end) }()
		<-time.After(10 * time.Second)
		close(end)
		times := <-took
		b.ReportMetric(millis(times, 50), "p50-ms")
		b.ReportMetric(millis(times, 99), "p99-ms")
		b.ReportMetric(float64(len(times))/10, "reads/s")
		p.kill()
		if _, err := os.Stat(filepath.Join(p.home, "state")); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(0, "ns/op")
}

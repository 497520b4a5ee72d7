// Command suite runs 'go test' and reports on it: a line for each package, the whole output of each test
// that failed, the tests that were skipped, and the slowest packages and tests.
//
//	suite [-rerun 2] [-slow 15] -- [flags and packages of go test]
//
// With -rerun, a test that failed runs again, alone, at most so often. If it passes then, suite prints a
// line that begins with FLAKY, and the output of both runs; the exit status does not count it. A package
// that failed without a failed test, as it did not compile or ran out of time, is never run again.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"
)

func main() {
	rerun := flag.Int("rerun", 0, "run a failed test again, alone, at most so `often`")
	slow := flag.Int("slow", 0, "print the slowest packages and tests, so `many` of each")
	flag.Parse()
	os.Exit(report{out: os.Stdout}.play(*rerun, *slow, flag.Args()))
}

// play runs 'go test' with some arguments, prints the report and returns the exit code.
func (r report) play(rerun, slow int, args []string) int {
	if err := r.run(args); err != nil {
		fmt.Fprintln(r.out, "suite:", err)
		return 2
	}
	r.rerun(rerun, args)
	r.slowest(slow)
	r.summary()
	if len(r.failed) > 0 {
		return 1
	}
	return 0
}

// event is a line of 'go test -json'; see 'go doc test2json' and 'go help buildjson'.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
	ImportPath                    string // of what is compiled
}

// result is the end of a test, or of a package if test is empty.
type result struct {
	pkg, test, action string
	took              time.Duration
	output            string
}

func (r result) String() string {
	if r.test == "" {
		return r.pkg
	}
	return r.pkg + " " + r.test
}

type report struct {
	out     io.Writer
	done    []result
	failed  []result // tests, and packages without a failed test
	flaky   []string
	skipped []result
}

// run runs 'go test' once and adds to the report.
func (r *report) run(args []string) error {
	results, err := goTest(append([]string{"test", "-json"}, args...), func(ended result) {
		if ended.test == "" && ended.action != "skip" {
			r.printPackage(ended)
		}
	})
	if err != nil {
		return err
	}
	broken := map[string]bool{}
	for _, ended := range results {
		switch {
		case ended.action == "skip" && ended.test != "":
			r.skipped = append(r.skipped, ended)
		case ended.action == "fail" && ended.test != "" && !failedByPart(results, ended):
			r.failed = append(r.failed, ended)
			broken[ended.pkg] = true
		}
	}
	for _, ended := range results {
		if ended.action == "fail" && ended.test == "" && !broken[ended.pkg] {
			r.failed = append(r.failed, ended)
		}
	}
	for _, f := range r.failed {
		fmt.Fprintf(r.out, "\n=== FAIL %s (%v)\n%s", f, f.took, f.output)
	}
	r.done = results
	return nil
}

// failedByPart reports whether a test failed only because a subtest did. Then the subtest is reported, and
// it is enough to run that one again.
func failedByPart(results []result, whole result) bool {
	return reason(whole.output) == "" && slices.ContainsFunc(results, func(part result) bool {
		return part.action == "fail" && part.pkg == whole.pkg && strings.HasPrefix(part.test, whole.test+"/")
	})
}

func (r *report) printPackage(p result) {
	switch {
	case p.action == "fail":
		fmt.Fprintf(r.out, "FAIL\t%s\t%.1fs\n", p.pkg, p.took.Seconds())
	case strings.Contains(p.output, "\t(cached)"):
		fmt.Fprintf(r.out, "ok  \t%s\t(cached)\n", p.pkg)
	default:
		fmt.Fprintf(r.out, "ok  \t%s\t%.1fs\n", p.pkg, p.took.Seconds())
	}
}

// rerun gives each failed test more tries, alone. Those that pass are taken out of failed.
func (r *report) rerun(most int, args []string) {
	var stay []result
	for _, f := range r.failed {
		if f.test == "" || !r.passesAlone(f, most, args) {
			stay = append(stay, f)
		}
	}
	r.failed = stay
}

func (r *report) passesAlone(f result, most int, args []string) bool {
	said := "--- it had failed with\n" + f.output
	for try := range most {
		again := slices.Concat([]string{"test", "-json", "-count=1", "-run", pattern(f.test)}, flagsOf(args), []string{f.pkg})
		results, err := goTest(again, func(result) {})
		if err != nil {
			fmt.Fprintln(r.out, "suite:", err)
			return false
		}
		at := slices.IndexFunc(results, func(got result) bool { return got.test == f.test })
		clean := !slices.ContainsFunc(results, func(got result) bool { return got.action == "fail" })
		switch {
		case at >= 0 && clean && results[at].action == "pass":
			r.flaky = append(r.flaky, f.String())
			fmt.Fprintf(r.out, "\nFLAKY %s passed when it ran again, alone (try %d)\n%s--- and passed with\n%s", f, try+1, said, results[at].output)
			return true
		case at >= 0:
			fmt.Fprintf(r.out, "\n=== FAIL %s, again and alone (try %d)\n%s", f, try+1, results[at].output)
			said += "--- and with\n" + results[at].output
		default:
			fmt.Fprintf(r.out, "\n=== FAIL %s can't be run alone\n", f)
		}
	}
	return false
}

// pattern selects one test, or one subtest, for -run.
func pattern(test string) string {
	parts := strings.Split(test, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.Join(parts, "/")
}

// flagsOf leaves out the packages. A flag and its value are one argument here, as in -timeout=15m.
func flagsOf(args []string) []string {
	return slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return !strings.HasPrefix(arg, "-") })
}

// slowest prints where the time goes.
func (r *report) slowest(many int) {
	if many == 0 {
		return
	}
	byTime := slices.SortedFunc(slices.Values(r.done), func(a, b result) int { return cmp.Compare(b.took, a.took) })
	whole := map[string]bool{} // tests with subtests, which have the time
	for _, d := range r.done {
		for i, c := range d.test {
			if c == '/' {
				whole[d.pkg+" "+d.test[:i]] = true
			}
		}
	}
	for _, kind := range []string{"packages", "tests"} {
		fmt.Fprintf(r.out, "\nslowest %s\n", kind)
		left := many
		for _, d := range byTime {
			if left > 0 && (d.test == "") == (kind == "packages") && !whole[d.String()] {
				left--
				fmt.Fprintf(r.out, "%8.1fs  %s\n", d.took.Seconds(), d)
			}
		}
	}
}

// summary says why tests were skipped, and ends with one line for people and programs.
func (r *report) summary() {
	passed := 0
	for _, d := range r.done {
		if d.test != "" && d.action == "pass" {
			passed++
		}
	}
	fmt.Fprintln(r.out)
	for _, s := range r.skipped {
		fmt.Fprintf(r.out, "skipped %s: %s\n", s, reason(s.output))
	}
	for _, name := range r.flaky {
		fmt.Fprintf(r.out, "FLAKY %s\n", name)
	}
	for _, f := range r.failed {
		fmt.Fprintf(r.out, "FAIL %s\n", f)
	}
	fmt.Fprintf(r.out, "%d passed, %d failed, %d skipped\n", passed+len(r.flaky), len(r.failed), len(r.skipped))
}

// reason is the last line that a test printed itself.
func reason(output string) (said string) {
	for line := range strings.Lines(output) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "--- ") && !strings.HasPrefix(line, "=== ") {
			said = line
		}
	}
	return said
}

// goTest runs the go command and returns how all tests and packages ended. Each is handed to ended as it
// comes. That tests fail is no error.
func goTest(args []string, ended func(result)) ([]result, error) {
	cmd := exec.Command("go", args...)
	var errs bytes.Buffer
	cmd.Stderr = io.MultiWriter(&errs, os.Stderr)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	results := collect(stdout, ended)
	err = cmd.Wait()
	failed := (*exec.ExitError)(nil)
	if err != nil && (!errors.As(err, &failed) || !slices.ContainsFunc(results, func(r result) bool { return r.action == "fail" })) {
		return nil, fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return results, nil
}

func collect(from io.Reader, ended func(result)) (results []result) {
	output := map[[2]string]*strings.Builder{}
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		if json.Unmarshal(line, &e) == nil {
			key := [2]string{e.Package, e.Test}
			if output[key] == nil {
				output[key] = &strings.Builder{}
			}
			switch e.Action {
			case "build-output":
				fmt.Fprint(os.Stderr, e.Output)
			case "output":
				output[key].WriteString(e.Output)
			case "pass", "fail", "skip":
				r := result{e.Package, e.Test, e.Action, time.Duration(e.Elapsed * float64(time.Second)), output[key].String()}
				delete(output, key)
				results = append(results, r)
				ended(r)
			}
		}
		if err != nil {
			return unended(results, output)
		}
	}
}

// unended adds the tests that were running when their package was ended by a panic or a timeout, as
// failed ones: go names no result for them.
func unended(results []result, output map[[2]string]*strings.Builder) []result {
	for key, text := range output {
		if key[1] != "" && text.Len() > 0 {
			results = append(results, result{pkg: key[0], test: key[1], action: "fail", output: text.String() + "it did not end\n"})
		}
	}
	return results
}

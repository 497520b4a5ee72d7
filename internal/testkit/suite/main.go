// Command suite runs 'go test' and reports on it: a line for each package, the whole output of each failed
// test, the skipped tests, and the slowest packages and tests.
//
//	suite [-rerun 2] [-slow 15] -- [flags and packages of go test]
//
// With -rerun, a failed test runs again, alone, at most so often. If it passes then, suite prints a line that
// begins with FLAKY, and the output of both runs; the exit status does not count it. A package whose tests have
// not all run, because of a panic or a timeout, runs again as a whole: that one test passes would say nothing
// about the others.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
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

// whole reports whether all tests of a package have run: then the testing package prints its verdict. After a
// panic, a timeout and a call of os.Exit, the remaining tests have not run.
func (r result) whole() bool {
	return strings.HasPrefix(r.output, "FAIL\n") || strings.Contains(r.output, "\nFAIL\n")
}

type report struct {
	out     io.Writer
	done    []result
	failed  []result // tests of packages whose tests have all run, and other packages
	flaky   []string
	skipped []result
}

// run runs 'go test' once and adds to the report.
func (r *report) run(args []string) error {
	return goTest(append([]string{"test", "-json"}, args...), r.add)
}

// add adds the results of a package, its own being the last.
func (r *report) add(results []result) {
	pkg := results[len(results)-1]
	r.done = append(r.done, results...)
	var failed []result
	for _, ended := range results[:len(results)-1] {
		switch {
		case ended.action == "skip":
			r.skipped = append(r.skipped, ended)
		case ended.action == "fail" && !failedByPart(results, ended):
			failed = append(failed, ended)
		}
	}
	if pkg.action != "skip" {
		r.printPackage(pkg)
	}
	for _, f := range failed {
		fmt.Fprintf(r.out, "\n=== FAIL %s (%v)\n%s", f, f.took, f.output)
	}
	switch {
	case pkg.action != "fail":
	case len(failed) > 0 && pkg.whole():
		r.failed = append(r.failed, failed...)
	default:
		fmt.Fprintf(r.out, "\n=== FAIL %s (%v), and not all of its tests have run\n%s", pkg, pkg.took, pkg.output)
		r.failed = append(r.failed, pkg)
	}
}

// failedByPart reports whether a test failed only because a subtest did. Then the subtest is reported, and only
// that one needs to run again.
func failedByPart(results []result, whole result) bool {
	return reason(whole.output) == "" && slices.ContainsFunc(results, func(part result) bool {
		return part.action == "fail" && strings.HasPrefix(part.test, whole.test+"/")
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

// rerun gives each failed test more tries, alone, and each package whose tests have not all run. Those that
// pass are removed from failed.
func (r *report) rerun(most int, args []string) {
	r.failed = slices.DeleteFunc(r.failed, func(f result) bool { return r.passesAlone(f, most, args) })
}

func (r *report) passesAlone(f result, most int, args []string) bool {
	said := "--- it had failed with\n" + f.output
	for try := range most {
		again := slices.Concat([]string{"test", "-json", "-count=1"}, flagsOf(args), []string{f.pkg})
		if f.test != "" {
			again = slices.Insert(again, 3, "-run="+pattern(f.test))
		}
		var results []result
		if err := goTest(again, func(got []result) { results = got }); err != nil {
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

// flagsOf omits the packages. A flag and its value are one argument here, as in -timeout=15m.
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

// summary prints why tests were skipped, and ends with one line for people and programs.
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
	if n := r.judged(); n > 0 {
		fmt.Fprintf(r.out, "%d requests to models passed before the judges of their wires\n", n)
	}
	fmt.Fprintf(r.out, "%d passed, %d failed, %d skipped\n", passed+len(r.flaky), len(r.failed), len(r.skipped))
}

// judgedBy precedes the number of requests that a fake server of a vendor has judged in a test.
const judgedBy = "requests judged: "

// judged returns how many requests fake servers have judged.
func (r *report) judged() (n int) {
	for _, d := range r.done {
		for line := range strings.Lines(d.output) {
			if _, number, is := strings.Cut(line, judgedBy); is {
				one, _ := strconv.Atoi(strings.TrimSpace(number)) // what is no number is none
				n += one
			}
		}
	}
	return n
}

// reason returns the last line that a test printed itself.
func reason(output string) (said string) {
	for line := range strings.Lines(output) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "--- ") && !strings.HasPrefix(line, "=== ") &&
			!strings.Contains(line, judgedBy) {
			said = line
		}
	}
	return said
}

// goTest runs the go command, and reports the results of each package as soon as it has ended, that of the
// package last. Failing tests are not an error.
func goTest(args []string, ended func([]result)) error {
	cmd := exec.Command("go", args...)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	failed := false
	collect(stdout, func(results []result) {
		failed = failed || results[len(results)-1].action == "fail"
		ended(results)
	})
	exit := (*exec.ExitError)(nil)
	if err := cmd.Wait(); err != nil && (!errors.As(err, &exit) || !failed) {
		return fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

// running is a package with some finished tests.
type running struct {
	results []result
	output  map[string]*strings.Builder // of what has not ended; that of the package by ""
}

func collect(from io.Reader, ended func([]result)) {
	packages := map[string]*running{}
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		if json.Unmarshal(line, &e) == nil {
			p := packages[e.Package]
			if p == nil {
				p = &running{output: map[string]*strings.Builder{}}
				packages[e.Package] = p
			}
			if e.Package == "" { // of a build
				fmt.Fprint(os.Stderr, e.Output)
			} else if p.take(e) {
				delete(packages, e.Package)
				ended(p.results)
			}
		}
		if err != nil {
			return
		}
	}
}

// take reports whether the package has ended. Its unfinished tests then count as failed: go reports no result
// for them.
func (p *running) take(e event) bool {
	text := p.output[e.Test]
	if text == nil {
		text = &strings.Builder{}
		p.output[e.Test] = text
	}
	switch e.Action {
	case "output":
		text.WriteString(e.Output)
		return false
	case "pass", "fail", "skip":
	default:
		return false
	}
	delete(p.output, e.Test)
	if e.Test == "" {
		for _, test := range slices.Sorted(maps.Keys(p.output)) {
			p.results = append(p.results, result{pkg: e.Package, test: test, action: "fail", output: p.output[test].String() + "it did not end\n"})
		}
	}
	p.results = append(p.results, result{e.Package, e.Test, e.Action, time.Duration(e.Elapsed * float64(time.Second)), text.String()})
	return e.Test == ""
}

package process

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/time/rate"
	testclock "k8s.io/utils/clock/testing"
)

func output(t *testing.T) (*Output, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "logs", "a.log")
	o, err := NewOutput(file, testclock.NewFakePassiveClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	o.pace = rate.NewLimiter(rate.Inf, outputBurst)
	return o, file
}

func TestWhatIsWrittenIsKeptByLines(t *testing.T) {
	long := strings.Repeat("x", mostLine)
	for name, test := range map[string]struct {
		writes []string
		want   []string
	}{
		"lines":                     {[]string{"a\nb\n"}, []string{"a", "b"}},
		"a line in parts":           {[]string{"a", "b", "\nc\n"}, []string{"ab", "c"}},
		"one that has no end yet":   {[]string{"a\nb"}, []string{"a", "b"}},
		"an empty one":              {[]string{"\n\na\n"}, []string{"", "", "a"}},
		"ends of other systems":     {[]string{"a\r\nb\r\n"}, []string{"a", "b"}},
		"one that is too long":      {[]string{long, "yyy", "zzz\nb\n"}, []string{long + "...", "b"}},
		"one that is as long as is": {[]string{long + "\nb\n"}, []string{long, "b"}},
		"what terminals obey":       {[]string{"\x1b[31mred\x07\xff\n"}, []string{`^[[31mred\u0007\xff`}},
	} {
		t.Run(name, func(t *testing.T) {
			o, _ := output(t)
			for _, said := range test.writes {
				if n, err := o.Write([]byte(said)); n != len(said) || err != nil {
					t.Fatalf("wrote %d, %v", n, err)
				}
			}
			if got := o.Last(); !slices.Equal(got, test.want) {
				t.Errorf("kept %q, want %q", got, test.want)
			}
		})
	}
}

func TestTheLastLinesAreKept(t *testing.T) {
	o, file := output(t)
	for i := range 3 * keptLines {
		fmt.Fprintln(o, i)
	}
	o.Note("it exited with code 1")
	got := o.Last()
	if len(got) != keptLines || got[0] != fmt.Sprint(2*keptLines+1) || got[keptLines-1] != "manifold: it exited with code 1" {
		t.Errorf("kept %d lines, from %q to %q", len(got), got[0], got[len(got)-1])
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(content), "2026-01-02T03:04:05Z 0\n") || !strings.HasSuffix(string(content), "Z manifold: it exited with code 1\n") {
		t.Errorf("the log has %q", content)
	}
}

func TestTheLastWordsTellWhyAProgramHasEnded(t *testing.T) {
	for name, test := range map[string]struct {
		said string
		want []string
	}{
		"nothing":                  {"", nil},
		"its last lines":           {"a\nb\n\nc\nd", []string{"b", "c", "d"}},
		"a panic, and not a trace": {"a\npanic: no such thing\n\ngoroutine 1 [running]:\nmain.main()\n", []string{"panic: no such thing"}},
		"a log's trace of calls":   {"a\nERROR: no such folder\nmain.main\n\texample.com/plugin/main.go:76\nruntime.main\n\truntime/proc.go:290", []string{"a", "ERROR: no such folder"}},
		"lines that are set in":    {"usage:\n\t--folder\n\tof.go files", []string{"usage:", "\t--folder", "\tof.go files"}},
		"no memory":                {"fatal error: runtime: out of memory\n" + strings.Repeat("x\n", 2*keptLines), []string{"fatal error: runtime: out of memory"}},
	} {
		o, _ := output(t)
		_, _ = o.Write([]byte(test.said))
		o.Note("exited with code 2")
		if got := o.LastWords(3); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestLogsRotate(t *testing.T) {
	o, file := output(t)
	line := []byte(strings.Repeat("x", mostLine-1) + "\n")
	for range (keptLogs + 2) * mostLog << 20 / len(line) {
		_, _ = o.Write(line)
	}
	logs, err := filepath.Glob(filepath.Join(filepath.Dir(file), "*"))
	if err != nil || len(logs) < 2 {
		t.Fatalf("there are %v, %v, want several files", logs, err)
	}
	for _, name := range logs {
		info, err := os.Stat(name)
		if err == nil && info.Size() > mostLog<<20 {
			t.Errorf("%s has %d bytes", name, info.Size())
		}
	}
}

// A program that writes more than is taken waits; it does not fill the disk or keep a processor busy.
func TestAProgramThatWritesMuchIsSlowed(t *testing.T) {
	o, _ := output(t)
	o.pace = rate.NewLimiter(outputRate, outputBurst)
	begun := time.Now()
	_, _ = o.Write(make([]byte, outputBurst+outputRate/4))
	if took := time.Since(begun); took < 200*time.Millisecond {
		t.Errorf("it took %s to write more than the burst", took)
	}
}

package process

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Usage is what a process has taken of the machine.
type Usage struct {
	// CPU is the time that it and the children it has waited for ran, in user and kernel mode.
	CPU time.Duration
	// RSS is its resident memory in bytes.
	RSS int64
}

// UsageOf reads the usage of a process from /proc, which only Linux has.
func UsageOf(pid int) (Usage, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Usage{}, fmt.Errorf("read the usage of process %d: %w", pid, err)
	}
	usage, err := parseStat(string(raw), int64(os.Getpagesize()))
	if err != nil {
		return Usage{}, fmt.Errorf("read the usage of process %d: %w", pid, err)
	}
	return usage, nil
}

// ticksPerSecond is the unit of times in /proc; Linux fixes it at 100 for user space, whatever the kernel's own.
const ticksPerSecond = 100

// parseStat reads a line of /proc/PID/stat, see proc_pid_stat(5). The second field is the program's name in parentheses, which may
// hold anything, spaces and parentheses included.
func parseStat(stat string, pageSize int64) (Usage, error) {
	end := strings.LastIndexByte(stat, ')')
	if end < 0 {
		return Usage{}, fmt.Errorf("no program name in %q", stat)
	}
	// fields[0] is the third field of the line.
	fields := strings.Fields(stat[end+1:])
	if len(fields) < 22 {
		return Usage{}, fmt.Errorf("only %d fields in %q", len(fields)+2, stat)
	}
	var ticks int64
	for _, field := range fields[11:15] { // utime, stime, cutime, cstime
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return Usage{}, fmt.Errorf("a time in %q: %w", stat, err)
		}
		ticks += n
	}
	pages, err := strconv.ParseInt(fields[21], 10, 64)
	if err != nil {
		return Usage{}, fmt.Errorf("the resident pages in %q: %w", stat, err)
	}
	return Usage{CPU: time.Duration(ticks) * time.Second / ticksPerSecond, RSS: pages * pageSize}, nil
}

// MachineCPU reads from /proc how long all processes of the machine together have run since it was started.
func MachineCPU() (time.Duration, error) {
	raw, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, fmt.Errorf("read the usage of the machine: %w", err)
	}
	return parseMachineStat(string(raw))
}

// parseMachineStat reads the first line of /proc/stat, see proc_stat(5). The fourth and the fifth time are those of doing nothing;
// guests' times, from the ninth on, are contained in others.
func parseMachineStat(stat string) (time.Duration, error) {
	line, _, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return 0, fmt.Errorf("no times of all processors in %q", line)
	}
	var ticks int64
	for i, field := range fields[1:9] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("a time in %q: %w", line, err)
		}
		if i != 3 && i != 4 {
			ticks += n
		}
	}
	return time.Duration(ticks) * time.Second / ticksPerSecond, nil
}

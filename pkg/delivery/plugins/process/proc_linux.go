package process

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// seen is what the kernel tells of a process.
type seen struct {
	pid, session int
	started      uint64
	user         uint32
	// dead is one that has ended and that nobody has asked about yet.
	dead bool
	mark string
}

// markVariable is the environment variable that a program and what it starts have.
const markVariable = "MANIFOLD_PLUGIN_MARK"

// look reads what the kernel tells of a process. It fails once the process has gone.
func look(pid int) (seen, error) {
	folder := "/proc/" + strconv.Itoa(pid)
	stat, err := os.ReadFile(folder + "/stat")
	if err != nil {
		return seen{}, err
	}
	out, err := parseStat(pid, stat)
	if err != nil {
		return seen{}, err
	}
	status, err := os.ReadFile(folder + "/status")
	if err != nil {
		return seen{}, err
	}
	out.user, err = parseUser(status)
	if err != nil {
		return seen{}, err
	}
	environ, err := os.ReadFile(folder + "/environ") // which others may not be read
	if err == nil {
		out.mark = markIn(environ)
	}
	return out, nil
}

// parseStat reads /proc/PID/stat. The second field is a name in brackets, which may have brackets and blanks of its own.
func parseStat(pid int, stat []byte) (seen, error) {
	const state, session, started = 0, 3, 19 // of the fields behind the name
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) <= started {
		return seen{}, fmt.Errorf("process %d: the kernel tells %d fields", pid, len(fields))
	}
	out := seen{pid: pid, dead: fields[state] == "Z" || fields[state] == "X"}
	var err error
	if out.session, err = strconv.Atoi(fields[session]); err != nil {
		return seen{}, fmt.Errorf("session of process %d: %w", pid, err)
	}
	if out.started, err = strconv.ParseUint(fields[started], 10, 64); err != nil {
		return seen{}, fmt.Errorf("start of process %d: %w", pid, err)
	}
	return out, nil
}

// parseUser reads the real user from /proc/PID/status.
func parseUser(status []byte) (uint32, error) {
	for line := range strings.Lines(string(status)) {
		if rest, is := strings.CutPrefix(line, "Uid:"); is {
			if fields := strings.Fields(rest); len(fields) > 0 {
				id, err := strconv.ParseUint(fields[0], 10, 32)
				return uint32(id), err
			}
		}
	}
	return 0, fmt.Errorf("the kernel tells no user of a process")
}

func markIn(environ []byte) string {
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if value, is := bytes.CutPrefix(entry, []byte(markVariable+"=")); is {
			return string(value)
		}
	}
	return ""
}

// processes returns the numbers of all processes.
func processes() ([]int, error) {
	folder, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	names, err := folder.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var out []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			out = append(out, pid)
		}
	}
	return out, nil
}

// boot tells which start of the machine this is.
func boot() (string, error) {
	content, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(content)), err
}

func ownerOf(info fs.FileInfo) (uint32, bool) {
	stat, is := info.Sys().(*syscall.Stat_t)
	if !is {
		return 0, false
	}
	return stat.Uid, true
}

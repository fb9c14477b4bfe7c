package process

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// ListensAs checks that what listens on a TCP port belongs to a user, so that no other program of the machine passes for it. Without a user of its own there is nothing to tell
// it by.
func ListensAs(port int32, user *User) error {
	if user == nil {
		return nil
	}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		content, err := os.ReadFile(table)
		if os.IsNotExist(err) {
			continue // without IPv6
		}
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(content)) {
			if owner, listens := listenerIn(line, port); listens && owner != user.ID {
				return fmt.Errorf("port %d is listened on by user %d, and not by the plugin, whose user is %d", port, owner, user.ID)
			}
		}
	}
	return nil
}

// listenerIn reads a line of the kernel's table of connections, and returns who listens on a port.
func listenerIn(line string, port int32) (owner uint32, listens bool) {
	const local, state, user = 1, 3, 7
	const listening = "0A"
	fields := strings.Fields(line)
	if len(fields) <= user || fields[state] != listening {
		return 0, false
	}
	_, hex, _ := strings.Cut(fields[local], ":")
	if at, err := strconv.ParseUint(hex, 16, 16); err != nil || int32(at) != port {
		return 0, false
	}
	id, err := strconv.ParseUint(fields[user], 10, 32)
	return uint32(id), err == nil
}

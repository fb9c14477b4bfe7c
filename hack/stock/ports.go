package stock

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// Ports are taken from below the range that the kernel hands out by itself, usually from 32768 on. A component that is restarted
// then finds its port still free, however many connections were opened in between.
const (
	firstPort = 20000
	lastPort  = 32000
)

// freePorts returns n ports that nobody listens on at the moment.
func freePorts(n int) ([]int, error) {
	var ports []int
	// All stay taken until the last is found, so that they differ.
	var taken []net.Listener
	defer func() {
		for _, l := range taken {
			l.Close()
		}
	}()
	for tries := 0; len(ports) < n; tries++ {
		if tries == 1000 {
			return nil, fmt.Errorf("find %d free ports between %d and %d: %w", n, firstPort, lastPort, errors.New("all tried are in use"))
		}
		port := firstPort + rand.IntN(lastPort-firstPort)
		listener, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		taken = append(taken, listener)
		ports = append(ports, port)
	}
	return ports, nil
}

// FreePort returns a port of this machine that nobody listens on at the moment, for a server that goes with the clusters.
func FreePort() (int, error) {
	ports, err := freePorts(1)
	if err != nil {
		return 0, err
	}
	return ports[0], nil
}

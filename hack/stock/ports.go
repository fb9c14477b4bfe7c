package stock

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
)

// Ports are taken from below the range that the kernel hands out by itself, usually from 32768 on. A component that is restarted
// then finds its port still free, however many connections were opened in between.
const (
	firstPort = 20000
	lastPort  = 32000
)

// reservations are the files of ports that this process has chosen.
var reservations struct {
	sync.Mutex
	files []*os.File
}

// reserve reports whether this process gets a port that nobody listens on, which is then its own until it ends: between the choice and the
// moment when a server listens, and while that is down, another process that runs clusters would choose it as well.
func reserve(port int) (bool, error) {
	file, err := take(strconv.Itoa(port))
	if err != nil {
		return false, fmt.Errorf("reserve port %d: %w", port, err)
	}
	if file == nil {
		return false, nil
	}
	reservations.Lock()
	defer reservations.Unlock()
	reservations.files = append(reservations.files, file) // the kernel lets go of them when the process ends, however it does
	return true, nil
}

// take returns a file that stands for something of this machine that one holder has at a time, or nil if there is another. Closing the file
// lets go of it.
func take(name string) (*os.File, error) {
	dir := filepath.Join(os.TempDir(), "manifold-ports")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		file.Close()
		return nil, nil
	}
	return file, nil
}

// Pods have addresses from 10.128.0.0 on, a range 10.N.0.0/16 for each cluster.
const (
	firstPodRange = 128
	podRanges     = 128
)

// reservePods returns the first half of the addresses of a cluster's pods, which no other cluster of this machine has until the file is
// closed. A cluster of the same name usually gets the same again.
func reservePods(name string) (prefix string, _ *os.File, err error) {
	h := fnv.New32a()
	h.Write([]byte(name))
	for i := range uint32(podRanges) {
		prefix := fmt.Sprintf("10.%d", firstPodRange+(h.Sum32()+i)%podRanges)
		file, err := take("pods-" + prefix)
		if err != nil {
			return "", nil, fmt.Errorf("reserve the addresses of pods: %w", err)
		}
		if file != nil {
			return prefix, file, nil
		}
	}
	return "", nil, fmt.Errorf("reserve the addresses of pods: %d clusters of this machine have all that there are", podRanges)
}

// freePorts returns n ports that nobody listens on at the moment, and that nobody else gets from here.
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
		if mine, err := reserve(port); err != nil || !mine {
			listener.Close()
			if err != nil {
				return nil, err
			}
			continue
		}
		taken = append(taken, listener)
		ports = append(ports, port)
	}
	return ports, nil
}

// FreePort returns a port of this machine that nobody listens on at the moment, and that nobody else gets from here, for a server that goes with the clusters.
func FreePort() (int, error) {
	ports, err := freePorts(1)
	if err != nil {
		return 0, err
	}
	return ports[0], nil
}

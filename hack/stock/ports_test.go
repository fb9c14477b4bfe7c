package stock

import (
	"fmt"
	"os"
	"testing"
)

// A server listens on its port some time after that was chosen.
func TestAPortIsGivenOutOnce(t *testing.T) {
	seen := map[int]bool{}
	for range 20 {
		ports, err := freePorts(5)
		if err != nil {
			t.Fatal(err)
		}
		for _, port := range ports {
			if seen[port] {
				t.Fatalf("port %d is given out twice", port)
			}
			seen[port] = true
		}
	}
	if mine, err := reserve(firstOf(seen)); mine || err != nil {
		t.Errorf("what is reserved can be reserved: %t, %v", mine, err)
	}
}

func firstOf(ports map[int]bool) int {
	for port := range ports {
		return port
	}
	return 0
}

func TestClustersHaveAddressesOfTheirOwn(t *testing.T) {
	name := fmt.Sprint("cluster-of-", os.Getpid()) // others use the usual names
	first, held, err := reservePods(name)
	if err != nil {
		t.Fatal(err)
	}
	second, another, err := reservePods(name)
	if err != nil {
		t.Fatal(err)
	}
	defer another.Close()
	if first == second {
		t.Fatalf("two clusters of one name have pods at %s", first)
	}
	held.Close()
	again, held, err := reservePods(name)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if again != first {
		t.Errorf("a cluster has pods at %s and later at %s", first, again)
	}
}

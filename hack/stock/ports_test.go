package stock

import "testing"

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

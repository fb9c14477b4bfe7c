package stock

import (
	"bytes"
	"testing"
)

// What says when a pod is ready, and removes it in the end, is kwok or the pod's server, and never both.
func TestKwokLeavesServersAlone(t *testing.T) {
	for servers, want := range map[bool]string{false: "{{ $ready := true }}", true: "{{ $ready := false }}"} {
		config := kwokConfigOf(Options{Servers: servers})
		if bytes.Count(config, []byte("{{ $ready := ")) != 1 || !bytes.Contains(config, []byte(want)) {
			t.Errorf("with servers %t, kwok does not have %q once", servers, want)
		}
		if deletes := bytes.Contains(config, []byte("name: pod-delete")); deletes == servers {
			t.Errorf("with servers %t, kwok removes pods: %t", servers, deletes)
		}
		if !bytes.Contains(config, []byte("name: pod-fail")) {
			t.Errorf("with servers %t, kwok has lost other stages", servers)
		}
	}
}

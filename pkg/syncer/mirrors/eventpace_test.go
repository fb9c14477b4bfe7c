package mirrors

import "testing"

func TestEventsLetPodsGoFirst(t *testing.T) {
	for pods, want := range map[int]int{0: 1, podWorkers: 1, podWorkers + 1: behindPods, 5000: behindPods} {
		if got := eventCost(pods); got != want {
			t.Errorf("with %d pods that wait, an event costs %d, want %d", pods, got, want)
		}
	}
	if behindPods > eventBurst {
		t.Error("no event could ever be written while pods wait")
	}
}

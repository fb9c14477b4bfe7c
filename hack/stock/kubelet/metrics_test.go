package kubelet

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var started = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// busy returns a pod with one container that runs and uses what the quantities say.
func busy(uid, cpu, memory string) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web-" + uid, UID: types.UID(uid),
			Annotations: map[string]string{AnnotationCPU: cpu, AnnotationMemory: memory},
		},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			Name: "web", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(started)}},
		}}},
	}
}

func TestUsage(t *testing.T) {
	type scrape struct {
		after time.Duration
		pods  []corev1.Pod
		// wantNode and want are the seconds of the node and of its containers.
		wantNode float64
		want     []float64
	}
	for name, scrapes := range map[string][]scrape{
		"the first scrape counts from the start of the container": {
			{after: 10 * time.Second, pods: []corev1.Pod{busy("1", "500m", "1Mi")}, wantNode: nodeSeconds + 5, want: []float64{5}},
		},
		"what is said to be used counts from the last scrape on": {
			{after: 10 * time.Second, pods: []corev1.Pod{busy("1", "1", "1Mi")}, wantNode: nodeSeconds + 10, want: []float64{10}},
			{after: 20 * time.Second, pods: []corev1.Pod{busy("1", "3", "1Mi")}, wantNode: nodeSeconds + 40, want: []float64{40}},
		},
		"the node keeps what pods used that are gone": {
			{after: 10 * time.Second, pods: []corev1.Pod{busy("1", "1", "1Mi"), busy("2", "2", "1Mi")}, wantNode: nodeSeconds + 30, want: []float64{10, 20}},
			{after: 20 * time.Second, pods: []corev1.Pod{busy("2", "2", "1Mi")}, wantNode: nodeSeconds + 50, want: []float64{40}},
		},
		"a pod that says nothing, or nonsense, uses a little": {
			{after: 1000 * time.Second, pods: []corev1.Pod{busy("1", "", ""), busy("2", "much", "")}, wantNode: nodeSeconds + 2, want: []float64{1, 1}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUsage()
			for _, s := range scrapes {
				seconds, readings := u.read("east-0", s.pods, started.Add(s.after))
				if seconds != s.wantNode {
					t.Errorf("after %s the node has used %v seconds, want %v", s.after, seconds, s.wantNode)
				}
				if len(readings) != len(s.want) {
					t.Fatalf("after %s there are %d readings, want %d", s.after, len(readings), len(s.want))
				}
				for i, r := range readings {
					if r.seconds != s.want[i] {
						t.Errorf("after %s container %d has used %v seconds, want %v", s.after, i, r.seconds, s.want[i])
					}
				}
			}
		})
	}
}

func TestMetricsText(t *testing.T) {
	now := started.Add(10 * time.Second)
	seconds, readings := newUsage().read("east-0", []corev1.Pod{busy("1", "250m", "2Mi")}, now)
	text := metricsText(seconds, readings, now)
	for _, want := range []string{
		`container_start_time_seconds{container="web",namespace="shop",pod="web-1"} 1795176000.000` + "\n",
		`container_cpu_usage_seconds_total{container="web",namespace="shop",pod="web-1"} 2.500000000 1795176010000` + "\n",
		`container_memory_working_set_bytes{container="web",namespace="shop",pod="web-1"} 2097152 1795176010000` + "\n",
		"\nnode_cpu_usage_seconds_total 3.500000000 1795176010000\n",
		"\nnode_memory_working_set_bytes 69206016 1795176010000\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the metrics lack %q:\n%s", want, text)
		}
	}
}

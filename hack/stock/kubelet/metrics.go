package kubelet

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
)

// What every container of a pod uses is a quantity in one of these annotations of the pod, whose names are those of kwok's own
// metrics. They may change at any time.
const (
	AnnotationCPU    = "kwok.x-k8s.io/usage-cpu"
	AnnotationMemory = "kwok.x-k8s.io/usage-memory"
)

// What a container uses whose pod says nothing. Metrics-server leaves out a pod that uses nothing.
const (
	defaultCPU    = "1m"
	defaultMemory = "1Mi"
)

// MetricsPath is where the resource metrics of a node are: the kubelet endpoints of all nodes are one.
func MetricsPath(node string) string { return "/nodes/" + node + "/metrics/resource" }

// usage sums up the processor time that containers have used since they started. It lives on being asked: between two scrapes a
// container is taken to have used what its pod says at the second.
type usage struct {
	mu sync.Mutex
	// nodes holds the last samples of every node. It is guarded by mu.
	nodes map[string]*nodeUsage
}

// nodeUsage is what a node and its containers had used at the last scrape.
type nodeUsage struct {
	// seconds is the processor time of all containers that ever ran there. It never falls, as that of a machine does not.
	seconds    float64
	containers map[containerKey]sample
}

// sample is the processor time that a container had used at a time.
type sample struct {
	at      time.Time
	seconds float64
}

func newUsage() *usage { return &usage{nodes: map[string]*nodeUsage{}} }

// reading is what a container uses.
type reading struct {
	namespace, pod, container string
	started                   time.Time
	// seconds is its processor time since it started, and memory its working set in bytes.
	seconds, memory float64
}

// nodeSeconds is the processor time of a node without pods: metrics-server leaves out a node that has used none.
const nodeSeconds = 1

// read returns the processor time that a node has used, and what the containers of its pods use. Others are forgotten.
func (u *usage) read(node string, pods []corev1.Pod, now time.Time) (seconds float64, readings []reading) {
	u.mu.Lock()
	defer u.mu.Unlock()
	n := u.nodes[node]
	if n == nil {
		n = &nodeUsage{seconds: nodeSeconds}
		u.nodes[node] = n
	}
	next := map[containerKey]sample{}
	for i := range pods {
		pod := &pods[i]
		cores, memory := quantity(pod, AnnotationCPU, defaultCPU), quantity(pod, AnnotationMemory, defaultMemory)
		for _, status := range pod.Status.ContainerStatuses {
			if status.State.Running == nil {
				continue
			}
			started := status.State.Running.StartedAt.Time
			key := containerKey{pod: pod.UID, name: status.Name}
			last, known := n.containers[key]
			if !known || last.at.Before(started) {
				last = sample{at: started}
			}
			used := cores * max(0, now.Sub(last.at).Seconds())
			n.seconds += used
			next[key] = sample{at: now, seconds: last.seconds + used}
			readings = append(readings, reading{
				namespace: pod.Namespace, pod: pod.Name, container: status.Name, started: started, seconds: last.seconds + used, memory: memory,
			})
		}
	}
	n.containers = next
	return n.seconds, readings
}

// quantity reads an annotation. One that is no quantity counts as none.
func quantity(pod *corev1.Pod, annotation, otherwise string) float64 {
	q, err := resource.ParseQuantity(cmp.Or(pod.Annotations[annotation], otherwise))
	if err != nil {
		q = resource.MustParse(otherwise)
	}
	return q.AsApproximateFloat64()
}

// serveMetrics answers a scrape of a node in the words of a kubelet.
func (s *Server) serveMetrics(w http.ResponseWriter, r *http.Request) {
	node := r.PathValue("node")
	pods, err := s.config.Client.CoreV1().Pods(metav1.NamespaceAll).List(r.Context(), metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String(),
		// What the API server remembers is good enough, and costs it nothing.
		ResourceVersion: "0",
	})
	if err != nil {
		http.Error(w, fmt.Sprintf("list the pods of node %q: %v", node, err), http.StatusInternalServerError)
		return
	}
	now := time.Now()
	seconds, readings := s.usage.read(node, pods.Items, now)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	// An error means that the client has gone.
	_, _ = io.WriteString(w, metricsText(seconds, readings, now))
}

// nodeMemory is the working set of a node without pods, in bytes.
const nodeMemory = 64 << 20

// metricsText writes what a node and its containers use as a kubelet does.
func metricsText(seconds float64, readings []reading, now time.Time) string {
	var text strings.Builder
	family := func(name, kind, help string) {
		fmt.Fprintf(&text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
	}
	perContainer := func(name, kind, help string, value func(reading) string) {
		family(name, kind, help)
		for _, r := range readings {
			fmt.Fprintf(&text, "%s{container=%q,namespace=%q,pod=%q} %s\n", name, r.container, r.namespace, r.pod, value(r))
		}
	}
	at, memory := now.UnixMilli(), float64(nodeMemory)
	for _, r := range readings {
		memory += r.memory
	}
	perContainer("container_start_time_seconds", "gauge", "Start time of the container since unix epoch in seconds",
		func(r reading) string { return fmt.Sprintf("%.3f", float64(r.started.UnixMilli())/1000) })
	perContainer("container_cpu_usage_seconds_total", "counter", "Cumulative cpu time consumed by the container in core-seconds",
		func(r reading) string { return fmt.Sprintf("%.9f %d", r.seconds, at) })
	perContainer("container_memory_working_set_bytes", "gauge", "Current working set of the container in bytes",
		func(r reading) string { return fmt.Sprintf("%.0f %d", r.memory, at) })
	family("node_cpu_usage_seconds_total", "counter", "Cumulative cpu time consumed by the node in core-seconds")
	fmt.Fprintf(&text, "node_cpu_usage_seconds_total %.9f %d\n", seconds, at)
	family("node_memory_working_set_bytes", "gauge", "Current working set of the node in bytes")
	fmt.Fprintf(&text, "node_memory_working_set_bytes %.0f %d\n", memory, at)
	return text.String()
}

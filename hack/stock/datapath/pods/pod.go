package pods

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Answer is what a pod says to a request: who it is, and which path it was asked for.
type Answer struct {
	Cluster   string `json:"cluster"`
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	Node      string `json:"node"`
	// App is the pod's label "app".
	App string `json:"app,omitempty"`
	// Version is the variable VERSION of the pod's first container, or else the tag of its image.
	Version string `json:"version,omitempty"`
	Path    string `json:"path"`
}

// identity returns what is the same in all answers of a pod.
func identity(cluster string, pod *corev1.Pod) Answer {
	a := Answer{Cluster: cluster, Namespace: pod.Namespace, Pod: pod.Name, Node: pod.Spec.NodeName, App: pod.Labels["app"]}
	first := pod.Spec.Containers[0]
	if i := strings.LastIndex(first.Image, ":"); i > strings.LastIndex(first.Image, "/") {
		a.Version = first.Image[i+1:]
	}
	for _, env := range first.Env {
		if env.Name == "VERSION" && env.Value != "" {
			a.Version = env.Value
		}
	}
	return a
}

// defaultPort is where a pod listens whose containers name no port.
const defaultPort = 80

// portsOf returns the TCP ports that the containers of a pod name.
func portsOf(pod *corev1.Pod) []uint16 {
	var ports []uint16
	for _, container := range pod.Spec.Containers {
		for _, port := range container.Ports {
			if port.Protocol == "" || port.Protocol == corev1.ProtocolTCP {
				ports = append(ports, uint16(port.ContainerPort))
			}
		}
	}
	if len(ports) == 0 {
		ports = append(ports, defaultPort)
	}
	return ports
}

// pod is the server of one pod.
type pod struct {
	uid      types.UID
	identity Answer
	gate     *gate
	started  time.Time
	server   *http.Server
	serving  sync.WaitGroup
	// told is how the pod is to behave now.
	told     atomic.Pointer[behaviour]
	draining atomic.Bool
}

// startPod has the server of a pod listen on its ports.
func startPod(cluster string, of *corev1.Pod, told behaviour, gate *gate) (*pod, error) {
	p := &pod{uid: of.UID, identity: identity(cluster, of), gate: gate, started: time.Now()}
	p.told.Store(&told)
	ip, err := netip.ParseAddr(of.Status.PodIP)
	if err != nil {
		return nil, err
	}
	p.server = &http.Server{Handler: p, ErrorLog: log.New(io.Discard, "", 0)} // clients that go away are nobody's news
	var listeners []net.Listener
	for _, port := range portsOf(of) {
		at, err := Listener(ip, port)
		if err == nil {
			var listener net.Listener
			if listener, err = net.Listen("tcp4", at.String()); err == nil {
				listeners = append(listeners, listener)
				continue
			}
		}
		for _, l := range listeners {
			l.Close()
		}
		return nil, fmt.Errorf("listen for port %d of %s: %w", port, ip, err)
	}
	for _, l := range listeners {
		p.serving.Go(func() { _ = p.server.Serve(l) }) // it ends with stop
	}
	return p, nil
}

// closeGrace is how long requests that are being answered may hold up the end of a pod that stops in good order.
const closeGrace = 2 * time.Second

// stop ends the server: it takes no new connections, finishes what it is at, and closes all.
func (p *pod) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
	defer cancel()
	if err := p.server.Shutdown(ctx); err != nil {
		p.server.Close()
	}
	p.serving.Wait()
}

// kill ends the server at once, and breaks its connections.
func (p *pod) kill() {
	p.server.Close()
	p.serving.Wait()
}

// ServeHTTP answers with the pod's identity.
func (p *pod) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	told, err := p.told.Load().with(r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if err := errors.Join(p.gate.pass(r.Context()), wait(r.Context(), told.delay)); err != nil {
		return // the client has gone
	}
	if p.draining.Load() {
		w.Header().Set("Connection", "close") // as good servers ask clients to go elsewhere
	}
	answer := p.identity
	answer.Path = r.URL.Path
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(told.status)
	_ = json.NewEncoder(w).Encode(answer) // the client may have gone
}

func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

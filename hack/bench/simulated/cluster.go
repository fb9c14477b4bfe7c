// Package simulated serves the API of clusters of which nothing else is there. What is written is kept in memory, and a Deployment has all
// its replicas as soon as it is stored, or a given time later. A hundred of them fit where one real cluster does, which is what they are for: to measure the
// logical cluster, and nothing below it.
package simulated

import (
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
)

// Cluster is one of them. It is safe for concurrent use.
type Cluster struct {
	name     string
	server   *httptest.Server
	requests request.RequestInfoFactory
	// rollout is how long it takes until the pods of a Deployment are as its spec says.
	rollout time.Duration
	silence sync.Once

	mu       sync.Mutex
	revision int64
	// stores are the collections of objects, by resource and group.
	stores map[string]*store
	// writes counts what was written, and reads what was got and listed, by verb and resource.
	writes, reads map[string]float64
	// ended is closed when the cluster falls silent.
	ended chan struct{}
}

// Start starts a cluster with one node of so many cores, each with room for ten pods. A Deployment is rolled out for a given time.
func Start(name string, cores int64, rollout time.Duration) (*Cluster, error) {
	c := &Cluster{
		name: name, rollout: rollout, stores: map[string]*store{}, writes: map[string]float64{}, reads: map[string]float64{}, ended: make(chan struct{}),
		requests: request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")},
	}
	for _, namespace := range []string{metav1.NamespaceSystem, metav1.NamespaceDefault} {
		if err := c.add("namespaces", &corev1.Namespace{TypeMeta: metav1.TypeMeta{Kind: "Namespace", APIVersion: "v1"},
			ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
			return nil, err
		}
	}
	has := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(cores, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(cores<<32, resource.BinarySI),
		corev1.ResourcePods:   *resource.NewQuantity(cores*10, resource.DecimalSI),
	}
	if err := c.add("nodes", &corev1.Node{
		TypeMeta: metav1.TypeMeta{Kind: "Node", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Name: name + "-node"},
		Status: corev1.NodeStatus{Capacity: has, Allocatable: has, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}); err != nil {
		return nil, err
	}
	c.server = httptest.NewUnstartedServer(http.HandlerFunc(c.serve))
	c.server.EnableHTTP2 = true
	c.server.Config.ErrorLog = log.New(io.Discard, "", 0) // connections that end are no news here
	c.server.StartTLS()
	return c, nil
}

func (c *Cluster) add(resource string, obj runtime.Object) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return fmt.Errorf("make %s of simulated cluster %q: %w", resource, c.name, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.store(resource, "").put(object(content))
	return nil
}

// Name returns the cluster's name.
func (c *Cluster) Name() string { return c.name }

// Kubeconfig returns how to reach the cluster.
func (c *Cluster) Kubeconfig() ([]byte, error) {
	ca, err := cert.EncodeCertificates(c.server.Certificate())
	if err != nil {
		return nil, fmt.Errorf("encode the certificate of simulated cluster %q: %w", c.name, err)
	}
	return clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{c.name: {Server: c.server.URL, CertificateAuthorityData: ca}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{c.name: {Token: string(uuid.NewUUID())}},
		Contexts:       map[string]*clientcmdapi.Context{c.name: {Cluster: c.name, AuthInfo: c.name}},
		CurrentContext: c.name,
	})
}

// Silence ends the cluster for everybody who talks to it, at once. Only the first call counts.
func (c *Cluster) Silence() {
	c.silence.Do(func() {
		close(c.ended)
		c.server.CloseClientConnections()
		c.server.Close()
	})
}

// Writes returns how often something was written so far, by verb and resource, such as "patch deployments".
func (c *Cluster) Writes() map[string]float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.writes)
}

// Reads returns how often something was got or listed so far, by verb and resource, such as "list deployments".
func (c *Cluster) Reads() map[string]float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.reads)
}

// Count returns how many objects of a resource there are.
func (c *Cluster) Count(group, resource string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.store(resource, group).objects)
}

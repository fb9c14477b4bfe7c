package stock

import (
	"io"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/controller-manager/pkg/clientbuilder"
	"k8s.io/klog/v2"

	"github.com/manifold-dev/manifold/pkg/projection"
)

// The controller of namespaces deletes all pods first, and nothing else as long as there are any: so what reaches and fences them outlives them.
// In a namespace that goes nobody makes others, since the API server refuses it. The namespaces of clusters are not going yet, so there a pod
// would be replaced as often as it is deleted. So workloads are deleted before their pods.

// emptyingClients makes the clients of stock controllers. The one of namespaces deletes workloads before it deletes pods.
type emptyingClients struct {
	clientbuilder.ControllerClientBuilder
}

// namespaceController is what the controller of namespaces calls itself.
const namespaceController = "namespace-controller"

// Config implements clientbuilder.ControllerClientBuilder.
func (c emptyingClients) Config(name string) (*rest.Config, error) {
	config, err := c.ControllerClientBuilder.Config(name)
	if err == nil && name == namespaceController {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return workloadsFirst{next} })
	}
	return config, err
}

// workloadsFirst sends a request to delete all pods of a namespace only when the same was asked for every kind of workload.
type workloadsFirst struct {
	http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (w workloadsFirst) RoundTrip(request *http.Request) (*http.Response, error) {
	namespace, ok := allPodsOf(request)
	if !ok {
		return w.RoundTripper.RoundTrip(request)
	}
	for _, kind := range projection.Workloads() {
		if kind.GVK.Group == "" && kind.Resource.Resource == "pods" {
			continue
		}
		if err := w.deleteAll(request, kind, namespace); err != nil {
			return nil, err
		}
	}
	return w.RoundTripper.RoundTrip(request)
}

// allPodsOf returns the namespace of which a request deletes all pods.
func allPodsOf(request *http.Request) (namespace string, ok bool) {
	if request.Method != http.MethodDelete || request.GetBody == nil {
		return "", false
	}
	path, prefixed := strings.CutPrefix(request.URL.Path, "/api/v1/namespaces/")
	namespace, ok = strings.CutSuffix(path, "/"+string(corev1.ResourcePods))
	return namespace, prefixed && ok && !strings.Contains(namespace, "/")
}

// deleteAll deletes all of a kind as the request deletes pods. What is refused is told when the controller comes to it by itself.
func (w workloadsFirst) deleteAll(like *http.Request, kind projection.Kind, namespace string) error {
	request := like.Clone(like.Context())
	root := "/apis/" + kind.Resource.Group
	if kind.Resource.Group == "" {
		root = "/api"
	}
	request.URL.Path = root + "/" + kind.Resource.Version + "/namespaces/" + namespace + "/" + kind.Resource.Resource
	body, err := like.GetBody()
	if err != nil {
		return err
	}
	request.Body = body
	response, err := w.RoundTripper.RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	if response.StatusCode >= http.StatusBadRequest {
		klog.FromContext(like.Context()).V(2).Info("Workloads of a namespace that goes were not deleted", "kind", kind.GVK.Kind, "namespace", namespace, "status", response.Status)
	}
	return nil
}

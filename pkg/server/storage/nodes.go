package storage

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/registry/rest"
	api "k8s.io/kubernetes/pkg/apis/core"

	"github.com/manifold-dev/manifold/pkg/server/storage/below"
)

// nodeProxyREST refuses to be a way to machines: a Node of the logical cluster mirrors a cluster, and the machines behind it are no
// business of those who work above.
type nodeProxyREST struct{}

func (nodeProxyREST) Destroy() {}

func (nodeProxyREST) New() runtime.Object { return &api.NodeProxyOptions{} }

func (nodeProxyREST) ConnectMethods() []string { return below.ProxyMethods[:] }

func (nodeProxyREST) NewConnectOptions() (runtime.Object, bool, string) {
	return &api.NodeProxyOptions{}, true, "path"
}

func (nodeProxyREST) Connect(_ context.Context, id string, _ runtime.Object, _ rest.Responder) (http.Handler, error) {
	_, name, _, valid := utilnet.SplitSchemeNamePort(id)
	if !valid {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("invalid node request %q", id))
	}
	return nil, apierrors.NewForbidden(api.Resource("nodes"), name, errors.New(
		"it mirrors a cluster and has no kubelet: ask the cluster itself for its nodes, by a kubeconfig of its own"))
}

package pods

import (
	"context"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	api "k8s.io/kubernetes/pkg/apis/core"

	"github.com/manifold-dev/manifold/pkg/server/ours"
	"github.com/manifold-dev/manifold/pkg/server/storage/below"
)

// podProxyREST passes HTTP requests on to a pod.
type podProxyREST struct{ podsBelow }

func (*podProxyREST) New() runtime.Object { return &api.PodProxyOptions{} }

func (*podProxyREST) ConnectMethods() []string { return below.ProxyMethods[:] }

func (*podProxyREST) NewConnectOptions() (runtime.Object, bool, string) {
	return &api.PodProxyOptions{}, true, "path"
}

// Connect takes id as [scheme:]name[:port], which the cluster's API server understands as well.
func (r *podProxyREST) Connect(ctx context.Context, id string, options runtime.Object, responder rest.Responder) (http.Handler, error) {
	_, name, _, valid := utilnet.SplitSchemeNamePort(id)
	if !valid {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("invalid pod request %q", id))
	}
	proxied, ok := options.(*api.PodProxyOptions)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("options of proxy are a %T", options))
	}
	path, err := ours.ProxyPath(request.NamespaceValue(ctx), "pods", id, proxied.Path)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	_, connection, err := r.find(ctx, name)
	if err != nil {
		return nil, err
	}
	return connection.Proxy(path, responder), nil
}

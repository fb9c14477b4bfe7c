package pods

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericrest "k8s.io/apiserver/pkg/registry/generic/rest"
	"k8s.io/apiserver/pkg/registry/rest"
	utilfeature "k8s.io/apiserver/pkg/util/feature"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	api "k8s.io/kubernetes/pkg/apis/core"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/internal/redirects"
	"github.com/manifold-dev/manifold/pkg/server/ours"
	"github.com/manifold-dev/manifold/pkg/server/storage/below"
)

// podsBelow finds a pod's counterpart in its cluster.
type podsBelow struct {
	get         func(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error)
	connections below.Connections
	identity    ours.Identity
	authorizer  authorizer.UnconditionalAuthorizer
}

// Destroy has nothing to release: the store belongs to the pods' own endpoint.
func (podsBelow) Destroy() {}

// find returns a pod and the connection to the cluster where it runs, under the same name, once that has said that it is this pod.
func (b podsBelow) find(ctx context.Context, name string) (*api.Pod, *below.Connection, error) {
	obj, err := b.get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, nil, err
	}
	pod := obj.(*api.Pod)
	cluster := clusterOf(pod)
	if cluster == "" {
		return nil, nil, apierrors.NewBadRequest(fmt.Sprintf("pod %s does not have a host assigned", name))
	}
	connection, err := b.connections.Connection(cluster)
	if err != nil {
		return nil, nil, apierrors.NewServiceUnavailable(fmt.Sprintf("pod %s/%s runs in cluster %q: %v", pod.Namespace, pod.Name, cluster, err))
	}
	ctx, cancel := context.WithTimeout(ctx, below.Timeout)
	defer cancel()
	if err := b.identity.Pod(ctx, connection.Client, cluster, pod); err != nil {
		return nil, nil, fromCluster(err, pod)
	}
	return pod, connection, nil
}

// location is the address of a pod's subresource in its cluster, with options as query parameters.
func location(connection *below.Connection, pod *api.Pod, name, subresource string, options runtime.Object) (*url.URL, error) {
	query, err := legacyscheme.ParameterCodec.EncodeParameters(options, corev1.SchemeGroupVersion)
	if err != nil {
		return nil, fmt.Errorf("encode options of %s: %w", subresource, err)
	}
	out := connection.Address(pod.Namespace, "pods", name, subresource)
	out.RawQuery = query.Encode()
	return out, nil
}

// stream is what exec, attach and port-forward share: the cluster's API server speaks both stream protocols, so the upgraded connection
// is handed through as it is.
type stream struct {
	podsBelow
}

// ConnectMethods are both: browsers open WebSockets by GET.
func (stream) ConnectMethods() []string { return []string{http.MethodGet, http.MethodPost} }

func (s stream) connect(ctx context.Context, name, subresource string, options runtime.Object, responder rest.Responder) (http.Handler, error) {
	if utilfeature.DefaultFeatureGate.Enabled(features.AuthorizePodWebsocketUpgradeCreatePermission) {
		if err := s.authorizeCreate(ctx); err != nil {
			return nil, err
		}
	}
	pod, connection, err := s.find(ctx, name)
	if err != nil {
		return nil, err
	}
	to, err := location(connection, pod, pod.Name, subresource, options)
	if err != nil {
		return nil, err
	}
	return connection.Handler(to, true, responder), nil
}

// authorizeCreate demands the right to create, whatever the method: a WebSocket opened by GET must not need less than a POST. See
// kubernetes/kubernetes issue 133515 and ensureAuthorizedForVerb in pkg/registry/core/pod/rest.
func (s stream) authorizeCreate(ctx context.Context) error {
	info, ok := request.RequestInfoFrom(ctx)
	if !ok {
		return apierrors.NewInternalError(errors.New("no request info in the context"))
	}
	if info.Verb == "create" {
		return nil
	}
	attributes, err := filters.GetAuthorizerAttributes(ctx)
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("authorize the stream: %w", err))
	}
	decision, reason, err := s.authorizer.Authorize(ctx, createVerb{attributes})
	if err != nil {
		return err
	}
	if decision != authorizer.DecisionAllow {
		return apierrors.NewForbidden(api.Resource(info.Resource), info.Name, errors.New(reason))
	}
	return nil
}

type createVerb struct{ authorizer.Attributes }

func (createVerb) GetVerb() string { return "create" }

type execREST struct{ stream }

func (*execREST) New() runtime.Object { return &api.PodExecOptions{} }
func (*execREST) NewConnectOptions() (runtime.Object, bool, string) {
	return &api.PodExecOptions{}, false, ""
}
func (r *execREST) Connect(ctx context.Context, name string, options runtime.Object, responder rest.Responder) (http.Handler, error) {
	return r.connect(ctx, name, "exec", options, responder)
}

type attachREST struct{ stream }

func (*attachREST) New() runtime.Object { return &api.PodAttachOptions{} }
func (*attachREST) NewConnectOptions() (runtime.Object, bool, string) {
	return &api.PodAttachOptions{}, false, ""
}
func (r *attachREST) Connect(ctx context.Context, name string, options runtime.Object, responder rest.Responder) (http.Handler, error) {
	return r.connect(ctx, name, "attach", options, responder)
}

type portForwardREST struct{ stream }

func (*portForwardREST) New() runtime.Object { return &api.PodPortForwardOptions{} }
func (*portForwardREST) NewConnectOptions() (runtime.Object, bool, string) {
	return &api.PodPortForwardOptions{}, false, ""
}
func (r *portForwardREST) Connect(ctx context.Context, name string, options runtime.Object, responder rest.Responder) (http.Handler, error) {
	return r.connect(ctx, name, "portforward", options, responder)
}

// logREST streams a container's log.
type logREST struct{ podsBelow }

func (*logREST) New() runtime.Object { return &api.Pod{} }

// ProducesMIMETypes adds plain text to what the endpoint is documented to produce.
func (*logREST) ProducesMIMETypes(string) []string { return []string{"text/plain"} }

// ProducesObject documents the answer as a string.
func (*logREST) ProducesObject(string) any { return "" }

// OverrideMetricsVerb counts a log that is followed apart from short requests, as the stock endpoint does.
func (*logREST) OverrideMetricsVerb(verb string) string {
	if verb == http.MethodGet {
		return http.MethodConnect
	}
	return verb
}
func (*logREST) NewGetOptions() (runtime.Object, bool, string) {
	return &api.PodLogOptions{}, false, ""
}

func (r *logREST) Get(ctx context.Context, name string, options runtime.Object) (runtime.Object, error) {
	log, ok := options.(*api.PodLogOptions)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("options of log are a %T", options))
	}
	split := utilfeature.DefaultFeatureGate.Enabled(features.PodLogsQuerySplitStreams)
	if split && log.Stream == nil {
		log.Stream = ptr.To(api.LogStreamAll)
	}
	if errs := corevalidation.ValidatePodLogOptions(log, split); len(errs) > 0 {
		return nil, apierrors.NewInvalid(api.Kind("PodLogOptions"), name, errs)
	}
	pod, connection, err := r.find(ctx, name)
	if err != nil {
		return nil, err
	}
	to, err := location(connection, pod, pod.Name, "log", log)
	if err != nil {
		return nil, err
	}
	return &genericrest.LocationStreamer{
		Location:        to,
		Transport:       redirects.Refuse(connection.Transport),
		ContentType:     "text/plain",
		Flush:           log.Follow,
		ResponseChecker: genericrest.NewGenericHttpResponseChecker(api.Resource("pods/log"), name),
		RedirectChecker: genericrest.PreventRedirects,
	}, nil
}

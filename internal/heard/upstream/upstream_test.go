// Package upstream has Kubernetes say what package heard reads, in the version that is built on.
package upstream

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	webhookerrors "k8s.io/apiserver/pkg/admission/plugin/webhook/errors"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/server/egressselector"
	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/apiserver/pkg/util/proxy"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/quota/v1/evaluator/core"
	"k8s.io/kubernetes/pkg/registry/core/service"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"
	"k8s.io/kubernetes/plugin/pkg/admission/limitranger"
	"k8s.io/kubernetes/plugin/pkg/admission/security/podsecurity"
	"k8s.io/kubernetes/plugin/pkg/admission/serviceaccount"
	"k8s.io/utils/clock"

	"github.com/manifold-dev/manifold/internal/heard"
)

// shop is the namespace of the pods that are tried.
var shop = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}

// creation is the request to make a pod.
func creation() admission.Attributes {
	two := api.ResourceList{api.ResourceCPU: resource.MustParse("2")}
	pod := &api.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec: api.PodSpec{
			ServiceAccountName: "web",
			Containers:         []api.Container{{Name: "app", Image: "app", Resources: api.ResourceRequirements{Limits: two, Requests: two}}},
		},
	}
	return admission.NewAttributesRecord(pod, nil, corev1.SchemeGroupVersion.WithKind("Pod"), "shop", "web", corev1.SchemeGroupVersion.WithResource("pods"), "",
		admission.Create, &metav1.CreateOptions{}, false, &user.DefaultInfo{Name: "jane"})
}

// refusedBy returns what a plugin says of the pod.
func refusedBy(t *testing.T, name string, register func(*admission.Plugins)) error {
	t.Helper()
	one := resource.MustParse("1")
	client := fake.NewClientset(shop, &corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "small"},
		Spec:       corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{"cpu": one}}}},
	})
	factory := informers.NewSharedInformerFactory(client, 0)
	plugins := admission.NewPlugins()
	register(plugins)
	plugin, err := plugins.InitPlugin(name, nil, initializer.New(client, nil, factory, nil, utilfeature.DefaultFeatureGate,
		compatibility.DefaultBuildEffectiveVersion(), t.Context().Done(), nil))
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	if mutating, ok := plugin.(admission.MutationInterface); ok {
		if err := mutating.Admit(t.Context(), creation(), nil); err != nil {
			return err
		}
	}
	return plugin.(admission.ValidationInterface).Validate(t.Context(), creation(), nil)
}

func TestARefusalByALimitRangeIsHeard(t *testing.T) {
	err := refusedBy(t, limitranger.PluginName, limitranger.Register)
	if err == nil {
		t.Fatal("the pod is admitted")
	}
	if says, own := heard.Refusal(err.Error()); !heard.ByLimitRange(says) || !own || heard.Quota(says) != "" || heard.ByQuota(err) || heard.ByPodSecurity(says) {
		t.Errorf("heard of %q: own %t", says, own)
	}
}

func TestARefusalByPodSecurityIsHeard(t *testing.T) {
	err := refusedBy(t, podsecurity.PluginName, podsecurity.Register)
	if err == nil {
		t.Fatal("the pod is admitted")
	}
	if says, own := heard.Refusal(err.Error()); !heard.ByPodSecurity(says) || !own || heard.ByLimitRange(says) || heard.LacksRight(err) {
		t.Errorf("heard of %q: own %t", says, own)
	}
}

func TestAMissingServiceAccountIsHeardAsMissingEverywhere(t *testing.T) {
	err := refusedBy(t, serviceaccount.PluginName, serviceaccount.Register)
	if err == nil {
		t.Fatal("the pod is admitted")
	}
	if says, own := heard.Refusal(err.Error()); own {
		t.Errorf("heard of %q that another cluster might admit it", says)
	}
}

func TestARefusalByAQuotaIsHeard(t *testing.T) {
	quota := func(name string, hard, used string) corev1.ResourceQuota {
		hold := func(amount string) corev1.ResourceList {
			return corev1.ResourceList{"limits.memory": resource.MustParse(amount)}
		}
		out := corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		if name == "tight" {
			hold = func(amount string) corev1.ResourceList {
				return corev1.ResourceList{"limits.cpu": resource.MustParse(amount)}
			}
		}
		out.Spec.Hard, out.Status.Hard, out.Status.Used = hold(hard), hold(hard), hold(used)
		return out
	}
	for name, quota := range map[string]corev1.ResourceQuota{
		"tight":  quota("tight", "3", "2"),
		"strict": quota("strict", "1Gi", "0"), // what it counts, the pod does not say
	} {
		t.Run(name, func(t *testing.T) {
			_, err := resourcequota.CheckRequest([]corev1.ResourceQuota{quota}, creation(), core.NewPodEvaluator(nil, clock.RealClock{}), nil)
			if err == nil {
				t.Fatal("the pod is admitted")
			}
			says, own := heard.Refusal(err.Error())
			if !heard.ByQuota(err) || !own || heard.Quota(says) != name || heard.ByLimitRange(says) || heard.LacksRight(err) {
				t.Errorf("heard of %q: quota %q, own %t", says, heard.Quota(says), own)
			}
		})
	}
}

func TestRefusalsByWebhooksAreHeard(t *testing.T) {
	for name, err := range map[string]error{
		"one that says no":           webhookerrors.ToStatusErr("policy.example.com", &metav1.Status{Message: "no"}),
		"one that cannot be reached": apierrors.NewInternalError(&webhook.ErrCallingWebhook{WebhookName: "policy.example.com", Reason: errors.New("refused")}),
	} {
		t.Run(name, func(t *testing.T) {
			if says, own := heard.Refusal("Error creating: " + err.Error()); !own || heard.LacksRight(err) {
				t.Errorf("heard of %q that every cluster would refuse it", says)
			}
		})
	}
}

func TestALackOfRightsIsHeard(t *testing.T) {
	err := responsewriters.ForbiddenStatusError(authorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: "syncer"}, Verb: "create", APIGroup: "example.com", Resource: "widgets", Namespace: "shop", ResourceRequest: true,
	}, "")
	if !heard.LacksRight(err) || heard.ByQuota(err) {
		t.Errorf("not heard: %v", err)
	}
}

func TestWhatASchedulerLacksIsHeard(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{"cpu": resource.MustParse("2")},
	}}}}}
	node := framework.NewNodeInfo()
	node.SetNode(&corev1.Node{Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{"cpu": resource.MustParse("1"), "pods": resource.MustParse("0")}}})
	reasons := noderesources.Fits(pod, node, nil, noderesources.ResourceRequestsOptions{})
	if len(reasons) != 2 {
		t.Fatalf("the node lacks %+v, want room for pods and processors", reasons)
	}
	_, missing := corelisters.NewPersistentVolumeClaimLister(cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)).PersistentVolumeClaims("shop").Get("data")
	says := func(reason, preemption string) string {
		fit := &framework.FitError{Pod: pod, NumAllNodes: 3, Diagnosis: framework.Diagnosis{PreFilterMsg: reason, PostFilterMsg: preemption}}
		return fit.Error()
	}
	for name, test := range map[string]struct {
		says        string
		room, claim bool
	}{
		"processors":                    {says: says(reasons[0].Reason, ""), room: true},
		"pods":                          {says: says(reasons[1].Reason, ""), room: true},
		"a claim":                       {says: says(missing.Error(), ""), claim: true},
		"only what preemption could do": {says: says("node(s) had untolerated taint(s)", " preemption: 0/3 nodes are available: "+reasons[0].Reason)},
	} {
		t.Run(name, func(t *testing.T) {
			if room, claim := heard.LacksRoom(test.says), heard.LacksClaim(test.says); room != test.room || claim != test.claim {
				t.Errorf("heard of %q: room %t, claim %t", test.says, room, claim)
			}
		})
	}
}

func TestAServiceWithoutEndpointsIsHeard(t *testing.T) {
	services := cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)
	if err := services.Add(&corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, Ports: []corev1.ServicePort{{Port: 443}}},
	}); err != nil {
		t.Fatal(err)
	}
	_, err := proxy.ResolveEndpoint(corelisters.NewServiceLister(services), nil, "shop", "web", 443)
	if err == nil || !heard.LacksEndpoints(err.Error()) {
		t.Errorf("not heard: %v", err)
	}
}

// chosen is the one endpoint of every Service, with the way there.
type chosen struct {
	at   string
	dial func(ctx context.Context, network, address string) (net.Conn, error)
}

func (c chosen) ResourceLocation(context.Context, string) (*url.URL, http.RoundTripper, error) {
	return &url.URL{Host: c.at}, &http.Transport{DialContext: c.dial, DisableKeepAlives: true}, nil
}

// says takes down the error that a request is answered with.
type says struct{ err error }

func (*says) Object(int, runtime.Object) {}
func (s *says) Error(err error)          { s.err = err }

// throughProxy is how an API server connects that has been told of a proxy, which refuses.
func throughProxy(t *testing.T) func(ctx context.Context, network, address string) (net.Conn, error) {
	t.Helper()
	dir, err := os.MkdirTemp("", "") // not that of the test, whose name may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "proxy")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	refuse := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no such pod", http.StatusBadGateway) })
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: refuse}}
	server.Start()
	t.Cleanup(server.Close)
	selector, err := egressselector.NewEgressSelector(&apiserver.EgressSelectorConfiguration{EgressSelections: []apiserver.EgressSelection{{
		Name: "cluster", Connection: apiserver.Connection{ProxyProtocol: apiserver.ProtocolHTTPConnect, Transport: &apiserver.Transport{UDS: &apiserver.UDSTransport{UDSName: socket}}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	dial, err := selector.Lookup(egressselector.Cluster.AsNetworkContext())
	if err != nil {
		t.Fatal(err)
	}
	return dial
}

func TestAnEndpointThatIsNotReachedIsHeard(t *testing.T) {
	serve := func(answer http.HandlerFunc) string {
		server := httptest.NewServer(answer)
		t.Cleanup(server.Close)
		return server.Listener.Addr().String()
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	slow := func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithDeadline(ctx, time.Now())
		defer cancel()
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	for name, test := range map[string]struct {
		chosen            chosen
		unreached, unsent bool
	}{
		"nobody listens":            {chosen: chosen{at: gone.Listener.Addr().String()}, unreached: true, unsent: true},
		"nobody answers":            {chosen: chosen{at: gone.Listener.Addr().String(), dial: slow}, unreached: true, unsent: true},
		"no proxy leads there":      {chosen: chosen{at: "10.0.0.1:80", dial: throughProxy(t)}, unreached: true, unsent: true},
		"it ends with the request":  {chosen: chosen{at: serve(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })}, unreached: true},
		"it answers":                {chosen: chosen{at: serve(func(http.ResponseWriter, *http.Request) {})}},
		"it answers that it cannot": {chosen: chosen{at: serve(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) })}},
	} {
		t.Run(name, func(t *testing.T) {
			said := &says{}
			handler, err := (&service.ProxyREST{Redirector: test.chosen}).Connect(t.Context(), "web", &api.ServiceProxyOptions{Path: "/"}, said)
			if err != nil {
				t.Fatal(err)
			}
			handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
			message := ""
			if said.err != nil {
				message = said.err.Error()
			}
			if unreached, unsent := heard.Unreached(message); unreached != test.unreached || unsent != test.unsent || unreached && !apierrors.IsServiceUnavailable(said.err) {
				t.Errorf("heard of %q: unreached %t, unsent %t, want %t and %t", message, unreached, unsent, test.unreached, test.unsent)
			}
			if heard.LacksEndpoints(message) {
				t.Errorf("heard of %q that the Service has no endpoints", message)
			}
		})
	}
}

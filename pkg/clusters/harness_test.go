package clusters

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2/ktesting"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	manifoldfake "github.com/manifold-dev/manifold/generated/clientset/versioned/fake"
	"github.com/manifold-dev/manifold/generated/informers/externalversions"
	"github.com/manifold-dev/manifold/pkg/clusters/connection"
)

const token = "good-token"

// below is a physical cluster: an HTTPS server that answers what a session asks.
type below struct {
	server *httptest.Server

	mu     sync.Mutex
	uid    types.UID
	token  string
	readyz int
	nodes  []corev1.Node
	// watches counts those of nodes. failing answers everything with an error, as a load balancer does without a server behind it.
	watches int
	failing bool
	// review answers what the credential may do; nil for a server that cannot tell.
	review *authorizationv1.SubjectRulesReviewStatus
	// next answers who asks for a token. It is honoured from then on, beside the one before.
	next func() (token string, code int)
	also string
	// excess reports whether it may do what nobody needs.
	excess bool
	// halted lets everything wait that comes, until it is closed.
	halted chan struct{}
}

func startBelow(t *testing.T, uid types.UID) *below {
	b := &below{uid: uid, token: token, readyz: http.StatusOK, nodes: []corev1.Node{belowNode("n1"), belowNode("n2")}}
	b.server = httptest.NewUnstartedServer(b)
	b.server.EnableHTTP2 = true
	b.server.StartTLS()
	t.Cleanup(b.close)
	return b
}

// close ends the server and the watches that are under way, which Close alone would wait for.
func (b *below) close() {
	_ = b.server.Listener.Close()
	b.server.CloseClientConnections()
	b.server.Close()
}

func belowNode(name string) corev1.Node {
	node := corev1.Node{}
	node.Name = name
	node.Status.Capacity = resources("cpu", "4", "memory", "8Gi", "pods", "110")
	node.Status.Allocatable = node.Status.Capacity
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	node.Status.NodeInfo.OperatingSystem = "linux"
	return node
}

func (b *below) set(change func(b *below)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(b)
}

func (b *below) kubeconfig() []byte {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: b.server.Certificate().Raw})
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: %q, certificate-authority-data: %s}}]
users: [{name: u, user: {token: %s}}]
`, b.server.URL, base64.StdEncoding.EncodeToString(ca), token)
}

func (b *below) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	uid, want, also, readyz, nodes, review, failing := b.uid, b.token, b.also, b.readyz, b.nodes, b.review, b.failing
	excess, halted := b.excess, b.halted
	b.mu.Unlock()
	if halted != nil {
		select {
		case <-halted:
		case <-r.Context().Done():
			return
		}
	}
	switch {
	case failing:
		w.WriteHeader(http.StatusBadGateway)
	case r.Header.Get("Authorization") != "Bearer "+want && (also == "" || r.Header.Get("Authorization") != "Bearer "+also):
		answer(w, http.StatusUnauthorized, failure(http.StatusUnauthorized, metav1.StatusReasonUnauthorized))
	case r.URL.Path == "/readyz":
		w.WriteHeader(readyz)
	case r.URL.Path == "/version":
		answer(w, http.StatusOK, version.Info{GitVersion: "v1.37.1"})
	case r.URL.Path == "/api/v1/namespaces/kube-system":
		answer(w, http.StatusOK, &corev1.Namespace{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: uid}})
	case r.URL.Path == "/api":
		answer(w, http.StatusOK, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	case r.URL.Path == "/apis":
		answer(w, http.StatusOK, metav1.APIGroupList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroupList"}})
	case r.URL.Path == "/api/v1":
		answer(w, http.StatusOK, metav1.APIResourceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"},
			GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "pods", Kind: "Pod", Namespaced: true}}})
	case r.URL.Path == "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews" && review != nil:
		answer(w, http.StatusCreated, &authorizationv1.SelfSubjectRulesReview{
			TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectRulesReview"}, Status: *review})
	case r.Method == http.MethodPost && r.URL.Path == "/api/v1/namespaces/manifold-system/serviceaccounts/syncer/token":
		b.issue(w)
	case r.URL.Path == "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews":
		answer(w, http.StatusCreated, &authorizationv1.SelfSubjectAccessReview{
			TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"},
			Status:   authorizationv1.SubjectAccessReviewStatus{Allowed: excess}})
	case r.URL.Path != "/api/v1/nodes":
		http.NotFound(w, r)
	case r.URL.Query().Get("sendInitialEvents") != "":
		// A server that does not know streaming lists; the client then falls back to a list and a watch.
		answer(w, http.StatusUnprocessableEntity, failure(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid))
	case r.URL.Query().Get("watch") != "":
		b.set(func(b *below) { b.watches++ })
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	default:
		list := corev1.NodeList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"}, Items: nodes}
		list.ResourceVersion = "1"
		answer(w, http.StatusOK, list)
	}
}

func (b *below) issue(w http.ResponseWriter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	issued, code := b.next()
	if code != http.StatusCreated {
		answer(w, code, failure(int32(code), metav1.StatusReasonForbidden))
		return
	}
	b.also = issued
	answer(w, code, authenticationv1.TokenRequest{
		TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenRequest"}, Status: authenticationv1.TokenRequestStatus{Token: issued},
	})
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

func failure(code int32, reason metav1.StatusReason) metav1.Status {
	return metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: code, Reason: reason}
}

// harness is a logical cluster with a Manager that runs until the test ends.
type harness struct {
	*testing.T
	clock    *testingclock.FakeClock
	client   *fake.Clientset
	manifold *manifoldfake.Clientset
	manager  *Manager
	stop     func() error
}

func startManager(t *testing.T, runner connection.Runner, changes ...func(*Options)) *harness {
	h := &harness{
		T:        t,
		clock:    testingclock.NewFakeClock(noon),
		client:   fake.NewClientset(),
		manifold: manifoldfake.NewClientset(),
	}
	countVersions(&h.manifold.Fake, "clusters")
	watching := &sync.WaitGroup{}
	watching.Add(3)
	announceWatches(&h.client.Fake, h.client.Tracker(), watching, "nodes", "secrets")
	announceWatches(&h.manifold.Fake, h.manifold.Tracker(), watching, "clusters")

	core := informers.NewSharedInformerFactory(h.client, 0)
	ours := externalversions.NewSharedInformerFactory(h.manifold, 0)
	options := Options{
		Client: h.client, Manifold: h.manifold,
		Clusters: ours.Manifold().V1alpha1().Clusters(), Nodes: core.Core().V1().Nodes(),
		Runner: runner, Clock: h.clock, Identity: "test",
	}
	for _, change := range changes {
		change(&options)
	}
	var err error
	h.manager, err = New(options)
	if err != nil {
		t.Fatal(err)
	}
	_, ctx := ktesting.NewTestContext(t)
	ctx, cancel := context.WithCancel(ctx)
	core.StartWithContext(ctx)
	ours.StartWithContext(ctx)
	ended := make(chan error, 1)
	go func() { ended <- h.manager.Run(ctx) }()
	h.stop = sync.OnceValue(func() error {
		cancel()
		core.Shutdown()
		ours.Shutdown()
		return <-ended
	})
	t.Cleanup(func() {
		if err := h.stop(); err != nil {
			t.Errorf("the manager ended with %v", err)
		}
	})
	watching.Wait() // a fake clientset loses what is made between list and watch
	return h
}

// countVersions gives every object that is written the next resource version, as an API server does and the fake does not: whoever
// remembers own writes tells by it what a cache shows.
func countVersions(f *clienttesting.Fake, resource string) {
	var version atomic.Int64
	f.PrependReactor("*", resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
		written, ok := action.(interface{ GetObject() runtime.Object })
		if !ok {
			return false, nil, nil
		}
		object, err := meta.Accessor(written.GetObject())
		if err != nil {
			return false, nil, nil //nolint:nilerr // options of a patch, say, have no version
		}
		object.SetResourceVersion(strconv.FormatInt(version.Add(1), 10))
		return false, nil, nil // on to the tracker
	})
}

// announceWatches marks each of the resources as done in watching once it is first watched.
func announceWatches(f *clienttesting.Fake, tracker clienttesting.ObjectTracker, watching *sync.WaitGroup, names ...string) {
	for _, name := range names {
		once := sync.OnceFunc(watching.Done)
		f.PrependWatchReactor(name, func(action clienttesting.Action) (bool, watch.Interface, error) {
			options := metav1.ListOptions{}
			if a, ok := action.(clienttesting.WatchActionImpl); ok {
				options = a.ListOptions
			}
			w, err := tracker.Watch(action.GetResource(), action.GetNamespace(), options)
			once()
			return true, w, err
		})
	}
}

// join registers a cluster as "manifold cluster join" does.
func (h *harness) join(name string, kubeconfig []byte) {
	h.Helper()
	if kubeconfig != nil {
		h.storeSecret(name, kubeconfig)
	}
	cluster := &v1alpha1.Cluster{}
	cluster.Name, cluster.UID = name, types.UID("object-"+name)
	cluster.Spec.Connection.SecretRef = &v1alpha1.SecretReference{Namespace: v1alpha1.SystemNamespace, Name: "cluster-" + name}
	if _, err := h.manifold.ManifoldV1alpha1().Clusters().Create(h.Context(), cluster, metav1.CreateOptions{}); err != nil {
		h.Fatal(err)
	}
}

func (h *harness) storeSecret(name string, kubeconfig []byte) {
	h.Helper()
	secret := &corev1.Secret{Data: map[string][]byte{"kubeconfig": kubeconfig}}
	secret.Namespace, secret.Name = v1alpha1.SystemNamespace, "cluster-"+name
	secrets := h.client.CoreV1().Secrets(secret.Namespace)
	_, err := secrets.Create(h.Context(), secret, metav1.CreateOptions{})
	if err != nil {
		_, err = secrets.Update(h.Context(), secret, metav1.UpdateOptions{})
	}
	if err != nil {
		h.Fatal(err)
	}
}

func (h *harness) cluster(name string) *v1alpha1.Cluster {
	h.Helper()
	cluster, err := h.manifold.ManifoldV1alpha1().Clusters().Get(h.Context(), name, metav1.GetOptions{})
	if err != nil {
		h.Fatal(err)
	}
	return cluster
}

// eventually waits until the condition holds, while the clock goes on by step at every look.
func (h *harness) eventually(what string, step time.Duration, condition func() bool) {
	h.Helper()
	err := wait.PollUntilContextTimeout(h.Context(), 5*time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) {
		if condition() {
			return true, nil
		}
		h.clock.Step(step)
		return false, nil
	})
	if err != nil {
		h.Fatalf("waited in vain until %s", what)
	}
}

// eventuallyReady waits for this status and reason of the Ready condition, and for words of its message.
func (h *harness) eventuallyReady(name string, step time.Duration, status metav1.ConditionStatus, reason, words string) {
	h.Helper()
	h.eventually(fmt.Sprintf("%s is %s %s %q", name, status, reason, words), step, func() bool {
		ready := meta.FindStatusCondition(h.cluster(name).Status.Conditions, v1alpha1.ClusterReady)
		return ready != nil && ready.Status == status && ready.Reason == reason && strings.Contains(ready.Message, words)
	})
}

// statusWrites counts the writes of status so far.
func (h *harness) statusWrites() int {
	count := 0
	for _, action := range h.manifold.Actions() {
		if action.GetVerb() == "update" && action.GetSubresource() == "status" {
			count++
		}
	}
	return count
}

// syncer is a Runner that knows the pods of its cluster at once.
type syncer struct {
	mu      sync.Mutex
	running map[string]*connection.Connection
	starts  int
	fail    error // ends the next run
	waits   bool  // the next run waits for what it may not read
}

func newSyncer() *syncer { return &syncer{running: map[string]*connection.Connection{}} }

func (s *syncer) Run(ctx context.Context, c *connection.Connection) error {
	s.mu.Lock()
	s.starts++
	fail := s.fail
	waits := s.waits
	s.fail, s.waits = nil, false
	if fail == nil && !waits {
		s.running[c.Name] = c
	}
	s.mu.Unlock()
	if fail != nil {
		return fail
	}
	if waits {
		<-ctx.Done()
		return ctx.Err()
	}
	c.Usage.PodChanged(types.NamespacedName{Namespace: "shop", Name: "web"}, resources("cpu", "1"), 0, true)
	c.Usage.Synced()
	<-ctx.Done()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, c.Name)
	return ctx.Err()
}

func (s *syncer) connection(name string) *connection.Connection {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running[name]
}

// listenAgain starts a closed cluster at its old address, with its old certificate.
func listenAgain(t *testing.T, b *below, address string) {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	b.server = &httptest.Server{Listener: listener, EnableHTTP2: true, Config: &http.Server{Handler: b}}
	b.server.StartTLS()
}

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// resources builds a resource list from name and quantity in turn.
func resources(pairs ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return l
}

package metrics

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	client "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	listers "github.com/manifold-dev/manifold/generated/listers/manifold/v1alpha1"
)

// metricsAPI is the metrics API of a cluster, as far as its API server is concerned.
type metricsAPI struct {
	// status is what every request gets instead of an answer.
	status int
	// nodes and pods are the items of the answers.
	nodes, pods []string
	asked       []string
}

func (m *metricsAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.asked = append(m.asked, r.URL.String())
	w.Header().Set("Content-Type", "application/json")
	if m.status != 0 {
		reason := map[int]metav1.StatusReason{
			http.StatusNotFound: metav1.StatusReasonNotFound, http.StatusForbidden: metav1.StatusReasonForbidden,
			http.StatusServiceUnavailable: metav1.StatusReasonServiceUnavailable,
		}[m.status]
		w.WriteHeader(m.status)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(m.status), Reason: reason,
			Message: "metrics-server is gone",
		})
		return
	}
	kind, items := "PodMetricsList", m.pods
	if strings.HasSuffix(r.URL.Path, "/nodes") {
		kind, items = "NodeMetricsList", m.nodes
	}
	fmt.Fprintf(w, `{"apiVersion":"metrics.k8s.io/v1beta1","kind":%q,"items":[%s]}`, kind, strings.Join(items, ","))
}

// nodeItem and podItem are what metrics-server says of a node, and of a pod with one container.
func nodeItem(name, at, cpu, memory string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q},"timestamp":%q,"window":"15s","usage":{"cpu":%q,"memory":%q}}`, name, at, cpu, memory)
}

func podItem(namespace, name, cpu string) string {
	return fmt.Sprintf(`{"metadata":{"namespace":%q,"name":%q},"timestamp":"2026-11-20T12:00:00Z","window":"15s",`+
		`"containers":[{"name":"web","usage":{"cpu":%q,"memory":"10Mi"}}]}`, namespace, name, cpu)
}

// world is a logical cluster with metrics APIs behind it.
type world struct {
	apis    map[string]*metricsAPI
	silent  map[string]string
	nodes   []*corev1.Node
	pods    []*corev1.Pod
	unready bool
}

func mirror(cluster, namespace, name string, labels map[string]string) *corev1.Pod {
	return annotated(cluster, namespace, name, labels, map[string]string{v1alpha1.AnnotationCluster: cluster})
}

func annotated(nodeName, namespace, name string, labels, annotations map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels, Annotations: annotations},
		Spec:       corev1.PodSpec{NodeName: nodeName},
	}
}

func node(cluster string, labels map[string]string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: cluster, Labels: map[string]string{"manifold.dev/cluster": cluster}}}
	for key, value := range labels {
		n.Labels[key] = value
	}
	return n
}

func (w world) sources(t *testing.T) Sources {
	t.Helper()
	byNamespace := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	clusters := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	nodes, pods := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{}), cache.NewIndexer(cache.MetaNamespaceKeyFunc, byNamespace)
	for name, message := range w.silent {
		add(t, clusters, &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1alpha1.ClusterStatus{
			Conditions: []metav1.Condition{{Type: v1alpha1.ClusterReady, Status: metav1.ConditionUnknown, Message: message}},
		}})
	}
	for _, n := range w.nodes {
		add(t, nodes, n)
	}
	for _, p := range w.pods {
		add(t, pods, p)
	}
	return Sources{
		Clusters: listers.NewClusterLister(clusters), Nodes: corelisters.NewNodeLister(nodes), Pods: corelisters.NewPodLister(pods),
		Synced:  func() bool { return !w.unready },
		Connect: w.connect(t),
	}
}

func add(t *testing.T, store cache.Store, object any) {
	t.Helper()
	if err := store.Add(object); err != nil {
		t.Fatal(err)
	}
}

func (w world) connect(t *testing.T) func(string) (client.MetricsV1beta1Interface, error) {
	return func(cluster string) (client.MetricsV1beta1Interface, error) {
		api, ok := w.apis[cluster]
		if !ok {
			return nil, fmt.Errorf("no connection to cluster %q: it has not joined", cluster)
		}
		server := httptest.NewServer(api)
		t.Cleanup(server.Close)
		return client.NewForConfig(&rest.Config{Host: server.URL})
	}
}

// warnings records what a client is warned of.
type warnings struct{ texts []string }

func (w *warnings) AddWarning(_, text string) { w.texts = append(w.texts, text) }

func options(t *testing.T, labelSelector, fieldSelector string) *metainternalversion.ListOptions {
	t.Helper()
	o := &metainternalversion.ListOptions{}
	var err error
	if o.LabelSelector, err = labels.Parse(labelSelector); err != nil {
		t.Fatal(err)
	}
	if o.FieldSelector, err = fields.ParseSelector(fieldSelector); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestPods(t *testing.T) {
	web := map[string]string{"app": "web", "pod-template-hash": "above"}
	db := map[string]string{"app": "db"}
	two := func() world {
		return world{
			apis: map[string]*metricsAPI{
				"east": {pods: []string{podItem("shop", "web-1", "100m"), podItem("shop", "db-1", "1m"), podItem("shop", "stranger", "5"), podItem("blog", "web-1", "3m")}},
				"west": {pods: []string{podItem("shop", "web-2", "200m"), podItem("shop", "web-1", "7")}},
			},
			pods: []*corev1.Pod{
				mirror("west", "shop", "web-2", web), mirror("east", "shop", "web-1", web), mirror("east", "shop", "db-1", db),
				mirror("east", "blog", "web-1", web), annotated("", "shop", "waiting", web, nil),
			},
		}
	}
	with := func(change func(*world)) world { w := two(); change(&w); return w }

	for name, test := range map[string]struct {
		world          world
		namespace      string
		labels, fields string
		want           []string
		wantWarnings   []string
		wantError      string
		// wantAsked are the requests to each cluster.
		wantAsked map[string][]string
	}{
		"a namespace's pods come from all clusters, ordered, without strangers and namesakes elsewhere": {
			world: two(), namespace: "shop", want: []string{"shop/db-1=1m", "shop/web-1=100m", "shop/web-2=200m"},
			wantAsked: map[string][]string{
				"east": {"/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods"}, "west": {"/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods"},
			},
		},
		"pods of all namespaces take one request to each cluster": {
			world: two(), want: []string{"blog/web-1=3m", "shop/db-1=1m", "shop/web-1=100m", "shop/web-2=200m"},
			wantAsked: map[string][]string{"east": {"/apis/metrics.k8s.io/v1beta1/pods"}, "west": {"/apis/metrics.k8s.io/v1beta1/pods"}},
		},
		"labels select mirrors, and a cluster is asked by those that its pods have too": {
			world: two(), namespace: "shop", labels: "app=db,pod-template-hash!=above", want: []string{"shop/db-1=1m"},
			wantAsked: map[string][]string{"east": {"/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods?labelSelector=app%3Ddb"}},
		},
		"fields select by name": {
			world: two(), namespace: "shop", fields: "metadata.name=web-2", want: []string{"shop/web-2=200m"},
			wantAsked: map[string][]string{"west": {"/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods?fieldSelector=metadata.name%3Dweb-2"}},
		},
		"a pod that a user made and that a cluster runs is one of them, one that a user has put on a node is not": {
			world: with(func(w *world) {
				w.pods = []*corev1.Pod{
					annotated("east", "shop", "web-1", web, map[string]string{v1alpha1.AnnotationPodUID: "below"}),
					annotated("east", "shop", "stranger", web, map[string]string{v1alpha1.AnnotationPlacement: `{"east":{"replicas":1}}`}),
					annotated("east", "shop", "db-1", web, nil),
				}
			}), namespace: "shop", want: []string{"shop/web-1=100m"},
		},
		"no pods is an answer that needs no cluster": {
			world: two(), namespace: "empty", wantAsked: map[string][]string{},
		},
		"a cluster without metrics is left out with a warning": {
			world: with(func(w *world) { w.apis["west"].status = http.StatusNotFound }), namespace: "shop",
			want:         []string{"shop/db-1=1m", "shop/web-1=100m"},
			wantWarnings: []string{`no metrics of cluster "west": it does not serve metrics.k8s.io; install metrics-server in it`},
		},
		"a cluster that has not renewed its rights is left out with the command that does": {
			world: with(func(w *world) { w.apis["west"].status = http.StatusForbidden }), namespace: "shop",
			want:         []string{"shop/db-1=1m", "shop/web-1=100m"},
			wantWarnings: []string{`no metrics of cluster "west": Manifold may not read its metrics; run "manifold cluster join west" again`},
		},
		"a silent cluster is not asked": {
			world: with(func(w *world) { w.silent = map[string]string{"east": "nothing was heard for 40s"} }), namespace: "shop",
			want: []string{"shop/web-2=200m"}, wantWarnings: []string{`no metrics of cluster "east": nothing was heard for 40s`},
			wantAsked: map[string][]string{"west": {"/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods"}},
		},
		"a cluster that none of the pods are in is not missed": {
			world: with(func(w *world) { w.apis["west"].status = http.StatusNotFound }), namespace: "blog", want: []string{"blog/web-1=3m"},
		},
		"no cluster can say": {
			world: with(func(w *world) { delete(w.apis, "east"); w.apis["west"].status = http.StatusServiceUnavailable }), namespace: "shop",
			wantError: `no cluster has metrics: cluster "east": no connection to cluster "east": it has not joined; ` +
				`cluster "west": its metrics API does not work, see APIService v1beta1.metrics.k8s.io there (metrics-server is gone)`,
		},
		"nothing is said before all is known": {
			world: with(func(w *world) { w.unready = true }), namespace: "shop", wantError: "the logical cluster is being read",
		},
	} {
		t.Run(name, func(t *testing.T) {
			told := &warnings{}
			ctx := warning.WithWarningRecorder(request.WithNamespace(t.Context(), test.namespace), told)
			list, err := (&podREST{sources: test.world.sources(t)}).list(ctx, options(t, test.labels, test.fields))
			if checkUnavailable(t, err, test.wantError); err != nil {
				return
			}
			var got []string
			for _, m := range list.Items {
				got = append(got, fmt.Sprintf("%s/%s=%s", m.Namespace, m.Name, m.Containers[0].Usage.Cpu()))
				if m.Labels["app"] == "" {
					t.Errorf("%s has labels %v, want those of its mirror", m.Name, m.Labels)
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
			checkWarnings(t, told.texts, test.wantWarnings)
			for cluster, api := range test.world.apis {
				if test.wantAsked != nil && !slices.Equal(api.asked, test.wantAsked[cluster]) {
					t.Errorf("cluster %s was asked for %v, want %v", cluster, api.asked, test.wantAsked[cluster])
				}
			}
		})
	}
}

func TestOnePod(t *testing.T) {
	sources := world{
		apis: map[string]*metricsAPI{"east": {pods: []string{podItem("shop", "web-1", "100m"), podItem("shop", "stranger", "1")}}},
		pods: []*corev1.Pod{mirror("east", "shop", "web-1", nil), mirror("east", "shop", "fresh", nil)},
	}.sources(t)
	pods := &podREST{sources: sources}
	ctx := request.WithNamespace(t.Context(), "shop")
	if _, err := pods.Get(ctx, "web-1", nil); err != nil {
		t.Error(err)
	}
	for name, why := range map[string]string{"fresh": "it has no metrics yet", "stranger": "it is not the logical cluster's", "nobody": "there is none"} {
		if _, err := pods.Get(ctx, name, nil); !apierrors.IsNotFound(err) {
			t.Errorf("pod %s: %v, want not found: %s", name, err, why)
		}
	}
}

func TestNodes(t *testing.T) {
	const early, late = "2026-11-20T12:00:00Z", "2026-11-20T12:00:09Z"
	two := world{
		apis: map[string]*metricsAPI{
			"east": {nodes: []string{nodeItem("east-0", late, "1500m", "1Gi"), nodeItem("east-1", early, "700m", "512Mi")}},
			"west": {nodes: []string{nodeItem("west-0", late, "250m", "2Gi")}},
		},
		nodes: []*corev1.Node{node("west", map[string]string{"tier": "edge"}), node("east", nil), {ObjectMeta: metav1.ObjectMeta{Name: "foreign"}}},
	}
	for name, test := range map[string]struct {
		world          world
		labels, fields string
		want           []string
		wantWarnings   []string
		wantError      string
	}{
		"a node stands for all nodes of its cluster, as of the oldest sample": {
			world: two, want: []string{"east cpu=2200m memory=1536Mi at " + early, "west cpu=250m memory=2Gi at " + late},
		},
		"labels select": {world: two, labels: "tier=edge", want: []string{"west cpu=250m memory=2Gi at " + late}},
		"fields select": {world: two, fields: "metadata.name=west", want: []string{"west cpu=250m memory=2Gi at " + late}},
		"a cluster whose metrics API has just started is missing": {
			world:        world{apis: map[string]*metricsAPI{"east": {}, "west": two.apis["west"]}, nodes: two.nodes},
			want:         []string{"west cpu=250m memory=2Gi at " + late},
			wantWarnings: []string{`no metrics of cluster "east": its metrics API knows none of its nodes yet`},
		},
		"no cluster can say": {
			world: world{apis: map[string]*metricsAPI{"east": {}, "west": {status: http.StatusNotFound}}, nodes: two.nodes},
			wantError: `no cluster has metrics: cluster "east": its metrics API knows none of its nodes yet, try again in a minute; ` +
				`cluster "west": it does not serve metrics.k8s.io; install metrics-server in it`,
		},
		"a logical cluster without clusters has no nodes": {world: world{}},
	} {
		t.Run(name, func(t *testing.T) {
			told := &warnings{}
			ctx := warning.WithWarningRecorder(t.Context(), told)
			list, err := (&nodeREST{sources: test.world.sources(t)}).list(ctx, options(t, test.labels, test.fields))
			if checkUnavailable(t, err, test.wantError); err != nil {
				return
			}
			var got []string
			for _, m := range list.Items {
				got = append(got, fmt.Sprintf("%s cpu=%s memory=%s at %s", m.Name, m.Usage.Cpu(), m.Usage.Memory(), m.Timestamp.UTC().Format("2006-01-02T15:04:05Z")))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
			checkWarnings(t, told.texts, test.wantWarnings)
		})
	}
}

func TestOneNode(t *testing.T) {
	nodes := &nodeREST{sources: world{
		apis:  map[string]*metricsAPI{"east": {nodes: []string{nodeItem("east-0", "2026-11-20T12:00:00Z", "1", "1Gi")}}},
		nodes: []*corev1.Node{node("east", nil)},
	}.sources(t)}
	if _, err := nodes.Get(t.Context(), "east", nil); err != nil {
		t.Error(err)
	}
	if _, err := nodes.Get(t.Context(), "east-0", nil); !apierrors.IsNotFound(err) {
		t.Errorf("a cluster's own node: %v, want not found: it is none of the logical cluster's", err)
	}
}

// A cluster that keeps connections open and says nothing must not hold up the others for ever.
func TestAHaltedClusterIsLeftOut(t *testing.T) {
	sources := world{apis: map[string]*metricsAPI{"east": {}, "west": {}}}.sources(t)
	answers, absent := ask(t.Context(), sources, []string{"east", "west"}, func(ctx context.Context, cluster client.MetricsV1beta1Interface) (string, error) {
		return "", context.DeadlineExceeded
	})
	if len(answers) != 0 || len(absent) != 2 || absent[0].String() != `cluster "east": it has not answered within 5s` {
		t.Errorf("answers %v, missing %v", answers, absent)
	}
}

func checkUnavailable(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case err == nil && want != "":
		t.Fatalf("no error, want %q", want)
	case err != nil && (want == "" || !apierrors.IsServiceUnavailable(err) || !strings.Contains(err.Error(), want)):
		t.Fatalf("error %v, want a service that is unavailable with %q", err, want)
	}
}

func checkWarnings(t *testing.T, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("warnings %q, want %q", got, want)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("warning %q, want it to begin with %q", got[i], want[i])
		}
	}
}

package workloads

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	deploymentstrategy "k8s.io/kubernetes/pkg/registry/apps/deployment"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	manifoldfake "github.com/manifold-dev/manifold/generated/clientset/versioned/fake"
	"github.com/manifold-dev/manifold/generated/informers/externalversions"
	"github.com/manifold-dev/manifold/pkg/placement/engine"
)

const (
	// benchClusters is how many clusters are known when a Deployment is created.
	benchClusters = 1000
	// benchMoving is in how many of them pods come or go between one creation and the next.
	benchMoving = 10
)

// BenchmarkAdmission creates Deployments as far as we have a part in it: everything between the request and storage that a stock API
// server does not do, and its own defaulting of fields. "make bench ARGS=-placement" prints what it measures.
func BenchmarkAdmission(b *testing.B) {
	inUse := make([]byte, 100<<20) // a server has that at least, so that it seldom collects garbage
	defer runtime.KeepAlive(inUse)
	for _, pin := range []string{"", "*"} {
		b.Run(map[string]string{"": "kept together", "*": "divided over all"}[pin], func(b *testing.B) {
			e, requests := benchEngine(b, pin)
			s := placedStrategy{Strategy: deploymentstrategy.Strategy, reader: deployments, placer: e}
			ctx := request.WithUser(request.WithNamespace(b.Context(), "shop"), &user.DefaultInfo{Name: "alice"})
			var took []time.Duration
			var mallocs uint64
			var before, after runtime.MemStats
			for b.Loop() {
				i := len(took)
				requests.move(i)
				d := deployment(2000)
				d.Name = fmt.Sprintf("web-%d", i)
				runtime.ReadMemStats(&before)
				start := time.Now()
				s.PrepareForCreate(ctx, d)
				took = append(took, time.Since(start))
				runtime.ReadMemStats(&after)
				mallocs += after.Mallocs - before.Mallocs
				if d.Annotations[v1alpha1.AnnotationPlacement] == "" {
					b.Fatal("not placed")
				}
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1000, "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1000, "p99-µs")
			b.ReportMetric(float64(mallocs)/float64(len(took))/benchClusters, "allocs/cluster")
		})
	}
}

// liveRequests are what the pods of each cluster request.
type liveRequests map[string]corev1.ResourceList

func (r liveRequests) of(cluster string) (corev1.ResourceList, bool) {
	list, known := r[cluster]
	return list, known
}

// move lets pods come in some clusters.
func (r liveRequests) move(round int) {
	for i := range benchMoving {
		r[fmt.Sprintf("cluster-%d", (round*benchMoving+i)%benchClusters)] = corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(int64(round%7), resource.DecimalSI)}
	}
}

// benchEngine is an engine with many clusters in its caches.
func benchEngine(b *testing.B, pin string) (*engine.Engine, liveRequests) {
	var clusters []apiruntime.Object
	for i := range benchClusters {
		c := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("cluster-%d", i), Labels: map[string]string{"stage": "live"}}}
		c.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ClusterReady, Status: metav1.ConditionTrue}}
		c.Status.Allocatable = corev1.ResourceList{
			corev1.ResourceCPU:    *resource.NewQuantity(int64(50+i%100), resource.DecimalSI),
			corev1.ResourceMemory: resource.MustParse("1Ti"), corev1.ResourcePods: resource.MustParse("5000"),
		}
		c.Status.Kinds = []string{"Deployment.v1.apps", "Pod.v1"}
		clusters = append(clusters, c)
	}
	together := &v1alpha1.ClusterPlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	together.Spec.KeepTogether = true
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	if pin != "" {
		namespace.Annotations = map[string]string{v1alpha1.AnnotationClusters: pin}
	}
	kube := informers.NewSharedInformerFactory(fake.NewClientset(namespace), 0)
	manifold := externalversions.NewSharedInformerFactory(manifoldfake.NewClientset(append(clusters, together)...), 0)
	requests := liveRequests{}
	e, err := engine.New(engine.Options{Kube: kube, Manifold: manifold, Requested: requests.of})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	b.Cleanup(func() { kube.Shutdown(); manifold.Shutdown() })
	b.Cleanup(cancel)
	kube.StartWithContext(ctx)
	manifold.StartWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), e.HasSynced) {
		b.Fatal("the caches do not sync")
	}
	return e, requests
}

package syncer

import (
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/clusters/capacity"
	"github.com/manifold-dev/manifold/pkg/clusters/connection"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/moves"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/planning"
	"github.com/manifold-dev/manifold/pkg/syncer/states"
)

const logicalCluster = "logical"

var (
	revisionResource = appsv1.SchemeGroupVersion.WithResource("controllerrevisions")
)

// newUpstream is a logical cluster whose caches hold the objects. Its watches do not run: tests say what happens.
func newUpstream(t *testing.T, objects ...projection.Object) *Upstream {
	t.Helper()
	return newUpstreamOf(t, informers.NewSharedInformerFactory(fake.NewClientset(), 0), objects...)
}

// newUpstreamOf is newUpstream over the informers of a factory.
func newUpstreamOf(t *testing.T, factory informers.SharedInformerFactory, objects ...projection.Object) *Upstream {
	t.Helper()
	u, err := NewUpstream(factory, UpstreamOptions{})
	if err != nil {
		t.Fatal(err)
	}
	u.LogicalCluster = logicalCluster
	stores := map[schema.GroupVersionResource]cache.Store{
		podResource: u.Stores[podResource],
		appsv1.SchemeGroupVersion.WithResource("replicasets"): factory.Apps().V1().ReplicaSets().Informer().GetStore(),
	}
	for resource, store := range u.Stores {
		stores[resource] = store
	}
	hold(t, stores, objects)
	u.Fleets.Leaving = func(cluster string) (bool, string) {
		s, running := u.Syncer(cluster)
		if !running {
			return false, ""
		}
		return s.Leaving(cluster)
	}
	return u
}

// testSyncer is a syncer with its cluster. What it tells others is kept.
type testSyncer struct {
	*Syncer
	above   *fake.Clientset
	changes []change
	mirrors []cache.ObjectName
	events  *record.FakeRecorder
}

// reaches has the syncer write to a cluster by this client from now on.
func (s *testSyncer) reaches(client kubernetes.Interface) {
	s.client, s.lacking.Client, s.strangers.Client = client, client, client
}

// next is what the cluster is to hold now of a workload.
func (s *testSyncer) next(above projection.Object) moves.Step {
	kind, _ := projection.KindOf(above)
	return s.Upstream.Fleets.Next(identity.Workload{Kind: kind, Object: above}, s.cluster)
}

// desired is what the cluster is to hold of an object, and what that waits for.
func (s *testSyncer) desired(kind projection.Kind, above, live projection.Object) (projection.Object, states.Wait, error) {
	return s.planner.Desired(s.at(planning.Look{Kind: kind, Above: above, Live: live}))
}

// seen drops what is reserved for the cluster, if its watch showing live settles that.
func (s *testSyncer) seen(t *testing.T, kind projection.Kind, key identity.Key, live projection.Object) {
	t.Helper()
	of, err := s.reservations.look(t.Context(), kind, key, live)
	if err != nil {
		t.Fatal(err)
	}
	if of == planning.Over {
		s.reservations.release(key)
	}
}

type change struct {
	key    identity.Key
	urgent bool
}

// attach makes the syncer of a cluster that holds the objects, which it was given by this syncer, and makes it known to u.
func attach(t *testing.T, u *Upstream, cluster string, objects ...projection.Object) *testSyncer {
	t.Helper()
	s := attachFound(t, u, cluster, objects...)
	for _, obj := range objects {
		origin, owned := projection.OriginOf(obj)
		if kind, ok := projection.KindOf(obj); ok && kind.Workload && owned {
			demand := kind.Demand(obj)
			s.states.Set(identity.KeyOf(kind, obj), states.State{
				UID: origin.UID, Hash: projection.HashOf(obj), Told: demand.Replicas, First: demand.First, Most: demand.Replicas + 100,
			})
		}
	}
	return s
}

// attachFound is attach for a cluster of which this syncer knows nothing: whoever administers it has put there what it holds.
func attachFound(t *testing.T, u *Upstream, cluster string, objects ...projection.Object) *testSyncer {
	t.Helper()
	s := &testSyncer{above: fake.NewClientset(), events: record.NewFakeRecorder(100)}
	var err error
	s.Syncer, err = newSyncer(Options{
		Upstream: u,
		Client:   func(string) (kubernetes.Interface, error) { return s.above, nil },
		Recorder: s.events,
		Changed:  func(_ string, key identity.Key, urgent bool) { s.changes = append(s.changes, change{key, urgent}) },
		Mirror:   func(_ string, name cache.ObjectName) { s.mirrors = append(s.mirrors, name) },
		Leaving:  func(string) (bool, string) { return false, "" },
	}, &connection.Connection{Name: cluster, Client: fake.NewClientset(), Usage: capacity.NewUsage(nil)})
	if err != nil {
		t.Fatal(err)
	}
	stores := map[schema.GroupVersionResource]cache.Store{}
	for resource, store := range s.below.Stores {
		stores[resource] = store
	}
	// What is not ours is seen of these as well.
	stores[revisionResource] = s.below.Revisions.GetStore()
	stores[podResource] = s.below.Pods.GetStore()
	stores[claimResource] = s.below.Claims.GetStore()
	stores[appsv1.SchemeGroupVersion.WithResource("replicasets")] = s.below.ReplicaSets.GetStore()
	hold(t, stores, objects)
	for _, obj := range objects {
		store, owned := s.below.Stores[resourceOf(obj)]
		if _, ours := projection.OriginOf(obj); owned && ours {
			hold(t, map[schema.GroupVersionResource]cache.Store{resourceOf(obj): store}, []projection.Object{obj})
		}
	}
	s.synced.Store(true)
	u.attach(s.Syncer)
	t.Cleanup(func() {
		s.queue.ShutDown()
		s.pods.Queue.ShutDown()
		s.claims.Queue.ShutDown()
	})
	return s
}

func hold(t *testing.T, stores map[schema.GroupVersionResource]cache.Store, objects []projection.Object) {
	t.Helper()
	for _, obj := range objects {
		if err := stores[resourceOf(obj)].Add(obj); err != nil {
			t.Fatal(err)
		}
	}
}

func resourceOf(obj projection.Object) schema.GroupVersionResource {
	switch obj.(type) {
	case *appsv1.ReplicaSet:
		return appsv1.SchemeGroupVersion.WithResource("replicasets")
	case *appsv1.StatefulSet:
		return statefulSetResource
	case *appsv1.DaemonSet:
		return appsv1.SchemeGroupVersion.WithResource("daemonsets")
	case *corev1.ReplicationController:
		return corev1.SchemeGroupVersion.WithResource("replicationcontrollers")
	case *appsv1.ControllerRevision:
		return revisionResource
	case *batchv1.Job:
		return jobResource
	case *corev1.Pod:
		return corev1.SchemeGroupVersion.WithResource("pods")
	}
	kind, ok := projection.KindOf(obj)
	if !ok {
		panic(fmt.Sprintf("no kind for %T", obj))
	}
	return kind.Resource
}

// enqueued takes what waits in the syncer's queue of objects, sorted.
func (s *testSyncer) enqueued() []string {
	var out []string
	for s.queue.Len() > 0 {
		key, _ := s.queue.Get()
		out = append(out, key.String())
		s.queue.Done(key)
	}
	slices.Sort(out)
	return out
}

func objectMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-of-" + name), Generation: 1, ResourceVersion: "1"}
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name)}}
}

// deployment is one of the logical cluster whose pods are labelled app=<name>. Decision is the annotation.
func deployment(name, decision string, change ...func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: objectMeta(name)}
	if decision != "" {
		d.Annotations = map[string]string{v1alpha1.AnnotationPlacement: decision}
	}
	d.Spec.Template.Labels = map[string]string{"app": name}
	for _, c := range change {
		c(d)
	}
	return d
}

func usingSecret(secret string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Volumes = append(d.Spec.Template.Spec.Volumes,
			corev1.Volume{Name: secret, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret}}})
	}
}

func runningAs(account string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.Template.Spec.ServiceAccountName = account }
}

func account(name string, pullSecrets ...string) *corev1.ServiceAccount {
	a := &corev1.ServiceAccount{ObjectMeta: objectMeta(name)}
	for _, secret := range pullSecrets {
		a.ImagePullSecrets = append(a.ImagePullSecrets, corev1.LocalObjectReference{Name: secret})
	}
	return a
}

func service(name string, selector map[string]string) *corev1.Service {
	return &corev1.Service{ObjectMeta: objectMeta(name), Spec: corev1.ServiceSpec{Selector: selector}}
}

// ingress leads to a Service, with a certificate in the Secret NAME-tls.
func ingress(name, to string) *networkingv1.Ingress {
	return &networkingv1.Ingress{ObjectMeta: objectMeta(name), Spec: networkingv1.IngressSpec{
		DefaultBackend: &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: to}},
		TLS:            []networkingv1.IngressTLS{{SecretName: name + "-tls"}},
	}}
}

func networkPolicy(name string, podLabels map[string]string) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{ObjectMeta: objectMeta(name), Spec: networkingv1.NetworkPolicySpec{
		PodSelector: metav1.LabelSelector{MatchLabels: podLabels},
	}}
}

func secret(name string) *corev1.Secret { return &corev1.Secret{ObjectMeta: objectMeta(name)} }

// projected is a Deployment as a cluster holds it for the one above, with so many replicas of which so many are available.
func projected(above *appsv1.Deployment, replicas, available int32) *appsv1.Deployment {
	d := above.DeepCopy()
	d.UID, d.Generation = above.UID+"-below", 1
	d.Labels = map[string]string{v1alpha1.LabelLogicalCluster: logicalCluster}
	d.Annotations = map[string]string{
		v1alpha1.AnnotationNamespace: above.Namespace, v1alpha1.AnnotationName: above.Name, v1alpha1.AnnotationUID: string(above.UID),
		v1alpha1.AnnotationProjection: "hash",
	}
	d.Spec.Replicas = ptr.To(replicas)
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: replicas, UpdatedReplicas: replicas, ReadyReplicas: available, AvailableReplicas: available}
	return d
}

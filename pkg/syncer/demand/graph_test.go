package demand

import (
	"maps"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/logical"
)

// clusters hold objects by their names, which count as those of the logical cluster or do not.
type clusters map[string]struct {
	objects map[identity.Key]projection.Object
	strange bool
}

func (c clusters) Names() []string { return slices.Collect(maps.Keys(c)) }

func (c clusters) Held(key identity.Key, cluster string) projection.Object {
	return c[cluster].objects[key]
}

func (c clusters) Projected(kind projection.Kind, above projection.Object, cluster string) projection.Object {
	if c[cluster].strange {
		return nil
	}
	return c.Held(identity.KeyOf(kind, above), cluster)
}

// graphOf is the graph of a logical cluster that has these objects.
func graphOf(t *testing.T, in clusters, objects ...projection.Object) *Graph {
	t.Helper()
	caches, err := logical.New(informers.NewSharedInformerFactory(fake.NewClientset(), 0), logical.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, obj := range objects {
		kind, _ := projection.KindOf(obj)
		if err := caches.Stores[kind.Resource].Add(obj); err != nil {
			t.Fatal(err)
		}
	}
	return &Graph{Cluster: caches, Clusters: in}
}

// set is a StatefulSet with a claim "data" for each of its replicas.
func set(replicas int32, decision string) *appsv1.StatefulSet {
	s := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "u"}}
	s.Annotations = map[string]string{v1alpha1.AnnotationPlacement: decision}
	s.Spec.Replicas = &replicas
	s.Spec.Template.Spec.PriorityClassName = "high"
	s.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
	return s
}

func TestWhatAClusterStillRunsIsNeededThere(t *testing.T) {
	key := identity.Key{Resource: identity.StatefulSets, Namespace: "shop", Name: "db"}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data-db-1"}}
	for name, test := range map[string]struct {
		decision string
		held     projection.Object // in east
		strange  bool
		claim    bool // whether the claim of db-1 is wanted in east, and the PriorityClass is named there
		priority bool
	}{
		"where it is to run":                             {decision: `{"east":{"replicas":2}}`, claim: true, priority: true},
		"but not the claim of an ordinal of another one": {decision: `{"east":{"replicas":1}}`, priority: true},
		"nor where it is not":                            {decision: `{"west":{"replicas":2}}`},
		"where it runs although it is to run elsewhere":  {decision: `{"west":{"replicas":2}}`, held: set(2, ""), claim: true, priority: true},
		"but for ordinals that are gone from there":      {decision: `{"west":{"replicas":2}}`, held: set(1, ""), priority: true},
		"but not what a cluster has of nobody's":         {decision: `{"west":{"replicas":2}}`, held: set(2, ""), strange: true},
	} {
		t.Run(name, func(t *testing.T) {
			in := clusters{"east": {strange: test.strange, objects: map[identity.Key]projection.Object{}}}
			if test.held != nil {
				in["east"].objects[key] = test.held
			}
			g := graphOf(t, in, set(2, test.decision), claim)
			kind, _ := projection.ForResource(identity.Claims)
			if got := g.Wanted(kind, claim, "east"); got != test.claim {
				t.Errorf("the claim is wanted: %t, want %t", got, test.claim)
			}
			if got := g.AnyIn(identity.Claims, "shop", "east"); got != test.claim {
				t.Errorf("some claim is wanted: %t, want %t", got, test.claim)
			}
			if got := g.NamesPriority("high", "east"); got != test.priority {
				t.Errorf("the PriorityClass is named: %t, want %t", got, test.priority)
			}
			if g.NamesPriority("low", "east") {
				t.Error("a PriorityClass is named that no workload names")
			}
		})
	}
}

func TestWhatPodsOfAnEarlierTemplateUse(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", Labels: map[string]string{"app": "web"}}}
	pod.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "old"}}}}
	service := func(name, app string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: corev1.ServiceSpec{Selector: map[string]string{"app": app}}}
	}
	pods, _ := projection.ForResource(identity.Pods)
	var got []string
	for _, key := range graphOf(t, nil, service("web", "web"), service("api", "api")).UsedBy(pods, pod) {
		got = append(got, key.String())
	}
	slices.Sort(got)
	if want := []string{"secrets shop/old", "serviceaccounts shop/default", "services shop/web"}; !slices.Equal(got, want) {
		t.Errorf("they use %v, want %v", got, want)
	}
}

package explain

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned/fake"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/moves"
	"github.com/manifold-dev/manifold/pkg/placement"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// now is the time at which everything here is looked at.
var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func web(replicas int32, annotations map[string]string) *appsv1.Deployment {
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "web", Annotations: annotations},
		Spec: appsv1.DeploymentSpec{Replicas: ptr.To(replicas), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
			}}},
		}}},
	}
}

func other(name, namespace string, decision placement.Decision) appsv1.Deployment {
	d := *web(1, map[string]string{manifoldv1alpha1.AnnotationPlacement: decision.String()})
	d.Name, d.Namespace, d.UID = name, namespace, types.UID(namespace+name)
	return d
}

func cluster(name, cpu string) manifoldv1alpha1.Cluster {
	return manifoldv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: manifoldv1alpha1.ClusterStatus{
			Conditions: []metav1.Condition{{Type: manifoldv1alpha1.ClusterReady, Status: metav1.ConditionTrue}},
			Allocatable: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourcePods: resource.MustParse("110"),
			},
		},
	}
}

func cordoned(c manifoldv1alpha1.Cluster) manifoldv1alpha1.Cluster {
	c.Spec.Unschedulable = true
	return c
}

// removed is a cluster that is being removed.
func removed(c manifoldv1alpha1.Cluster) manifoldv1alpha1.Cluster {
	c.DeletionTimestamp, c.Finalizers = &metav1.Time{Time: now}, []string{manifoldv1alpha1.FinalizerCluster}
	return c
}

// silent is a cluster that has not answered for longer than any workload tolerates.
func silent(c manifoldv1alpha1.Cluster) manifoldv1alpha1.Cluster {
	c.Status.Conditions[0].Status = metav1.ConditionUnknown
	c.Status.Conditions[0].LastTransitionTime = metav1.NewTime(now.AddDate(-1, 0, 0))
	return c
}

func together() []manifoldv1alpha1.ClusterPlacementPolicy {
	return []manifoldv1alpha1.ClusterPlacementPolicy{{
		ObjectMeta: metav1.ObjectMeta{Name: "default"},
		Spec: manifoldv1alpha1.ClusterPlacementPolicySpec{
			PlacementPolicySpec: manifoldv1alpha1.PlacementPolicySpec{KeepTogether: true},
		},
	}}
}

func toUnstructured(t *testing.T, object any) *unstructured.Unstructured {
	t.Helper()
	if u, ok := object.(*unstructured.Unstructured); ok {
		return u
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: content}
}

func shop(annotations map[string]string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Annotations: annotations}}
}

// protected puts an object into a namespace that belongs to every cluster, or makes it one.
func protected[T metav1.Object](in T) T {
	if in.GetNamespace() == "" && in.GetName() == "shop" {
		in.SetName(metav1.NamespaceSystem)
	} else {
		in.SetNamespace(metav1.NamespaceSystem)
	}
	return in
}

// scene is what the logical cluster holds.
type scene struct {
	// object is what is explained.
	object    runtime.Object
	namespace *corev1.Namespace
	clusters  []manifoldv1alpha1.Cluster
	policies  []manifoldv1alpha1.ClusterPlacementPolicy
	// others are further Deployments.
	others []appsv1.Deployment
	events []corev1.Event
	// forbidden is a resource that the user may not list.
	forbidden string
	// standing is how the server says that it stands, nil if it says nothing.
	standing *moves.Standing
}

func TestExplain(t *testing.T) {
	limited := cluster("east", "8")
	limited.Spec.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3")}
	for name, s := range map[string]scene{
		"pinned and ready": {
			object: web(5, map[string]string{
				manifoldv1alpha1.AnnotationClusters:  "west,east",
				manifoldv1alpha1.AnnotationPlacement: `{"east":{"replicas":3},"west":{"replicas":2}}`,
				manifoldv1alpha1.AnnotationStatus: `{"east":{"replicas":3,"ready":3,"updated":3},` +
					`"west":{"replicas":2,"ready":1,"updated":2,"stale":true}}`,
			}),
			namespace: shop(map[string]string{manifoldv1alpha1.AnnotationClusters: "north"}),
			clusters:  []manifoldv1alpha1.Cluster{cluster("east", "8"), cluster("west", "4"), cluster("north", "100")},
			policies:  together(),
			events: []corev1.Event{
				event("late", "manifold", "Unplaced", now.Add(-time.Minute)),
				event("early", "manifold-syncer", "Conflict", now.Add(-time.Hour)),
				event("foreign", "deployment-controller", "ScalingReplicaSet", now),
			},
		},
		"half-way to another cluster": {
			object: web(4, map[string]string{
				manifoldv1alpha1.AnnotationClusters:  "west",
				manifoldv1alpha1.AnnotationPlacement: `{"west":{"replicas":4}}`,
				manifoldv1alpha1.AnnotationStatus: `{"east":{"replicas":3,"ready":3,"available":3,"updated":3,"waits":"keeps 3 replicas until replacements are available elsewhere"},` +
					`"west":{"replicas":2,"ready":1,"available":1,"updated":2,"waits":"runs 2 of 4 replicas until others have stopped elsewhere"}}`,
			}),
			namespace: shop(nil), policies: together(), clusters: []manifoldv1alpha1.Cluster{cluster("east", "8"), cluster("west", "8")},
		},
		"half-way as the server sees it": {
			object: &appsv1.StatefulSet{
				TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"},
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", Annotations: map[string]string{
					manifoldv1alpha1.AnnotationPlacement: `{"west":{"replicas":3}}`,
					manifoldv1alpha1.AnnotationStatus:    `{"east":{"replicas":3,"ready":3,"available":3,"updated":3}}`,
				}},
				Spec: appsv1.StatefulSetSpec{Replicas: ptr.To[int32](3)},
			},
			namespace: shop(nil), policies: together(), clusters: []manifoldv1alpha1.Cluster{cluster("east", "8"), cluster("west", "8")},
			standing: &moves.Standing{
				Fleet: moves.Fleet{Ordinals: true, Replicas: 3, Decision: placement.Decision{"west": {Replicas: 3}}, Members: map[string]moves.Member{
					"east": {
						Connected: true, Synced: true, Shown: true, Holds: true, Told: 2, Ordinals: placement.Range{End: 2}, Asks: placement.Range{End: 2},
						Running: 2, Available: 2, Observed: true, Keeps: []placement.Range{{End: 2}}, Recorded: &placement.Share{Replicas: 3}, Emptying: true,
					},
					"west": {Connected: true, Synced: true, Shown: true, Holds: true, Reserved: placement.Range{Start: 2, End: 3}, Observed: true},
				}},
				Steps: map[string]moves.Step{
					"east": {Share: placement.Share{Replicas: 2}, Held: true, Brief: true, Reason: "keeps ordinals 0-1 until they are ready elsewhere"},
					"west": {Share: placement.Share{Start: 2, Replicas: 1}, Held: true, Reason: `waits for ordinals 0-1 to stop in cluster "east"`},
				},
			},
		},
		"divided by ordinals": {
			object: &appsv1.StatefulSet{
				TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"},
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", Annotations: map[string]string{
					manifoldv1alpha1.AnnotationPlacement: `{"east":{"replicas":3},"west":{"replicas":1,"start":3}}`,
					manifoldv1alpha1.AnnotationStatus:    `{"east":{"replicas":3,"ready":3,"updated":3,"start":10}}`,
				}},
				Spec: appsv1.StatefulSetSpec{Replicas: ptr.To[int32](4), Ordinals: &appsv1.StatefulSetOrdinals{Start: 10}},
			},
			namespace: shop(nil), policies: together(), clusters: []manifoldv1alpha1.Cluster{cluster("east", "8"), cluster("west", "8")},
		},
		"off a cluster that is being removed": {
			object: web(4, map[string]string{
				manifoldv1alpha1.AnnotationPlacement: `{"west":{"replicas":4}}`,
				manifoldv1alpha1.AnnotationStatus: `{"east":{"replicas":3,"ready":3,"available":3,"updated":3,"waits":"keeps 3 replicas until replacements are available elsewhere"},` +
					`"west":{"replicas":4,"ready":2,"available":1,"updated":4}}`,
			}),
			namespace: shop(nil), policies: together(), clusters: []manifoldv1alpha1.Cluster{removed(cluster("east", "8")), cluster("west", "8")},
		},
		"ordinals of a cluster that is lost": {
			object: &appsv1.StatefulSet{
				TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"},
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", Annotations: map[string]string{
					manifoldv1alpha1.AnnotationPlacement: `{"north":{"replicas":2},"west":{"replicas":2,"start":2}}`,
					manifoldv1alpha1.AnnotationStatus: `{"east":{"replicas":2,"ready":2,"available":2,"updated":2,"start":2,"stale":true},` +
						`"north":{"replicas":2,"ready":2,"available":2,"updated":1},"west":{"replicas":1,"ready":1,"start":2}}`,
				}},
				Spec: appsv1.StatefulSetSpec{Replicas: ptr.To[int32](4)},
			},
			namespace: shop(nil), policies: together(),
			clusters: []manifoldv1alpha1.Cluster{silent(cluster("east", "8")), cluster("north", "8"), cluster("west", "8")},
		},
		"placed nowhere": {
			object: web(2, nil), namespace: shop(nil), policies: together(),
			clusters: []manifoldv1alpha1.Cluster{cordoned(cluster("east", "8")), cluster("west", "500m")},
		},
		"never placed for its namespace": {
			object: protected(web(2, nil)), namespace: protected(shop(nil)), policies: together(),
			clusters: []manifoldv1alpha1.Cluster{cluster("east", "8"), cluster("west", "8")},
		},
		"a dependent in a protected namespace": {object: protected(&corev1.PersistentVolumeClaim{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"}, ObjectMeta: metav1.ObjectMeta{Name: "data"},
		})},
		"pinned by its namespace to a cluster that has not joined": {
			object: web(2, nil), namespace: shop(map[string]string{manifoldv1alpha1.AnnotationClusters: "north"}),
			clusters: []manifoldv1alpha1.Cluster{cluster("east", "8")},
		},
		"follows its neighbours": {
			object: web(1, nil), namespace: shop(nil), policies: together(),
			clusters: []manifoldv1alpha1.Cluster{cluster("east", "80"), cluster("west", "8")},
			others: []appsv1.Deployment{
				other("api", "shop", placement.Decision{"west": {Replicas: 1}}),
				other("api", "elsewhere", placement.Decision{"east": {Replicas: 3}}),
			},
		},
		"kept by a limit that others use up": {
			object: web(1, nil), namespace: shop(nil), clusters: []manifoldv1alpha1.Cluster{limited},
			others: []appsv1.Deployment{other("api", "elsewhere", placement.Decision{"east": {Replicas: 3}})},
		},
		"a cluster that cannot hold it": {
			object: web(1, map[string]string{
				manifoldv1alpha1.AnnotationPlacement: `{"east":{"replicas":1}}`,
				manifoldv1alpha1.AnnotationStatus:    `{"east":{"problem":"the name is taken there"}}`,
			}),
			namespace: shop(nil), clusters: []manifoldv1alpha1.Cluster{cluster("east", "8")},
		},
		"a user who may not see clusters": {
			object:    web(1, map[string]string{manifoldv1alpha1.AnnotationPlacement: `{"east":{"replicas":1}}`}),
			namespace: shop(nil), forbidden: "clusters",
		},
		"everywhere": {
			object: &appsv1.DaemonSet{
				TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSet"},
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "agent", UID: "agent", Annotations: map[string]string{
					manifoldv1alpha1.AnnotationPlacement: `{"east":{"replicas":0},"west":{"replicas":0}}`,
					manifoldv1alpha1.AnnotationStatus:    `{"east":{"replicas":3,"ready":3,"updated":3},"west":{"replicas":2,"ready":1,"updated":2}}`,
				}},
			},
			namespace: shop(nil), policies: together(),
			clusters: []manifoldv1alpha1.Cluster{cluster("east", "8"), cluster("west", "4"), cordoned(cluster("north", "4"))},
		},
		"a custom resource": {
			object: gizmo(map[string]string{
				manifoldv1alpha1.AnnotationClusters:  "east,north,west",
				manifoldv1alpha1.AnnotationPlacement: `{"east":{"replicas":1},"west":{"replicas":1}}`,
				manifoldv1alpha1.AnnotationStatus: `{"east":{"generation":2,"state":"Ready","status":{"phase":"Up"}},` +
					`"west":{"problem":"Manifold has no right to manage gizmos.example.com there"}}`,
			}),
			namespace: shop(nil), policies: together(),
			clusters: []manifoldv1alpha1.Cluster{serving(cluster("east", "8"), "Gizmo.v1.example.com"),
				serving(cluster("north", "8"), "Pod.v1"), serving(cluster("west", "4"), "Gizmo.v1.example.com")},
		},
		"a custom resource that a policy describes": {
			object: rollout(4, map[string]string{
				manifoldv1alpha1.AnnotationClusters:  "east,west",
				manifoldv1alpha1.AnnotationPlacement: `{"east":{"replicas":4}}`,
				manifoldv1alpha1.AnnotationStatus:    `{"east":{"generation":2,"state":"Healthy"}}`,
			}),
			namespace: shop(nil), policies: append(together(), describing()),
			clusters: []manifoldv1alpha1.Cluster{cluster("east", "8"), cluster("west", "1")},
		},
		"a custom resource that asks for more than there is": {
			object:    rollout(40, map[string]string{manifoldv1alpha1.AnnotationClusters: "east,west"}),
			namespace: shop(nil), policies: append(together(), describing()),
			clusters: []manifoldv1alpha1.Cluster{cluster("east", "1"), cluster("west", "1")},
		},
		"a custom resource that stays": {
			object: gizmo(nil), namespace: shop(map[string]string{manifoldv1alpha1.AnnotationClusters: "east"}), policies: together(),
			clusters: []manifoldv1alpha1.Cluster{cluster("east", "8")},
		},
		"a mirrored ReplicaSet": {object: &appsv1.ReplicaSet{
			TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "ReplicaSet"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", Controller: ptr.To(true)},
			}},
		}},
		"a dependent": {object: &corev1.ConfigMap{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		}},
		"held at revisions": {
			object: web(6, map[string]string{
				manifoldv1alpha1.AnnotationPlacement: `{"east":{"replicas":3,"revision":"web-v8","target":"eu"},"west":{"replicas":3,"revision":"web-v7","target":"default"}}`,
				manifoldv1alpha1.AnnotationStatus:    `{"east":{"replicas":3,"ready":3,"updated":1,"revision":"web-v7","target":"eu"},"south":{"replicas":1,"revision":"web-v6","target":"eu"},"west":{"replicas":3,"ready":3,"revision":"web-v7","target":"default"}}`,
			}),
			namespace: shop(nil), clusters: []manifoldv1alpha1.Cluster{cluster("east", "8"), cluster("north", "8"), cluster("west", "8")},
		},
		"a dependent that is held": {object: &corev1.ConfigMap{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web",
				Annotations: map[string]string{manifoldv1alpha1.AnnotationPlacement: `{"west":{"replicas":0,"revision":"web-v7","target":"default"}}`}},
		}},
		"a mirrored pod": {object: &corev1.Pod{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1",
				Annotations: map[string]string{manifoldv1alpha1.AnnotationCluster: "east"}, OwnerReferences: []metav1.OwnerReference{
					{Kind: "ReplicaSet", Name: "web-0", Controller: ptr.To(true)},
				}},
		}},
		"what stays in the logical cluster": {object: &corev1.ComponentStatus{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ComponentStatus"}, ObjectMeta: metav1.ObjectMeta{Name: "data"},
		}},
		"a volume that is made by hand": {object: &corev1.PersistentVolume{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"}, ObjectMeta: metav1.ObjectMeta{Name: "data"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			observed, err := s.gatherer().gather(t.Context(), toUnstructured(t, s.object))
			if err != nil {
				t.Fatal(err)
			}
			report, err := explain(observed)
			if err != nil {
				t.Fatal(err)
			}
			var text, data strings.Builder
			if err := report.text(&text, now); err != nil {
				t.Fatal(err)
			}
			if err := report.print(&data, "yaml"); err != nil {
				t.Fatal(err)
			}
			checkGolden(t, strings.ReplaceAll(name, " ", "-")+".txt", fmt.Sprintf("%s\n---\n%s", text.String(), data.String()))
		})
	}
}

func (s scene) gatherer() gatherer {
	objects := []runtime.Object{&appsv1.DeploymentList{Items: s.others}, &corev1.EventList{Items: s.events}}
	if _, custom := s.object.(*unstructured.Unstructured); !custom {
		objects = append(objects, s.object)
	}
	if s.namespace != nil {
		objects = append(objects, s.namespace)
	}
	client := kubefake.NewClientset(objects...)
	manifold := fake.NewSimpleClientset(
		&manifoldv1alpha1.ClusterList{Items: s.clusters}, &manifoldv1alpha1.ClusterPlacementPolicyList{Items: s.policies},
	)
	if s.forbidden != "" {
		refusal := apierrors.NewForbidden(manifoldv1alpha1.Resource(s.forbidden), "", errors.New("only admins may look"))
		manifold.PrependReactor("list", s.forbidden, func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, refusal
		})
	}
	return gatherer{client: client, manifold: manifold, fleet: func(context.Context, identity.Workload) ([]byte, error) {
		if s.standing == nil {
			return nil, apierrors.NewNotFound(appsv1.Resource("deployments/fleet"), "web")
		}
		return json.Marshal(s.standing)
	}}
}

// gizmo is an object of a custom kind.
func gizmo(annotations map[string]string) *unstructured.Unstructured {
	out := &unstructured.Unstructured{}
	out.SetAPIVersion("example.com/v1")
	out.SetKind("Gizmo")
	out.SetNamespace("shop")
	out.SetName("one")
	out.SetAnnotations(annotations)
	return out
}

// rollout is an object of a custom kind that describing describes: of replicas of two pods.
func rollout(replicas int64, annotations map[string]string) *unstructured.Unstructured {
	out := gizmo(annotations)
	out.SetKind("Rollout")
	out.Object["spec"] = map[string]any{"replicas": replicas, "size": int64(2), "template": map[string]any{"spec": map[string]any{
		"containers": []any{map[string]any{"name": "serve", "resources": map[string]any{"requests": map[string]any{"cpu": "700m", "memory": "64Mi"}}}},
	}}}
	return out
}

func describing() manifoldv1alpha1.ClusterPlacementPolicy {
	out := manifoldv1alpha1.ClusterPlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: "kinds"}}
	out.Spec.Workloads = &manifoldv1alpha1.WorkloadSelector{Kinds: []string{"Rollout.example.com"}}
	out.Spec.CustomWorkloads = []manifoldv1alpha1.CustomWorkload{{
		Kind: "Rollout.example.com", PodTemplatePaths: []string{".spec.template"}, SpecReplicasPath: ".spec.replicas", PodsPerReplicaPath: ".spec.size",
	}}
	return out
}

func serving(c manifoldv1alpha1.Cluster, kinds ...string) manifoldv1alpha1.Cluster {
	c.Status.Kinds = kinds
	return c
}

func event(name, component, reason string, at time.Time) corev1.Event {
	return corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Source: corev1.EventSource{Component: component},
		InvolvedObject: corev1.ObjectReference{UID: "web"}, LastTimestamp: metav1.NewTime(at),
		Type: corev1.EventTypeNormal, Reason: reason, Message: "the " + name + " event",
	}
}

func checkGolden(t *testing.T, name, got string) {
	t.Helper()
	golden := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("go test ./pkg/cli/explain -update rewrites %s (-want +got):\n%s", golden, diff)
	}
}

func TestExplainRefusesWhatCannotBeRead(t *testing.T) {
	for name, test := range map[string]struct {
		annotation, want string
	}{
		"a decision that is no JSON":  {annotation: manifoldv1alpha1.AnnotationPlacement, want: "parse placement"},
		"a breakdown that is no JSON": {annotation: manifoldv1alpha1.AnnotationStatus, want: "parse the status by cluster"},
		"a pin that names nothing":    {annotation: manifoldv1alpha1.AnnotationClusters, want: "annotation manifold.dev/clusters"},
	} {
		t.Run(name, func(t *testing.T) {
			s := scene{object: web(1, map[string]string{test.annotation: ",,"}), namespace: shop(nil)}
			observed, err := s.gatherer().gather(t.Context(), toUnstructured(t, s.object))
			if err == nil {
				_, err = explain(observed)
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("explain: %v, want %q", err, test.want)
			}
		})
	}
}

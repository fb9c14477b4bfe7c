package wanted

import (
	"maps"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/copies"
)

func object(apiVersion, kind, name string, more map[string]any) *unstructured.Unstructured {
	out := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name}}
	maps.Copy(out, more)
	return &unstructured.Unstructured{Object: out}
}

func web() *unstructured.Unstructured {
	return object("apps/v1", "Deployment", "web", map[string]any{"spec": map[string]any{
		"replicas": int64(4), "selector": map[string]any{}, "template": map[string]any{},
	}})
}

func primary(clusters map[string]string) delivery.Set {
	parts := map[string]delivery.Part{}
	for cluster, target := range clusters {
		parts[cluster] = delivery.Part{Revision: delivery.Revision{Name: "web-v2"}, Target: target, Traffic: 100}
	}
	return delivery.Set{delivery.Primary: {Clusters: parts}}
}

func make1(t *testing.T, app Application, set delivery.Set, objects ...*unstructured.Unstructured) (Wanted, error) {
	t.Helper()
	app.Namespace, app.Name, app.UID = "shop", "web", "app"
	return Make(app, set, "web-v2", func(delivery.Part) ([]*unstructured.Unstructured, error) { return objects, nil })
}

func TestWhatAnApplicationMayNotHave(t *testing.T) {
	elsewhere := object("v1", "ConfigMap", "a", nil)
	elsewhere.SetNamespace("kube-system")
	for name, test := range map[string]struct {
		object *unstructured.Unstructured
		rights bool
		want   string
	}{
		"an object of another namespace":         {object: elsewhere, want: `ConfigMap/a: metadata.namespace: it is in namespace "kube-system"`},
		"not even by a ServiceAccount":           {object: elsewhere, rights: true, want: "metadata.namespace"},
		"what is in no namespace":                {object: object("v1", "Namespace", "a", nil), want: "Namespace/a: kind: it is in no namespace"},
		"what gives rights":                      {object: object("rbac.authorization.k8s.io/v1", "RoleBinding", "a", nil), want: "RoleBinding/a: kind: it gives rights"},
		"unless a ServiceAccount may":            {object: object("rbac.authorization.k8s.io/v1", "RoleBinding", "a", nil), rights: true},
		"policies, which others need rights for": {object: object("manifold.dev/v1alpha1", "PlacementPolicy", "a", nil), want: "kind: an application has no objects of manifold.dev"},
		"releases":                               {object: object("delivery.manifold.dev/v1alpha1", "Release", "a", nil), want: "kind: an application has no objects of delivery.manifold.dev"},
		"what it is for":                         {object: web()},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := make1(t, Application{Pinned: true, Rights: test.rights}, primary(map[string]string{"east": "eu"}), test.object)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

func TestTheWeightOfATargetIsThatOfItsClusters(t *testing.T) {
	set := primary(map[string]string{"e1": "eu", "e2": "eu", "u1": "us", "a1": "asia"})
	for cluster, part := range set[delivery.Primary].Clusters {
		part.Weight = ptr.To(map[string]int32{"eu": 50, "us": 25, "asia": 25}[part.Target])
		set[delivery.Primary].Clusters[cluster] = part
	}
	made, err := make1(t, Application{Pinned: true}, set, web())
	if err != nil || len(made.Policies) != 1 {
		t.Fatalf("%d policies, %v", len(made.Policies), err)
	}
	division := made.Policies[0].Spec.Division
	if want := map[string]int32{"e1": 2500, "e2": 2500, "u1": 2500, "a1": 2500}; division.Type != manifold.Divide || !maps.Equal(division.Weights, want) {
		t.Errorf("%+v, want %v", division, want)
	}
	if pin := made.Objects[0].Manifest.GetAnnotations()[manifold.AnnotationClusters]; pin != "a1,e1,e2,u1" {
		t.Errorf("pinned to %s", pin)
	}
}

func TestAClusterDoesNotRunEmptyForWantOfAWeight(t *testing.T) {
	for name, test := range map[string]struct {
		weights map[string]int32
		want    map[string]int32
	}{
		"none has one":                   {},
		"others got theirs a moment ago": {map[string]int32{"a": 100}, map[string]int32{"a": 10000, "b": 10000, "c": 10000}},
		"that of others is the average":  {map[string]int32{"a": 30, "b": 10}, map[string]int32{"a": 3000, "b": 1000, "c": 2000}},
		"others are to run empty":        {map[string]int32{"a": 0, "b": 0}, map[string]int32{"a": 0, "b": 0, "c": 100}},
		"somebody wants it to":           {map[string]int32{"a": 100, "b": 0, "c": 0}, map[string]int32{"a": 10000, "b": 0, "c": 0}},
	} {
		set := primary(map[string]string{"a": "a", "b": "b", "c": "c"})
		for cluster, weight := range test.weights {
			part := set[delivery.Primary].Clusters[cluster]
			part.Weight = &weight
			set[delivery.Primary].Clusters[cluster] = part
		}
		made, err := make1(t, Application{Pinned: true}, set, web())
		if err != nil || len(made.Policies) != 1 {
			t.Fatalf("%s: %d policies, %v", name, len(made.Policies), err)
		}
		if division := made.Policies[0].Spec.Division; !maps.Equal(division.Weights, test.want) || (division.Type == manifold.Divide) != (test.want != nil) {
			t.Errorf("%s: %+v, want %v", name, division, test.want)
		}
	}
}

// Whoever may write workloads may write the label by which they follow a policy, and one of the namespace wins over those of admins.
func TestPoliciesChooseNoClustersForWhoeverFollowsThem(t *testing.T) {
	set := primary(map[string]string{"east": "eu", "west": "us"})
	set[delivery.Canary] = delivery.Variant{Suffix: "canary", Clusters: map[string]delivery.Part{
		"west": {Revision: delivery.Revision{Name: "web-v2"}, Target: "us", Replicas: map[string]int32{"Deployment/web": 1}},
	}}
	made, err := make1(t, Application{Pinned: true}, set, web())
	if err != nil || len(made.Policies) != 2 {
		t.Fatalf("%d policies, %v", len(made.Policies), err)
	}
	for _, policy := range made.Policies {
		selector, err := metav1.LabelSelectorAsSelector(policy.Spec.Clusters.LabelSelector)
		if err != nil {
			t.Fatal(err)
		}
		for _, cluster := range []labels.Set{{}, {v1alpha1.LabelPlacement: policy.Name}, {"region": "eu"}} {
			if selector.Matches(cluster) {
				t.Errorf("%s chooses clusters with the labels %v", policy.Name, cluster)
			}
		}
	}
}

func TestPoliciesHaveNamesThatWorkloadsCanNameInALabel(t *testing.T) {
	long := strings.Repeat("a", 50) // the longest name of an Application
	names := map[string]string{}
	for _, variant := range []string{delivery.Primary, delivery.Canary, delivery.Baseline, long + "-v1", long + "-v2", strings.Repeat("b.", 100) + "v1"} {
		for _, workload := range []string{"web", "api"} {
			for _, app := range []string{"web", long, long[1:] + "b", strings.Repeat("c", 253)} {
				made := func() string {
					of := policies{app: Application{Namespace: "shop", Name: app}, made: map[string]*manifold.PlacementPolicy{}}
					name := of.of(Object{Key: Key{"apps", "Deployment", workload}, Variant: variant})
					if policy := of.made[name]; policy == nil || policy.Name != name || policy.Spec.Workloads.LabelSelector.MatchLabels[v1alpha1.LabelPlacement] != name {
						t.Errorf("%s of %s follows %s, and made is %+v", variant, app, name, of.made)
					}
					return name
				}
				name := made()
				for _, why := range append(validation.IsValidLabelValue(name), validation.IsDNS1123Subdomain(name)...) {
					t.Errorf("%s of %s follows %s: %s", variant, app, name, why)
				}
				if again := made(); again != name {
					t.Errorf("%s of %s follows %s, and another time %s", variant, app, name, again)
				}
				of := app + " " + variant
				if variant != delivery.Primary {
					of += " " + workload
				}
				if other := names[name]; other != "" && other != of {
					t.Errorf("%s and %s follow the same policy %s", of, other, name)
				}
				names[name] = of
			}
		}
	}
	if names["web-primary"] == "" {
		t.Error("a name that fits is not what it was")
	}
}

// Targets say where workloads run. An object of a custom kind goes to clusters only if somebody sends it there.
func TestObjectsOfCustomKindsGoWhereTheirAuthorSendsThem(t *testing.T) {
	pinned := map[string]any{"name": "one", "annotations": map[string]any{manifold.AnnotationClusters: "north"}}
	gizmo, workload := object("example.com/v1", "Gizmo", "one", map[string]any{"metadata": pinned}), web()
	workload.SetAnnotations(map[string]string{manifold.AnnotationClusters: "north"})
	made, err := make1(t, Application{Pinned: true}, primary(map[string]string{"east": "eu"}), gizmo, workload)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"Gizmo": "north", "Deployment": "east"}
	for _, object := range made.Objects {
		if pin := object.Manifest.GetAnnotations()[manifold.AnnotationClusters]; pin != want[object.Kind] {
			t.Errorf("%s goes to %q, want %q", object.Key, pin, want[object.Kind])
		}
	}
}

func TestObjectsOfUsersGetNothingButWhoHoldsWhat(t *testing.T) {
	made, err := make1(t, Application{Selected: true}, primary(map[string]string{"east": "default"}), web())
	if err != nil {
		t.Fatal(err)
	}
	got := made.Objects[0].Apply(true)
	if _, has := got.Object["spec"]; has || len(got.GetOwnerReferences()) > 0 || got.GetAnnotations()[manifold.AnnotationPlacement] == "" {
		t.Errorf("%v", got.Object)
	}
}

func TestWhatIsNotPrunedStaysWhereItIs(t *testing.T) {
	held := map[string]copies.Share{"west": {Revision: "web-v1", Target: "us"}, "north": {Revision: "web-v1"}}
	app := Application{Pinned: true, Keeps: func(Key) map[string]copies.Share { return held }}
	set := primary(map[string]string{"east": "eu", "west": "us"})
	app.Namespace, app.Name, app.UID = "shop", "web", "app"
	made, err := Make(app, set, "web-v2", func(part delivery.Part) ([]*unstructured.Unstructured, error) {
		if part.Target == "us" {
			return nil, nil // it no longer has it
		}
		return []*unstructured.Unstructured{web()}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	got := made.Objects[0]
	if _, gone := got.Clusters["north"]; got.Clusters["west"].Revision != "web-v1" || gone || got.Manifest.GetAnnotations()[manifold.AnnotationClusters] != "east,west" {
		t.Errorf("%+v, pinned to %s: want west kept, and north, which runs nothing of the application, not", got.Clusters, got.Manifest.GetAnnotations()[manifold.AnnotationClusters])
	}
}

// Another kind may stand for an application: its objects are owned by that, and a copy of no replicas has a policy all the same.
func TestWhatStandsForAnApplicationOwnsItsObjects(t *testing.T) {
	app := Application{Pinned: true, Stands: &metav1.OwnerReference{Kind: "ApplicationDeployment", Name: "web", UID: "deployment"}}
	set := delivery.Set{"v1": {Suffix: "v1", Clusters: map[string]delivery.Part{"east": {Revision: delivery.Revision{Name: "web-v1"}}}}}
	made, err := make1(t, app, set, web())
	if err != nil || len(made.Objects) != 1 || len(made.Policies) != 1 {
		t.Fatalf("%+v, %v", made, err)
	}
	if weights := made.Policies[0].Spec.Division.Weights; weights["east"] != 1 {
		t.Errorf("nothing is divided by %v", weights)
	}
	beside, err := app.Beside("(routes)", object("v1", "Service", "front", nil))
	if err != nil || beside.Manifest.GetAnnotations()[v1alpha1.AnnotationVariant] != "(routes)" || beside.Hash == "" {
		t.Errorf("%+v, %v", beside, err)
	}
	for _, owners := range [][]metav1.OwnerReference{made.Objects[0].Manifest.GetOwnerReferences(), made.Policies[0].OwnerReferences, beside.Manifest.GetOwnerReferences()} {
		if len(owners) != 1 || owners[0].Kind != "ApplicationDeployment" || owners[0].UID != "deployment" {
			t.Errorf("owned by %v", owners)
		}
	}
}

// An object that was applied as it is wanted counts as that, whatever its manifest claims of our own names.
func TestAppliedIsWhatHasTheHashAndTheShares(t *testing.T) {
	forged := web()
	forged.SetAnnotations(map[string]string{v1alpha1.AnnotationApplied: "forged", manifold.AnnotationPlacement: `{"mars":{"replicas":9}}`, "note": "theirs"})
	made, err := make1(t, Application{Pinned: true}, primary(map[string]string{"east": "eu"}), forged)
	if err != nil {
		t.Fatal(err)
	}
	object := made.Objects[0]
	applied := object.Apply(true).GetAnnotations()
	if applied["note"] != "theirs" || applied[v1alpha1.AnnotationApplied] != object.Hash || strings.Contains(applied[manifold.AnnotationPlacement], "mars") {
		t.Errorf("applied with %v", applied)
	}
	present := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		v1alpha1.AnnotationApplied: object.Hash, manifold.AnnotationPlacement: `{"east":{"replicas":4,"revision":"web-v2","target":"eu"}}`,
	}}}
	if !object.Applied(present) {
		t.Error("it is as it is wanted")
	}
	present.DeletionTimestamp = ptr.To(metav1.Now())
	if object.Applied(present) || object.Applied(nil) {
		t.Error("what is going, or is not there, is not what is wanted")
	}
}

// Copies alone run where a target is new: their requests come by the same Service.
func TestEveryClusterHasTheServiceInFront(t *testing.T) {
	service := object("v1", "Service", "web", map[string]any{"spec": map[string]any{"selector": map[string]any{"app": "web"}}})
	deployment := web()
	if err := unstructured.SetNestedStringMap(deployment.Object, map[string]string{"app": "web"}, "spec", "template", "metadata", "labels"); err != nil {
		t.Fatal(err)
	}
	set := primary(map[string]string{"east": "eu"})
	set[delivery.Canary] = delivery.Variant{Suffix: "canary", Clusters: map[string]delivery.Part{"west": {Revision: delivery.Revision{Name: "web-v2"}, Target: "us"}}}
	app := Application{Pinned: true, Traffic: v1alpha1.TrafficService}
	made, err := make1(t, app, set, service, deployment)
	if err != nil {
		t.Fatal(err)
	}
	for _, cluster := range []string{"east", "west"} {
		if front := made.Fronts[cluster]; front.Name != "web" || strings.Join(front.Leads, " ") != "Deployment/web" {
			t.Errorf("in front of %s is %+v", cluster, front)
		}
	}
	if made, err = make1(t, app, set, deployment); err != nil || !strings.HasPrefix(made.Fronts["west"].Problem, "service.name: Required value") {
		t.Errorf("without a Service: %+v, %v", made.Fronts, err)
	}
	app.Traffic = ""
	if made, err = make1(t, app, set, deployment); err != nil || len(made.Fronts) > 0 {
		t.Errorf("nobody shares out requests, and in front is %+v, %v", made.Fronts, err)
	}
}

package projection

import (
	"reflect"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

func setWith(name string, templates ...string) *appsv1.StatefulSet {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	for _, template := range templates {
		set.Spec.VolumeClaimTemplates = append(set.Spec.VolumeClaimTemplates, corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: template}})
	}
	return set
}

func TestClaimOrdinal(t *testing.T) {
	for name, test := range map[string]struct {
		claim string
		set   *appsv1.StatefulSet
		want  int32
		no    bool
	}{
		"of the first replica":                {claim: "data-db-0", set: setWith("db", "data"), want: 0},
		"of a later one, by another template": {claim: "log-db-12", set: setWith("db", "data", "log"), want: 12},
		"names with dashes":                   {claim: "my-data-my-db-3", set: setWith("my-db", "my-data"), want: 3},
		"of another set":                      {claim: "data-web-0", set: setWith("db", "data"), no: true},
		"of a set whose name ends alike":      {claim: "data-my-db-0", set: setWith("db", "data"), no: true},
		"of no template":                      {claim: "cache-db-0", set: setWith("db", "data"), no: true},
		"of no replica":                       {claim: "data-db", set: setWith("db", "data"), no: true},
		"not as a controller writes numbers":  {claim: "data-db-01", set: setWith("db", "data"), no: true},
		"without templates":                   {claim: "data-db-0", set: setWith("db"), no: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := mustKind(t, "statefulsets").ClaimOrdinal(test.set, test.claim)
			if got != test.want || ok == test.no {
				t.Errorf("%d, %t; want %d, %t", got, ok, test.want, !test.no)
			}
		})
	}
	if _, ok := mustKind(t, "deployments").ClaimOrdinal(&appsv1.Deployment{}, "data-db-0"); ok {
		t.Error("a Deployment has claims")
	}
}

func mustKind(t *testing.T, resource string) Kind {
	t.Helper()
	kind, ok := ForResource(appsv1.SchemeGroupVersion.WithResource(resource))
	if !ok {
		t.Fatalf("no kind %s", resource)
	}
	return kind
}

func TestSetsOfClaim(t *testing.T) {
	for claim, want := range map[string][]string{
		"data-db-0":       {"db"},
		"my-data-my-db-3": {"data-my-db", "my-db", "db"},
		"data":            nil,
		"data-0":          nil,
		"data-db":         nil,
		"-db-0":           nil,
	} {
		if got := SetsOfClaim(claim); !reflect.DeepEqual(got, want) {
			t.Errorf("%s may belong to %q, want %q", claim, got, want)
		}
	}
}

func TestAClaimThatIsShownIsNotProjected(t *testing.T) {
	kind, _ := ForResource(corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"))
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data-db-0"}}
	if kind.Mirror(claim) {
		t.Error("the user's own claim counts as a mirror")
	}
	claim.Annotations = map[string]string{v1alpha1.AnnotationCluster: "east"}
	if !kind.Mirror(claim) {
		t.Error("the mirror counts as the user's own claim")
	}
}

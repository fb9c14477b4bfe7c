package records

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// The controller that protects claims would give one its finalizer back that is not being deleted, and another claim may have the name by now.
func TestDropClaim(t *testing.T) {
	for name, test := range map[string]struct {
		deleted, gone bool
		want          []string
	}{
		"it is deleted before it is let go of": {want: []string{"delete u", `patch {"metadata":{"finalizers":null,"uid":"u"}}`}},
		"one that goes is let go of alone":     {deleted: true, want: []string{`patch {"metadata":{"finalizers":null,"uid":"u"}}`}},
		"what is gone is no error":             {gone: true, want: []string{"delete u"}},
	} {
		t.Run(name, func(t *testing.T) {
			mirror := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: "data-0", UID: "u", Finalizers: []string{"kubernetes.io/pvc-protection"},
			}}
			if test.deleted {
				mirror.DeletionTimestamp = &metav1.Time{}
			}
			var there []runtime.Object
			if !test.gone {
				there = append(there, mirror)
			}
			client := fake.NewClientset(there...)
			// The tracker knows no finalizers.
			client.PrependReactor("delete", "persistentvolumeclaims", func(clienttesting.Action) (bool, runtime.Object, error) { return !test.gone, nil, nil })
			if err := DropClaim(t.Context(), client, mirror); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, action := range client.Actions() {
				switch a := action.(type) {
				case clienttesting.DeleteActionImpl:
					got = append(got, "delete "+string(*a.DeleteOptions.Preconditions.UID))
				case clienttesting.PatchActionImpl:
					got = append(got, "patch "+string(a.Patch))
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("it asked for %q, want %q", got, test.want)
			}
		})
	}
}

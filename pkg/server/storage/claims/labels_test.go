package claims

import (
	"errors"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"
	api "k8s.io/kubernetes/pkg/apis/core"
	claimstore "k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim/storage"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/server/storage/builtin"
	"github.com/manifold-dev/manifold/pkg/server/storage/storagetest"
)

func TestLabelsOfAMirroredClaimAreStoredBeforeItHasThem(t *testing.T) {
	want := map[string]string{"backup": "nightly"}
	for name, refusal := range map[string]error{
		"and stay":                   nil,
		"unless the cluster refuses": apierrors.NewForbidden(api.Resource("persistentvolumeclaims"), "data", errors.New("no")),
	} {
		t.Run(name, func(t *testing.T) {
			claims, _, err := claimstore.NewREST(storagetest.CachedOptions(t, "persistentvolumeclaims"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(claims.Destroy)
			if err := builtin.WrapStrategies(claims.Store, func(s builtin.Strategy) builtin.Strategy { return claimStrategy{s} }); err != nil {
				t.Fatal(err)
			}
			claim := claimIn("east")
			claim.ResourceVersion, claim.UID = "", ""
			claim.Annotations[v1alpha1.AnnotationUID] = "uid-below"
			made, err := claims.Create(storagetest.By(t, storagetest.EastSyncer), claim, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			before := made.(*api.PersistentVolumeClaim).Labels
			stored := func() map[string]string {
				obj, err := claims.Get(storagetest.By(t, "jane"), claim.Name, &metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				return obj.(*api.PersistentVolumeClaim).Labels
			}
			var then map[string]string
			r := &claimREST{REST: claims, connections: storagetest.PatchedBelow("persistentvolumeclaims", &corev1.PersistentVolumeClaim{}, refusal, func() { then = stored() })}
			_, _, err = r.Update(storagetest.Updating(t, "persistentvolumeclaims"), claim.Name, storagetest.Labelling(want), nil, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
			last := want
			if refusal != nil {
				last = before
			}
			if apierrors.IsForbidden(err) != (refusal != nil) || !maps.Equal(then, want) || !maps.Equal(stored(), last) {
				t.Errorf("error %v, labels %v and then %v, want %v and then %v", err, then, stored(), want, last)
			}
		})
	}
}

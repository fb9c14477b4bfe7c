package claims

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"
	api "k8s.io/kubernetes/pkg/apis/core"
	claimstore "k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim/storage"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/server/storage/await"
	"github.com/manifold-dev/manifold/pkg/server/storage/builtin"
	"github.com/manifold-dev/manifold/pkg/server/storage/storagetest"
)

func TestADeletionOfAMirroredClaimIsAnsweredOnceItIsShown(t *testing.T) {
	claims, _, err := claimstore.NewREST(storagetest.CachedOptions(t, "persistentvolumeclaims"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(claims.Destroy)
	storagetest.AwaitCache(t, claims.Store)
	if err := builtin.WrapStrategies(claims.Store, func(s builtin.Strategy) builtin.Strategy { return claimStrategy{s} }); err != nil {
		t.Fatal(err)
	}
	claim := claimIn("east")
	claim.ResourceVersion, claim.UID = "", ""
	claim.Annotations[v1alpha1.AnnotationUID] = "uid-below"
	if _, err := claims.Create(storagetest.By(t, storagetest.EastSyncer), claim, rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	r := &claimREST{REST: claims, connections: storagetest.DeletedBelow("persistentvolumeclaims", func() error {
		_, _, err := claims.Delete(storagetest.By(t, storagetest.EastSyncer), claim.Name, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{})
		return err
	})}
	ctx, cancel := context.WithTimeout(storagetest.By(t, "jane"), await.DeletionPatience-time.Second)
	defer cancel()
	obj, gone, err := r.Delete(ctx, claim.Name, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{})
	if err != nil || ctx.Err() != nil {
		t.Fatalf("Delete() = %v after %v, want an answer", err, ctx.Err())
	}
	if told := obj.(*api.PersistentVolumeClaim); !gone && told.DeletionTimestamp == nil {
		t.Error("Delete() = a claim that is not deleted, want one that is gone or has a time of deletion")
	}
}

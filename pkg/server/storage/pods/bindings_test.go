package pods

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	api "k8s.io/kubernetes/pkg/apis/core"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/server/storage/storagetest"
)

func TestABindingDoesNotSayWhereAPodIs(t *testing.T) {
	ctx, warnings := storagetest.As(t, "scheduler")
	binding := &api.Binding{ObjectMeta: metav1.ObjectMeta{Name: "web-1", Annotations: map[string]string{
		v1alpha1.AnnotationPodUID: "a-stranger's", v1alpha1.AnnotationCluster: "east", v1alpha1.AnnotationPlacement: "{}", "note": "own",
	}}}
	got := withoutManaged(ctx, binding).(*api.Binding)
	if len(got.Annotations) != 1 || got.Annotations["note"] != "own" {
		t.Errorf("annotations %v", got.Annotations)
	}
	if len(warnings.Texts) != 3 {
		t.Errorf("warnings %q, want one for each", warnings.Texts)
	}
}

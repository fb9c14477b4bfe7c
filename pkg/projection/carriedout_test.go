package projection

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

// Who has asked for a promotion is told by the status, and the status of what is in a cluster is what its admin writes.
func TestWhatManifoldCarriesOutGoesToNoClusterWhateverItsPinSays(t *testing.T) {
	pinned := &metav1.ObjectMeta{Namespace: "ops", Name: "web", Annotations: map[string]string{v1alpha1.AnnotationClusters: "dev"}}
	for _, kind := range []schema.GroupVersionKind{
		weave.GroupVersions[0].WithKind(weave.Kind), weave.GroupVersions[1].WithKind(weave.Kind), weave.GitopsClusters.GroupVersion().WithKind(weave.KindGitopsCluster),
		{Group: "core.oam.dev", Version: "v1beta1", Kind: "ApplicationDeployment"}, {Group: "core.oam.dev", Version: "v1beta1", Kind: "AppDeployment"},
	} {
		w, err := CustomWorkload(kind, nil, pinned)
		if err != nil || !strings.Contains(w.Never, "Manifold carries out "+kind.Kind+" itself") {
			t.Errorf("%s: %q, %v", kind, w.Never, err)
		}
	}
	other, err := CustomWorkload(schema.GroupVersionKind{Group: "tekton.dev", Version: "v1", Kind: "Pipeline"}, nil, pinned)
	if err != nil || other.Never != "" {
		t.Errorf("a Pipeline of others: %q, %v", other.Never, err)
	}
}

package explain

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubefake "k8s.io/client-go/kubernetes/fake"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned/fake"
	"github.com/manifold-dev/manifold/pkg/cli/output"
	"github.com/manifold-dev/manifold/pkg/placement"
)

func TestHoldShowsWhatAClusterHolds(t *testing.T) {
	decision := placement.Decision{"east": {Replicas: 2}, "west": {Replicas: 1}}
	policy := &manifoldv1alpha1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "images"}}
	policy.Spec.Overrides = []manifoldv1alpha1.Override{
		{Clusters: &manifoldv1alpha1.ClusterSelector{Names: []string{"east"}}, Labels: map[string]string{"region": "eu"}},
		{Clusters: &manifoldv1alpha1.ClusterSelector{Names: []string{"west"}}, StrategicMergePatch: "spec: {replicas: 7}"},
	}
	east, west := cluster("east", "8"), cluster("west", "8")
	g := gatherer{
		client: kubefake.NewClientset(
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: "logical"}},
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}),
		manifold: fake.NewClientset(&east, &west, policy),
	}
	object := toUnstructured(t, web(3, map[string]string{manifoldv1alpha1.AnnotationPlacement: decision.String()}))
	for name, test := range map[string]struct {
		cluster string
		format  output.Format
		want    string
		wantErr string
	}{
		"the overrides of a cluster": {cluster: "east", want: "Deployment shop/web in cluster east: 2 replicas\n\n" +
			"PlacementPolicy shop/images overrides:\n\n# overrides[0]\nclusters:\n  names:\n  - east\nlabels:\n  region: eu\n"},
		"the object of a cluster":               {cluster: "east", format: "yaml", want: "    region: eu\n"},
		"an override that cannot be applied":    {cluster: "west", want: "It cannot be applied: project Deployment shop/web to cluster \"west\": overrides[1] of PlacementPolicy shop/images: it may not change the number of replicas"},
		"an object that cannot be there":        {cluster: "west", format: "json", wantErr: "it may not change the number of replicas"},
		"a cluster that the workload is not in": {cluster: "north", wantErr: "it is not placed there, but on east, west"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			held, err := g.hold(t.Context(), object, test.cluster)
			if err == nil {
				err = held.print(&out, test.format)
			}
			if (err != nil) != (test.wantErr != "") || err != nil && !strings.Contains(err.Error(), test.wantErr) {
				t.Fatalf("error %v, want %q", err, test.wantErr)
			}
			if !strings.Contains(out.String(), test.want) {
				t.Errorf("printed\n%s\nwant\n%s", out.String(), test.want)
			}
		})
	}
}

func TestHoldLeavesOutWhatASharedNamespaceDoesNotHave(t *testing.T) {
	east := cluster("east", "8")
	decision := placement.Decision{"east": {Replicas: 2}}
	above := web(2, map[string]string{manifoldv1alpha1.AnnotationPlacement: decision.String()})
	above.Namespace = "default"
	above.Spec.Template.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "there"}, {Name: "missing"}}
	g := gatherer{
		client: kubefake.NewClientset(
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: "logical"}},
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}},
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "there"}}),
		manifold: fake.NewClientset(&east),
	}
	held, err := g.hold(t.Context(), toUnstructured(t, above), "east")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := held.print(&out, "yaml"); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.Contains(text, "name: there") || strings.Contains(text, "missing") {
		t.Errorf("it names what does not exist, or not what does:\n%s", text)
	}
}

package cluster

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned/fake"
)

func TestCordon(t *testing.T) {
	cordoned := named("west", "2")
	cordoned.Spec.Unschedulable = true
	for name, test := range map[string]struct {
		direction cordoning
		names     []string
		want      string
		problem   string
		cordoned  map[string]bool
	}{
		"cordon": {
			direction: cordon, names: []string{"east"}, want: "cluster/east cordoned\n",
			cordoned: map[string]bool{"east": true, "west": true},
		},
		"cordon what is cordoned": {
			direction: cordon, names: []string{"west"}, want: "cluster/west already cordoned\n",
			cordoned: map[string]bool{"east": false, "west": true},
		},
		"uncordon several": {
			direction: uncordon, names: []string{"east", "west"}, want: "cluster/east already uncordoned\ncluster/west uncordoned\n",
			cordoned: map[string]bool{"east": false, "west": false},
		},
		"one that there is not does not stop the rest": {
			direction: cordon, names: []string{"north", "east"}, want: "cluster/east cordoned\n", problem: `"north" not found`,
			cordoned: map[string]bool{"east": true, "west": true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewSimpleClientset(&manifoldv1alpha1.ClusterList{
				Items: []manifoldv1alpha1.Cluster{named("east", "1"), cordoned},
			})
			streams, _, out, _ := genericiooptions.NewTestIOStreams()
			o := &CordonOptions{
				IOStreams: streams, Names: test.names, Unschedulable: bool(test.direction), clusters: client.ManifoldV1alpha1().Clusters(),
			}
			err := o.Run(t.Context())
			if (err != nil) != (test.problem != "") || err != nil && !strings.Contains(err.Error(), test.problem) {
				t.Errorf("cordon: %v, want %q", err, test.problem)
			}
			if out.String() != test.want {
				t.Errorf("printed %q, want %q", out, test.want)
			}
			for name, want := range test.cordoned {
				c, err := o.clusters.Get(t.Context(), name, metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if c.Spec.Unschedulable != want {
					t.Errorf("cluster %s is cordoned: %t, want %t", name, c.Spec.Unschedulable, want)
				}
			}
		})
	}
}

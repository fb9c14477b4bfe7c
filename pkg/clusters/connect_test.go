package clusters

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

func TestOlderTwin(t *testing.T) {
	cluster := func(name, uid string, age int) *v1alpha1.Cluster {
		c := &v1alpha1.Cluster{Status: v1alpha1.ClusterStatus{UID: uid}}
		c.Name, c.CreationTimestamp = name, metav1.NewTime(noon.Add(-time.Duration(age)*time.Hour))
		return c
	}
	all := []*v1alpha1.Cluster{cluster("east", "uid-1", 2), cluster("copy", "uid-1", 1), cluster("also", "uid-1", 2), cluster("west", "uid-2", 9)}
	for name, test := range map[string]struct{ want string }{
		"east": {"also"}, "copy": {"east"}, "also": {""}, "west": {""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, c := range all {
				if c.Name == name {
					if got := olderTwin(c, c.Status.UID, all); got != test.want {
						t.Errorf("older twin %q, want %q", got, test.want)
					}
				}
			}
		})
	}
}

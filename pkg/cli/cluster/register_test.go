package cluster

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	manifoldfake "github.com/manifold-dev/manifold/generated/clientset/versioned/fake"
	"github.com/manifold-dev/manifold/pkg/cli/cluster/grants"
)

func named(name, uid string) manifoldv1alpha1.Cluster {
	return manifoldv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status:     manifoldv1alpha1.ClusterStatus{UID: uid},
	}
}

func leaving(c manifoldv1alpha1.Cluster) manifoldv1alpha1.Cluster {
	c.DeletionTimestamp = ptr.To(metav1.Now())
	return c
}

func TestRegistered(t *testing.T) {
	for name, test := range map[string]struct {
		name     string
		uid      types.UID
		clusters []manifoldv1alpha1.Cluster
		want     string
		refusal  string
	}{
		"a new cluster may join":                         {name: "east", uid: "1", clusters: []manifoldv1alpha1.Cluster{named("west", "2")}},
		"a cluster is found under its name":              {name: "east", uid: "1", clusters: []manifoldv1alpha1.Cluster{named("east", "1")}, want: "east"},
		"a cluster nobody has asked yet is taken over":   {name: "east", uid: "1", clusters: []manifoldv1alpha1.Cluster{named("east", "")}, want: "east"},
		"unknown clusters of other names do not matter":  {name: "east", uid: "1", clusters: []manifoldv1alpha1.Cluster{named("west", "")}},
		"a cluster cannot join under a second name":      {name: "east", uid: "1", clusters: []manifoldv1alpha1.Cluster{named("west", "1")}, refusal: `joined as "west"`},
		"nor while its first name is being removed":      {name: "east", uid: "1", clusters: []manifoldv1alpha1.Cluster{leaving(named("west", "1"))}, refusal: `joined as "west"`},
		"a name that stands for another cluster is kept": {name: "east", uid: "1", clusters: []manifoldv1alpha1.Cluster{named("east", "2")}, refusal: "taken by another cluster"},
		"a name that is being removed is not free yet":   {name: "east", uid: "1", clusters: []manifoldv1alpha1.Cluster{leaving(named("east", "1"))}, refusal: "being removed"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := registered(test.name, test.uid, test.clusters)
			if test.refusal != "" {
				if err == nil || !strings.Contains(err.Error(), test.refusal) {
					t.Errorf("registered: %v, want a refusal with %q", err, test.refusal)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if (got == nil) != (test.want == "") || got != nil && got.Name != test.want {
				t.Errorf("registered found %v, want %q", got, test.want)
			}
		})
	}
}

func TestSameCluster(t *testing.T) {
	joined := []manifoldv1alpha1.Cluster{named("east", "1"), named("west", "2"), named("north", "")}
	for name, test := range map[string]struct {
		name string
		uid  types.UID
		want string
	}{
		"the cluster itself":                    {name: "east", uid: "1"},
		"another one that has joined":           {name: "east", uid: "2", want: "kube-system UID is 2"},
		"one that has not joined":               {name: "east", uid: "3", want: "that of \"east\" is 1"},
		"one that was never asked":              {name: "north", uid: "3"},
		"one that is removed already":           {name: "south", uid: "3"},
		"one that is removed, but is another's": {name: "south", uid: "2", want: `it is "west"`},
	} {
		t.Run(name, func(t *testing.T) {
			err := sameCluster(test.name, test.uid, joined)
			if (err != nil) != (test.want != "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("sameCluster: %v, want %q", err, test.want)
			}
		})
	}
}

func TestALevelOfPodSecurityIsKeptThatTheLogicalClusterSays(t *testing.T) {
	for name, test := range map[string]struct{ asked, said, want, wantSaid string }{
		"one that is asked for":         {asked: grants.Baseline, said: grants.Restricted, want: grants.Baseline, wantSaid: grants.Baseline},
		"one of before":                 {said: grants.Restricted, want: grants.Restricted, wantSaid: grants.Restricted},
		"one that is lifted":            {asked: grants.Privileged, said: grants.Restricted, want: grants.Privileged},
		"none that anything is said of": {},
	} {
		t.Run(name, func(t *testing.T) {
			existing := named("east", "1")
			existing.Spec.Allows.PodSecurity = test.said
			got := keptTo(test.asked, &existing)
			if said := (grants.Allowances{PodSecurity: got}).Said().PodSecurity; got != test.want || said != test.wantSaid {
				t.Errorf("kept to %q, said %q, want %q and %q", got, said, test.want, test.wantSaid)
			}
		})
	}
}

func TestWhatIsAllowedIsStoredWithTheCluster(t *testing.T) {
	allows := manifoldv1alpha1.ClusterAllows{PriorityClassesUpTo: ptr.To[int32](7), Volumes: true, Pipelines: true, PodWebhooks: true, PodSecurity: grants.Restricted}
	for name, before := range map[string]manifoldv1alpha1.ClusterAllows{"nothing before": {}, "other things before": {Volumes: true, PodSecurity: grants.Baseline}} {
		t.Run(name, func(t *testing.T) {
			existing, want := named("east", "1"), named("east", "1")
			existing.Spec.Allows, want.Spec.Allows = before, allows
			client := manifoldfake.NewClientset(&existing)
			stored, err := (&logical{clusters: client.ManifoldV1alpha1().Clusters()}).merge(t.Context(), &want)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(stored.Spec.Allows, allows) {
				t.Errorf("stored %+v, want %+v", stored.Spec.Allows, allows)
			}
		})
	}
}

func TestJoiningAgainKeepsTheNetworkUnlessAnotherOneIsGiven(t *testing.T) {
	joined := &manifoldv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "east"},
		Spec:       manifoldv1alpha1.ClusterSpec{Network: "mesh", PodCIDRs: []string{"10.1.0.0/16"}},
	}
	for name, test := range map[string]struct {
		network, wantNetwork string
		cidrs, wantCIDRs     []string
	}{
		"nothing is said":                   {wantNetwork: "mesh", wantCIDRs: []string{"10.1.0.0/16"}},
		"another network, the same ranges":  {network: "other", wantNetwork: "other", wantCIDRs: []string{"10.1.0.0/16"}},
		"other ranges, in place of earlier": {cidrs: []string{"10.2.0.0/16"}, wantNetwork: "mesh", wantCIDRs: []string{"10.2.0.0/16"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := &logical{clusters: manifoldfake.NewClientset(joined.DeepCopy()).ManifoldV1alpha1().Clusters()}
			stored, err := l.merge(t.Context(), &manifoldv1alpha1.Cluster{
				ObjectMeta: metav1.ObjectMeta{Name: "east"}, Spec: manifoldv1alpha1.ClusterSpec{Network: test.network, PodCIDRs: test.cidrs},
			})
			if err != nil {
				t.Fatal(err)
			}
			if stored.Spec.Network != test.wantNetwork || !slices.Equal(stored.Spec.PodCIDRs, test.wantCIDRs) {
				t.Errorf("network %q with %v, want %q with %v", stored.Spec.Network, stored.Spec.PodCIDRs, test.wantNetwork, test.wantCIDRs)
			}
		})
	}
}

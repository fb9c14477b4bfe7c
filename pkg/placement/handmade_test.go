package placement

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

type volumeBuilder struct{ corev1.PersistentVolume }

// disk is a volume that is for nobody yet.
func disk(name, class, size string) *volumeBuilder {
	b := &volumeBuilder{}
	b.Name, b.Labels = name, map[string]string{"disk": name}
	b.Spec.StorageClassName = class
	b.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
	b.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	b.Status.Phase = corev1.VolumeAvailable
	return b
}

func (b *volumeBuilder) of(namespace, claim string, uid types.UID) *volumeBuilder {
	b.Spec.ClaimRef = &corev1.ObjectReference{Namespace: namespace, Name: claim, UID: uid}
	return b
}

func (b *volumeBuilder) modes(modes ...corev1.PersistentVolumeAccessMode) *volumeBuilder {
	b.Spec.AccessModes = modes
	return b
}

func (b *volumeBuilder) phase(phase corev1.PersistentVolumePhase) *volumeBuilder {
	b.Status.Phase = phase
	return b
}

func (b *volumeBuilder) block() *volumeBuilder {
	mode := corev1.PersistentVolumeBlock
	b.Spec.VolumeMode = &mode
	return b
}

// in has nodes of these zones alone reach the volume.
func (b *volumeBuilder) in(key string, operator corev1.NodeSelectorOperator, values ...string) *volumeBuilder {
	if b.Spec.NodeAffinity == nil {
		b.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{}}
	}
	required := b.Spec.NodeAffinity.Required
	required.NodeSelectorTerms = append(required.NodeSelectorTerms, corev1.NodeSelectorTerm{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: operator, Values: values}},
	})
	return b
}

// wish is a claim shop/data for 1Gi of a class; nil names none.
func wish(class *string, change ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "1"}}
	c.Spec.StorageClassName = class
	c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	for _, do := range change {
		do(c)
	}
	return c
}

func naming(volume string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = volume }
}

func TestVolumeForAClaim(t *testing.T) {
	none, manual, fast := "", "manual", "fast"
	offering := func(classes ...v1alpha1.ClusterStorageClass) []*v1alpha1.Cluster {
		c := &v1alpha1.Cluster{}
		c.Status.Classes = &v1alpha1.ClusterClasses{StorageClasses: classes}
		return []*v1alpha1.Cluster{{}, c} // of the first nothing is known
	}
	for name, test := range map[string]struct {
		volumes  []*volumeBuilder
		clusters []*v1alpha1.Cluster
		claim    *corev1.PersistentVolumeClaim
		want     string
		problem  string
	}{
		"one that names it":                           {volumes: []*volumeBuilder{disk("a", "", "1Gi").of("shop", "data", "")}, claim: wish(&none), want: "a"},
		"also if it is of another class":              {volumes: []*volumeBuilder{disk("a", "x", "1Gi").of("shop", "data", "")}, clusters: offering(v1alpha1.ClusterStorageClass{Name: "fast"}), claim: wish(&fast), want: "a"},
		"rather the one that knows its UID":           {volumes: []*volumeBuilder{disk("a", "", "1Gi").of("shop", "data", ""), disk("b", "", "1Gi").of("shop", "data", "1")}, claim: wish(&none), want: "b"},
		"not one of an earlier claim of the name":     {volumes: []*volumeBuilder{disk("a", "", "1Gi").of("shop", "data", "0")}, claim: wish(&none)},
		"not one of the same claim elsewhere":         {volumes: []*volumeBuilder{disk("a", "", "1Gi").of("bank", "data", "")}, claim: wish(&none)},
		"one that it names":                           {volumes: []*volumeBuilder{disk("a", "", "1Gi"), disk("b", "", "1Gi")}, claim: wish(&none, naming("b")), want: "b"},
		"not one that it names and that is another's": {volumes: []*volumeBuilder{disk("a", "", "1Gi").of("bank", "vault", "")}, claim: wish(&none, naming("a")), problem: "it names PersistentVolume a of the logical cluster, which is for the claim bank/vault"},
		"nor one of an earlier claim":                 {volumes: []*volumeBuilder{disk("a", "", "1Gi").of("shop", "data", "0")}, claim: wish(&none, naming("a")), problem: "it names PersistentVolume a of the logical cluster, which is for the claim shop/data: name another one, or none, in a new claim; that was an earlier one"},
		"one that it names and only its cluster has":  {volumes: []*volumeBuilder{disk("a", "", "1Gi")}, claim: wish(&none, naming("b"))},
		"a name is all that it asks for":              {volumes: []*volumeBuilder{disk("a", "", "1Gi").of("shop", "data", ""), disk("b", "", "1Gi")}, claim: wish(&none, naming("b")), want: "b"},

		"none that it names and that is too small":         {volumes: []*volumeBuilder{disk("a", "", "1Mi")}, claim: wish(&none, naming("a")), problem: "it names PersistentVolume a of the logical cluster, which it cannot have: it is too small, 1Mi for 1Gi"},
		"none that it names and that is of another class":  {volumes: []*volumeBuilder{disk("a", "x", "1Gi")}, claim: wish(&none, naming("a")), problem: "it names PersistentVolume a of the logical cluster, which it cannot have: its storageClassName"},
		"none that it names and that is read by one alone": {volumes: []*volumeBuilder{disk("a", "", "1Gi").modes(corev1.ReadOnlyMany)}, claim: wish(&none, naming("a")), problem: "it names PersistentVolume a of the logical cluster, which it cannot have: it lacks an access mode"},
		"the smallest that is large enough":                {volumes: []*volumeBuilder{disk("a", "manual", "9Gi"), disk("b", "manual", "2Gi"), disk("c", "manual", "1Mi")}, claim: wish(&manual), want: "b"},
		"the first by name of those alike":                 {volumes: []*volumeBuilder{disk("b", "manual", "1Gi"), disk("a", "manual", "1Gi")}, claim: wish(&manual), want: "a"},
		"none that is for others":                          {volumes: []*volumeBuilder{disk("a", "manual", "1Gi").of("bank", "vault", "")}, claim: wish(&manual)},
		"none of another class":                            {volumes: []*volumeBuilder{disk("a", "", "1Gi"), disk("b", "x", "1Gi")}, claim: wish(&manual)},
		"none that is read by one alone":                   {volumes: []*volumeBuilder{disk("a", "manual", "1Gi").modes(corev1.ReadOnlyMany)}, claim: wish(&manual)},
		"none that is a block device":                      {volumes: []*volumeBuilder{disk("a", "manual", "1Gi").block()}, claim: wish(&manual)},
		"none that has been used":                          {volumes: []*volumeBuilder{disk("a", "manual", "1Gi").phase(corev1.VolumeReleased)}, claim: wish(&manual)},
		"one that is new":                                  {volumes: []*volumeBuilder{disk("a", "manual", "1Gi").phase(corev1.VolumePending)}, claim: wish(&manual), want: "a"},
		"only what its selector meets": {volumes: []*volumeBuilder{disk("a", "manual", "1Gi"), disk("b", "manual", "1Gi")}, claim: wish(&manual, func(c *corev1.PersistentVolumeClaim) {
			c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"disk": "b"}}
		}), want: "b"},
		"of no class, for who wants one of none": {volumes: []*volumeBuilder{disk("a", "", "1Gi")}, clusters: offering(v1alpha1.ClusterStorageClass{Name: "fast", Default: true}), claim: wish(&none), want: "a"},
		"not for who leaves it to its cluster":   {volumes: []*volumeBuilder{disk("a", "", "1Gi")}, clusters: offering(v1alpha1.ClusterStorageClass{Name: "fast", Default: true}), claim: wish(nil)},
		"but where no cluster has a default":     {volumes: []*volumeBuilder{disk("a", "", "1Gi")}, clusters: offering(v1alpha1.ClusterStorageClass{Name: "fast"}), claim: wish(nil), want: "a"},
		"not of a class that a cluster makes":    {volumes: []*volumeBuilder{disk("a", "fast", "1Gi")}, clusters: offering(v1alpha1.ClusterStorageClass{Name: "fast"}), claim: wish(&fast)},
		"of a class whose volumes nobody makes":  {volumes: []*volumeBuilder{disk("a", "fast", "1Gi")}, clusters: offering(v1alpha1.ClusterStorageClass{Name: "fast", ByHand: true}), claim: wish(&fast), want: "a"},
		"of a class as it was named before": {volumes: []*volumeBuilder{disk("a", "manual", "1Gi")}, claim: wish(nil, func(c *corev1.PersistentVolumeClaim) {
			c.Annotations = map[string]string{corev1.BetaStorageClassAnnotation: "manual"}
		}), want: "a"},
		"who has one gets no other": {volumes: []*volumeBuilder{disk("a", "manual", "1Gi")}, claim: wish(&manual, func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimBound })},
	} {
		t.Run(name, func(t *testing.T) {
			shelf := Shelf{Clusters: test.clusters}
			for _, b := range test.volumes {
				shelf.Volumes = append(shelf.Volumes, &b.PersistentVolume)
			}
			got, problem := shelf.VolumeFor(test.claim)
			switch {
			case test.want == "" && got != nil:
				t.Errorf("it gets %s, want none", got.Name)
			case test.want != "" && (got == nil || got.Name != test.want):
				t.Errorf("it gets %v, want %s", got, test.want)
			case (problem == "") != (test.problem == "") || !strings.HasPrefix(problem, test.problem):
				t.Errorf("it is told %q, want %q", problem, test.problem)
			}
		})
	}
}

func (b *clusterBuilder) takesVolumes() *clusterBuilder { b.Allows.Volumes = true; return b }

// carrying has the workload use a volume that was made by hand.
func (b *requestBuilder) carrying(volume *volumeBuilder) *requestBuilder {
	b.Workload.HandMade = append(b.Workload.HandMade, &volume.PersistentVolume)
	return b
}

func TestPlaceByHandMadeVolumes(t *testing.T) {
	const zone = corev1.LabelTopologyZone
	zoned := func(name string, cores int64, zone string) *clusterBuilder {
		return cluster(name, cores).label(corev1.LabelTopologyZone, zone).takesVolumes()
	}
	testPlace(t, map[string]placeCase{
		"pods go where their volume may go, not where there is more room": {
			clusters: []*clusterBuilder{cluster("east", 10), cluster("west", 4).takesVolumes()},
			request:  deployment(2).carrying(disk("a", "", "1Gi")), want: shares("west", 2),
		},
		"it may go nowhere": {
			clusters: []*clusterBuilder{cluster("east", 10), cluster("west", 4)},
			request:  deployment(2).carrying(disk("a", "", "1Gi")), unplaced: 2,
			message: "0/2 clusters can run it: 2 do not take PersistentVolume a of the logical cluster",
		},
		"what runs stays where it is taken back": {
			clusters: []*clusterBuilder{cluster("east", 10), cluster("west", 4).takesVolumes()},
			request:  deployment(2).carrying(disk("a", "", "1Gi")).on(shares("east", 2)), want: shares("east", 2),
		},
		"the zone of the volume counts": {
			clusters: []*clusterBuilder{zoned("east", 10, "one"), zoned("west", 4, "two")},
			request:  deployment(2).carrying(disk("a", "", "1Gi").in(zone, corev1.NodeSelectorOpIn, "two")), want: shares("west", 2),
		},
		"so does what it was called before": {
			clusters: []*clusterBuilder{zoned("east", 10, "one"), zoned("west", 4, "two")},
			request:  deployment(2).carrying(disk("a", "", "1Gi").in(corev1.LabelFailureDomainBetaZone, corev1.NodeSelectorOpNotIn, "one")), want: shares("west", 2),
		},
		"any of its terms will do": {
			clusters: []*clusterBuilder{zoned("east", 10, "one"), zoned("west", 4, "two")},
			request:  deployment(2).carrying(disk("a", "", "1Gi").in(zone, corev1.NodeSelectorOpIn, "two").in(zone, corev1.NodeSelectorOpIn, "one")), want: shares("east", 2),
		},
		"what is not known of nodes is no reason": {
			clusters: []*clusterBuilder{cluster("east", 10).takesVolumes(), cluster("west", 4).takesVolumes()},
			request: deployment(2).carrying(disk("a", "", "1Gi").in(corev1.LabelHostname, corev1.NodeSelectorOpIn, "node-1")).
				carrying(disk("b", "", "1Gi").in(zone, corev1.NodeSelectorOpIn, "two")),
			want: shares("east", 2),
		},
		"out of reach": {
			clusters: []*clusterBuilder{zoned("east", 10, "one"), cluster("west", 4)},
			request:  deployment(2).carrying(disk("a", "", "1Gi").in(zone, corev1.NodeSelectorOpIn, "two")), unplaced: 2,
			message: "0/2 clusters can run it: 1 is out of reach of PersistentVolume a by its nodeAffinity, " +
				"1 does not take PersistentVolume a of the logical cluster",
		},
	})
}

func TestRemedyForAHandMadeVolume(t *testing.T) {
	request := deployment(1).carrying(disk("a", "", "1Gi"))
	s := snapshot(cluster("east", 10))
	got := Remedies(s, &request.Request, Place(s, request.Request))
	want := "let PersistentVolume a go there along with its claim: manifold cluster join east --cluster-kubeconfig FILE --allow-volumes"
	if len(got["east"]) != 1 || got["east"][0] != want {
		t.Errorf("it says %q, want %q", got, want)
	}
}

package handmade

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement/build"
)

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
		volumes  []*build.VolumeBuilder
		clusters []*v1alpha1.Cluster
		claim    *corev1.PersistentVolumeClaim
		want     string
		problem  string
	}{
		"one that names it":                           {volumes: []*build.VolumeBuilder{build.Disk("a", "", "1Gi").Of("shop", "data", "")}, claim: wish(&none), want: "a"},
		"also if it is of another class":              {volumes: []*build.VolumeBuilder{build.Disk("a", "x", "1Gi").Of("shop", "data", "")}, clusters: offering(v1alpha1.ClusterStorageClass{Name: "fast"}), claim: wish(&fast), want: "a"},
		"rather the one that knows its UID":           {volumes: []*build.VolumeBuilder{build.Disk("a", "", "1Gi").Of("shop", "data", ""), build.Disk("b", "", "1Gi").Of("shop", "data", "1")}, claim: wish(&none), want: "b"},
		"not one of an earlier claim of the name":     {volumes: []*build.VolumeBuilder{build.Disk("a", "", "1Gi").Of("shop", "data", "0")}, claim: wish(&none)},
		"not one of the same claim elsewhere":         {volumes: []*build.VolumeBuilder{build.Disk("a", "", "1Gi").Of("bank", "data", "")}, claim: wish(&none)},
		"one that it names":                           {volumes: []*build.VolumeBuilder{build.Disk("a", "", "1Gi"), build.Disk("b", "", "1Gi")}, claim: wish(&none, naming("b")), want: "b"},
		"not one that it names and that is another's": {volumes: []*build.VolumeBuilder{build.Disk("a", "", "1Gi").Of("bank", "vault", "")}, claim: wish(&none, naming("a")), problem: "it names PersistentVolume a of the logical cluster, which is for the claim bank/vault"},
		"nor one of an earlier claim":                 {volumes: []*build.VolumeBuilder{build.Disk("a", "", "1Gi").Of("shop", "data", "0")}, claim: wish(&none, naming("a")), problem: "it names PersistentVolume a of the logical cluster, which is for the claim shop/data: name another one, or none, in a new claim; that was an earlier one"},
		"one that it names and only its cluster has":  {volumes: []*build.VolumeBuilder{build.Disk("a", "", "1Gi")}, claim: wish(&none, naming("b"))},
		"a name is all that it asks for":              {volumes: []*build.VolumeBuilder{build.Disk("a", "", "1Gi").Of("shop", "data", ""), build.Disk("b", "", "1Gi")}, claim: wish(&none, naming("b")), want: "b"},

		"none that it names and that is too small":         {volumes: []*build.VolumeBuilder{build.Disk("a", "", "1Mi")}, claim: wish(&none, naming("a")), problem: "it names PersistentVolume a of the logical cluster, which it cannot have: it is too small, 1Mi for 1Gi"},
		"none that it names and that is of another class":  {volumes: []*build.VolumeBuilder{build.Disk("a", "x", "1Gi")}, claim: wish(&none, naming("a")), problem: "it names PersistentVolume a of the logical cluster, which it cannot have: its storageClassName"},
		"none that it names and that is read by one alone": {volumes: []*build.VolumeBuilder{build.Disk("a", "", "1Gi").Modes(corev1.ReadOnlyMany)}, claim: wish(&none, naming("a")), problem: "it names PersistentVolume a of the logical cluster, which it cannot have: it lacks an access mode"},
		"the smallest that is large enough":                {volumes: []*build.VolumeBuilder{build.Disk("a", "manual", "9Gi"), build.Disk("b", "manual", "2Gi"), build.Disk("c", "manual", "1Mi")}, claim: wish(&manual), want: "b"},
		"the first by name of those alike":                 {volumes: []*build.VolumeBuilder{build.Disk("b", "manual", "1Gi"), build.Disk("a", "manual", "1Gi")}, claim: wish(&manual), want: "a"},
		"none that is for others":                          {volumes: []*build.VolumeBuilder{build.Disk("a", "manual", "1Gi").Of("bank", "vault", "")}, claim: wish(&manual)},
		"none of another class":                            {volumes: []*build.VolumeBuilder{build.Disk("a", "", "1Gi"), build.Disk("b", "x", "1Gi")}, claim: wish(&manual)},
		"none that is read by one alone":                   {volumes: []*build.VolumeBuilder{build.Disk("a", "manual", "1Gi").Modes(corev1.ReadOnlyMany)}, claim: wish(&manual)},
		"none that is a block device":                      {volumes: []*build.VolumeBuilder{build.Disk("a", "manual", "1Gi").Block()}, claim: wish(&manual)},
		"none that has been used":                          {volumes: []*build.VolumeBuilder{build.Disk("a", "manual", "1Gi").Phase(corev1.VolumeReleased)}, claim: wish(&manual)},
		"one that is new":                                  {volumes: []*build.VolumeBuilder{build.Disk("a", "manual", "1Gi").Phase(corev1.VolumePending)}, claim: wish(&manual), want: "a"},
		"only what its selector meets": {volumes: []*build.VolumeBuilder{build.Disk("a", "manual", "1Gi"), build.Disk("b", "manual", "1Gi")}, claim: wish(&manual, func(c *corev1.PersistentVolumeClaim) {
			c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"disk": "b"}}
		}), want: "b"},
		"of no class, for who wants one of none": {volumes: []*build.VolumeBuilder{build.Disk("a", "", "1Gi")}, clusters: offering(v1alpha1.ClusterStorageClass{Name: "fast", Default: true}), claim: wish(&none), want: "a"},
		"not for who leaves it to its cluster":   {volumes: []*build.VolumeBuilder{build.Disk("a", "", "1Gi")}, clusters: offering(v1alpha1.ClusterStorageClass{Name: "fast", Default: true}), claim: wish(nil)},
		"but where no cluster has a default":     {volumes: []*build.VolumeBuilder{build.Disk("a", "", "1Gi")}, clusters: offering(v1alpha1.ClusterStorageClass{Name: "fast"}), claim: wish(nil), want: "a"},
		"not of a class that a cluster makes":    {volumes: []*build.VolumeBuilder{build.Disk("a", "fast", "1Gi")}, clusters: offering(v1alpha1.ClusterStorageClass{Name: "fast"}), claim: wish(&fast)},
		"of a class whose volumes nobody makes":  {volumes: []*build.VolumeBuilder{build.Disk("a", "fast", "1Gi")}, clusters: offering(v1alpha1.ClusterStorageClass{Name: "fast", ByHand: true}), claim: wish(&fast), want: "a"},
		"of a class as it was named before": {volumes: []*build.VolumeBuilder{build.Disk("a", "manual", "1Gi")}, claim: wish(nil, func(c *corev1.PersistentVolumeClaim) {
			c.Annotations = map[string]string{corev1.BetaStorageClassAnnotation: "manual"}
		}), want: "a"},
		"who has one gets no other": {volumes: []*build.VolumeBuilder{build.Disk("a", "manual", "1Gi")}, claim: wish(&manual, func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimBound })},
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

func TestTheVolumeThatAClaimHasGot(t *testing.T) {
	for name, test := range map[string]struct {
		volume *build.VolumeBuilder
		want   bool
	}{
		"one that knows its UID":                  {volume: build.Disk("a", "", "1Gi").Of("shop", "data", "1"), want: true},
		"not one that is only meant for it":       {volume: build.Disk("a", "", "1Gi").Of("shop", "data", "")},
		"not one of an earlier claim of its name": {volume: build.Disk("a", "", "1Gi").Of("shop", "data", "0")},
		"not one of another namespace":            {volume: build.Disk("a", "", "1Gi").Of("bank", "data", "1")},
		"not one that it could have":              {volume: build.Disk("a", "", "1Gi")},
	} {
		t.Run(name, func(t *testing.T) {
			shelf := Shelf{Volumes: []*corev1.PersistentVolume{&test.volume.PersistentVolume}}
			// Of a name that a cluster shows nothing follows: its volume may be called like one of the logical cluster.
			if got := shelf.Had(wish(nil, naming("a"))); (got != nil) != test.want {
				t.Errorf("it has %v, want one: %v", got, test.want)
			}
		})
	}
}

package mirror

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

func TestWhatCannotBeTheMirrorOfAClaim(t *testing.T) {
	known := ReplicaClaim(&corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data", Labels: pairs{"tier": "db"}, OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "example.com/v1", Kind: "Bank", Name: "bank", UID: "above"},
			{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db", UID: "guessed"}, // the cluster knows which one it is
		}},
		Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}},
	}, &metav1.LabelSelector{MatchLabels: pairs{"app": "db"}})
	shown := func(change func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
		claim := &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: "data-db-0", Labels: pairs{"app": "bank"}, Annotations: pairs{"pv.kubernetes.io/bound-by-controller": "yes"},
				Finalizers:      []string{"kubernetes.io/pvc-protection", v1alpha1.FinalizerProjection},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db", UID: "below"}}},
			Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv-1", StorageClassName: ptr.To("fast")},
		}
		known.Claim(claim, nil)
		claim.Annotations[v1alpha1.AnnotationCluster] = "east"
		change(claim)
		return claim
	}
	if owners := shown(func(*corev1.PersistentVolumeClaim) {}).OwnerReferences; len(owners) != 2 || owners[0].UID != "below" || owners[1].UID != "above" {
		t.Errorf("it belongs to %v, want to what its cluster and its template say", owners)
	}
	for name, test := range map[string]struct {
		change func(*corev1.PersistentVolumeClaim)
		want   string
	}{
		"what the syncer makes of one is one": {func(*corev1.PersistentVolumeClaim) {}, ""},
		"a size is the cluster's": {func(c *corev1.PersistentVolumeClaim) {
			c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("5Gi")}
		}, ""},
		"with a label of its own":   {func(c *corev1.PersistentVolumeClaim) { c.Labels["backup"] = "no" }, "backup"},
		"without one of its set":    {func(c *corev1.PersistentVolumeClaim) { delete(c.Labels, "app") }, "app is missing"},
		"that others may write to":  {func(c *corev1.PersistentVolumeClaim) { c.Spec.AccessModes[0] = corev1.ReadWriteMany }, "field AccessModes"},
		"that orphans what it owns": {func(c *corev1.PersistentVolumeClaim) { c.Finalizers = []string{"orphan"} }, "metadata.finalizers"},
		"with a decision":           {func(c *corev1.PersistentVolumeClaim) { c.Annotations[v1alpha1.AnnotationPlacement] = "{}" }, "manifold.dev/placement"},
		"of another cluster":        {func(c *corev1.PersistentVolumeClaim) { c.Annotations[v1alpha1.AnnotationCluster] = "west" }, "manifold.dev/cluster"},
		"pinned":                    {func(c *corev1.PersistentVolumeClaim) { c.Annotations[v1alpha1.AnnotationClusters] = "west" }, "manifold.dev/clusters"},
		"filled from what nobody knew": {func(c *corev1.PersistentVolumeClaim) {
			c.Spec.DataSource = &corev1.TypedLocalObjectReference{Name: "x"}
		}, "field DataSource"},
	} {
		t.Run(name, func(t *testing.T) {
			for what, stored := range map[string]*corev1.PersistentVolumeClaim{"new": nil, "stored": shown(func(*corev1.PersistentVolumeClaim) {})} {
				if got := errorText(known.CheckClaim(shown(test.change), stored, "east")); !strings.Contains(got, test.want) || (got == "") != (test.want == "") {
					t.Errorf("%s: error %q, want %q in it", what, got, test.want)
				}
			}
		})
	}
}

// An owner that nobody knows has the garbage collector delete the claim, and one that is missing lets it stay for ever.
func TestANewMirrorOfAClaimBelongsToWhatItsTemplateSays(t *testing.T) {
	mine := metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Bank", Name: "bank", UID: "above"}
	known := ReplicaClaim(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{mine}}}, nil)
	others := mine
	others.UID = "other"
	for name, test := range map[string]struct {
		owners []metav1.OwnerReference
		want   bool
	}{
		"to that":             {[]metav1.OwnerReference{mine}, true},
		"to nothing":          {nil, false},
		"to something else":   {[]metav1.OwnerReference{others}, false},
		"to something beside": {[]metav1.OwnerReference{mine, others}, false},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{OwnerReferences: test.owners}}
			if err := known.CheckClaim(claim, nil, ""); (err == nil) != test.want {
				t.Errorf("error %v, want it taken: %t", err, test.want)
			}
		})
	}
}

func TestClaimsOfVolumesThatComeAndGo(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-1"}, Spec: corev1.PodSpec{Volumes: []corev1.Volume{
		{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
			VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{ObjectMeta: metav1.ObjectMeta{Labels: pairs{"a": "b"}}},
		}}},
		{Name: "plain"},
	}}}
	for claim, want := range map[string]bool{"web-1-scratch": true, "web-1-plain": false, "web-2-scratch": false} {
		known, got := EphemeralClaim(pod, claim)
		if got != want || want && known.Labels["a"] != "b" {
			t.Errorf("%s is of the pod: %t with labels %v, want %t", claim, got, known.Labels, want)
		}
	}
}

func TestWhatCannotBeAnEventOfACluster(t *testing.T) {
	shown := func(change func(*corev1.Event)) *corev1.Event {
		event := &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: EventName("web-1.17", "east"), Labels: pairs{"a": "b"}, Annotations: pairs{"c": "d"}},
			Source:     corev1.EventSource{Component: "Manifold"}, ReportingController: "manifold.dev/placement", Related: &corev1.ObjectReference{},
		}
		Event(event, corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: "web-1", UID: "u"}, "east")
		change(event)
		return event
	}
	for name, test := range map[string]struct {
		change func(*corev1.Event)
		want   string
	}{
		"what the syncer makes of one is one": {func(*corev1.Event) {}, ""},
		"one of the kubelet":                  {func(e *corev1.Event) { e.Source = corev1.EventSource{Component: "kubelet", Host: "node-1"} }, ""},
		"one of another cluster":              {func(e *corev1.Event) { e.Name = "web-1.17.west" }, "metadata.name"},
		"one about another namespace":         {func(e *corev1.Event) { e.InvolvedObject.Namespace = "kube-system" }, "another namespace"},
		"one with labels":                     {func(e *corev1.Event) { e.Labels = pairs{"a": "b"} }, "metadata"},
		"one with marks":                      {func(e *corev1.Event) { e.Annotations[v1alpha1.AnnotationPlacement] = "{}" }, "metadata"},
		"one that leads elsewhere":            {func(e *corev1.Event) { e.Related = &corev1.ObjectReference{Name: "x"} }, "involvedObject"},
		"one of Manifold":                     {func(e *corev1.Event) { e.Source.Component = "manifold" }, "claims to be"},
		"one of a part of Manifold":           {func(e *corev1.Event) { e.ReportingController = "manifold.dev/syncer" }, "claims to be"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := errorText(CheckEvent(shown(test.change), "east")); !strings.Contains(got, test.want) || (got == "") != (test.want == "") {
				t.Errorf("error %q, want %q in it", got, test.want)
			}
		})
	}
}

package summary

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

func TestPersistentVolumeClaim(t *testing.T) {
	says := func(phase corev1.PersistentVolumeClaimPhase, size string) Report {
		status := corev1.PersistentVolumeClaimStatus{Phase: phase}
		if size != "" {
			status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
		}
		return Report{Live: &corev1.PersistentVolumeClaim{Status: status}}
	}
	type reports = map[string]Report
	for name, test := range map[string]struct {
		before  corev1.PersistentVolumeClaimPhase
		reports reports
		want    corev1.PersistentVolumeClaimPhase
		size    string
	}{
		"that of its cluster":                          {corev1.ClaimPending, reports{"east": says(corev1.ClaimBound, "1Gi")}, corev1.ClaimBound, "1Gi"},
		"bound once all have bound it":                 {corev1.ClaimPending, reports{"east": says(corev1.ClaimBound, "2Gi"), "west": says(corev1.ClaimBound, "1Gi")}, corev1.ClaimBound, "1Gi"},
		"pending while one has not":                    {corev1.ClaimPending, reports{"east": says(corev1.ClaimBound, "2Gi"), "west": says(corev1.ClaimPending, "")}, corev1.ClaimPending, "2Gi"},
		"lost when one has lost its volume":            {corev1.ClaimBound, reports{"east": says(corev1.ClaimLost, ""), "west": says(corev1.ClaimBound, "")}, corev1.ClaimLost, ""},
		"no cluster leaves it as it is":                {corev1.ClaimPending, nil, corev1.ClaimPending, ""},
		"a silent cluster's last word stands":          {corev1.ClaimBound, reports{"east": {Stale: true, Live: &corev1.PersistentVolumeClaim{}}}, corev1.ClaimBound, ""},
		"a cluster that cannot hold it says no status": {corev1.ClaimPending, reports{"east": {Problem: "the name is taken"}}, corev1.ClaimPending, ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := &corev1.PersistentVolumeClaim{Status: corev1.PersistentVolumeClaimStatus{Phase: test.before}}
			got := PersistentVolumeClaim(in, Input{Reports: test.reports})
			size := got.Capacity[corev1.ResourceStorage]
			if got.Phase != test.want || test.size != "" && size.String() != test.size {
				t.Errorf("%s of %s, want %s of %s", got.Phase, size.String(), test.want, test.size)
			}
		})
	}
}

func TestAClaimShowsTheVolumeThatItIsBoundTo(t *testing.T) {
	bound := func(volume string) Report {
		claim := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{VolumeName: volume}}
		claim.Annotations = map[string]string{"pv.kubernetes.io/bound-by-controller": "yes"}
		return Report{Live: claim}
	}
	asked := func(volume string) Report {
		return Report{Live: &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{VolumeName: volume}}}
	}
	type reports = map[string]Report
	silent := persistentVolumeClaimKind.build().LastKnown(ClusterStatus{Volume: "pv-1"})
	for name, test := range map[string]struct {
		volume, breakdown string // before
		reports           reports
		want              string
		wantBreakdown     string
	}{
		"that of its cluster":     {"", "", reports{"east": bound("pv-1")}, "pv-1", `{"east":{"volume":"pv-1"}}`},
		"none before it is bound": {"", `{"east":{}}`, reports{"east": asked("")}, "", `{"east":{}}`},
		"still the same":          {"pv-1", `{"east":{"volume":"pv-1"}}`, reports{"east": bound("pv-1")}, "pv-1", `{"east":{"volume":"pv-1"}}`},
		"none when several clusters have one": {"pv-1", `{"east":{"volume":"pv-1"}}`, reports{"east": bound("pv-1"), "west": bound("pv-2")}, "",
			`{"east":{"volume":"pv-1"},"west":{"volume":"pv-2"}}`},
		"not the lack of one that cannot have it": {"", "", reports{"east": bound("pv-1"), "west": {Problem: "the name is taken"}}, "pv-1",
			`{"east":{"volume":"pv-1"},"west":{"problem":"the name is taken"}}`},
		"another's once its cluster has left":                  {"pv-1", `{"east":{"volume":"pv-1"}}`, reports{"west": bound("pv-2")}, "pv-2", `{"west":{"volume":"pv-2"}}`},
		"none once all have left":                              {"pv-1", `{"east":{"volume":"pv-1"}}`, nil, "", `{}`},
		"a silent cluster's as it was":                         {"pv-1", `{"east":{"volume":"pv-1"}}`, reports{"east": silent}, "pv-1", `{"east":{"volume":"pv-1","stale":true}}`},
		"the one that its user asks for":                       {"mine", "", reports{"east": asked("mine")}, "mine", `{"east":{}}`},
		"what its user asks for, though a cluster has another": {"mine", "", reports{"east": bound("pv-1")}, "mine", `{"east":{"volume":"pv-1"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			in := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{VolumeName: test.volume}}
			if test.breakdown != "" {
				in.Annotations = map[string]string{v1alpha1.AnnotationStatus: test.breakdown}
			}
			kind := persistentVolumeClaimKind.build()
			if got := kind.Summarise(in, Input{Reports: test.reports}).(*corev1.PersistentVolumeClaim).Spec.VolumeName; got != test.want {
				t.Errorf("shows volume %q, want %q", got, test.want)
			}
			breakdown := kind.BreakdownOf(test.reports).String()
			if breakdown == "" {
				breakdown = "{}"
			}
			if breakdown != test.wantBreakdown {
				t.Errorf("breakdown %s, want %s", breakdown, test.wantBreakdown)
			}
		})
	}
}

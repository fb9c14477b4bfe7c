package summary

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
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

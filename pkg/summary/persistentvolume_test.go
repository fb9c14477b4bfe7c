package summary

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// disk is a volume that is for a claim of some UID, "" for one that nobody has bound, in some phase.
func disk(uid types.UID, phase corev1.PersistentVolumePhase) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{}
	v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: uid}
	v.Status.Phase, v.Status.Message = phase, "no\x1b[1m plugin"
	return v
}

func TestSaneVolume(t *testing.T) {
	bank := func(uid types.UID, phase corev1.PersistentVolumePhase) *corev1.PersistentVolume {
		v := disk(uid, phase)
		v.Spec.ClaimRef.Namespace = "bank"
		return v
	}
	for name, test := range map[string]struct {
		live    *corev1.PersistentVolume
		claim   types.UID
		another bool // the volume may have been for another claim when the cluster was given it
		want    corev1.PersistentVolumePhase
		doubt   string
	}{
		"it is on its way":         {live: disk("", ""), claim: "1", want: corev1.VolumePending},
		"it waits for its claim":   {live: disk("", corev1.VolumeAvailable), claim: "1", want: corev1.VolumeAvailable},
		"its claim has it":         {live: disk("1", corev1.VolumeBound), claim: "1", want: corev1.VolumeBound},
		"its claim has gone":       {live: disk("1", corev1.VolumeReleased), want: corev1.VolumeReleased},
		"it could not be deleted":  {live: disk("1", corev1.VolumeFailed), want: corev1.VolumeFailed},
		"it could not be recycled": {live: disk("1", corev1.VolumeFailed), claim: "2", want: corev1.VolumeFailed},
		"somebody below has freed it of a claim that has gone": {live: func() *corev1.PersistentVolume {
			v := disk("", corev1.VolumeReleased)
			v.Spec.ClaimRef = nil
			return v
		}(), claim: "1", want: corev1.VolumeReleased},
		"an earlier claim of that name has released it": {live: disk("0", corev1.VolumeReleased), claim: "1", want: corev1.VolumeReleased},

		// One watch is ahead of the other.
		"it is bound, and its claim has gone already":            {live: disk("1", corev1.VolumeBound), want: corev1.VolumePending},
		"it is bound, and its claim is not seen yet":             {live: disk("2", corev1.VolumeBound), want: corev1.VolumePending},
		"it is bound to the claim that was there before":         {live: disk("0", corev1.VolumeBound), claim: "1", want: corev1.VolumePending},
		"it is released, and its claim is not seen to have gone": {live: disk("1", corev1.VolumeReleased), claim: "1", want: corev1.VolumePending},
		"it has failed, and its claim is not seen to have gone":  {live: disk("1", corev1.VolumeFailed), claim: "1", want: corev1.VolumePending},
		"it is still bound to the claim that it was for":         {live: bank("1", corev1.VolumeBound), another: true, want: corev1.VolumePending},
		"the claim that it was for has released it":              {live: bank("1", corev1.VolumeReleased), another: true, want: corev1.VolumeReleased},

		"it is bound to the claim that it was for, under the UID of the one that it is for": {live: bank("1", corev1.VolumeBound), claim: "1", another: true, want: corev1.VolumePending},

		// Lies.
		"a claim of another namespace has it":          {live: bank("1", corev1.VolumeBound), claim: "1", want: corev1.VolumePending, doubt: "it is bound to another claim than the one that it is for"},
		"that has it where its claim is not":           {live: bank("2", corev1.VolumeBound), want: corev1.VolumePending, doubt: "it is bound to another claim than the one that it is for"},
		"a claim of another namespace has released it": {live: bank("1", corev1.VolumeReleased), claim: "1", want: corev1.VolumePending, doubt: "it is released by another claim"},
		"that has, where its claim has gone":           {live: bank("1", corev1.VolumeFailed), want: corev1.VolumePending, doubt: "it is released by another claim"},
		"nobody has it, and it is bound all the same":  {live: disk("", corev1.VolumeBound), claim: "1", want: corev1.VolumePending, doubt: "it is bound to no claim"},
		"nobody has it, whoever it was for":            {live: disk("", corev1.VolumeBound), another: true, want: corev1.VolumePending, doubt: "it is bound to no claim"},
		"it is in a phase that there is not":           {live: disk("1", "Stolen"), claim: "1", want: corev1.VolumePending, doubt: `phase "Stolen" is none`},
	} {
		t.Run(name, func(t *testing.T) {
			got := SaneVolume(test.live, GivenVolume{For: &corev1.ObjectReference{Namespace: "shop", Name: "data"}, Current: !test.another, Claim: test.claim})
			doubt := strings.Join(got.Doubts, "; ")
			if got.Phase != test.want || !strings.HasPrefix(doubt, test.doubt) || (doubt == "") != (test.doubt == "") {
				t.Errorf("it counts as %+v, want %s and doubts %q", got, test.want, test.doubt)
			}
			if strings.Contains(got.Message, "\x1b") || (got.Message != "") != (test.want == corev1.VolumeFailed) {
				t.Errorf("message %q", got.Message)
			}
		})
	}
}

func TestPersistentVolume(t *testing.T) {
	says := func(phase corev1.PersistentVolumePhase) map[string]VolumeReport {
		return map[string]VolumeReport{"east": {Phase: phase, Message: "no plugin"}}
	}
	free := disk("", "")
	free.Spec.ClaimRef = nil
	for name, test := range map[string]struct {
		in      *corev1.PersistentVolume
		present bool
		reports map[string]VolumeReport
		want    corev1.PersistentVolumePhase
		message string
	}{
		"for nobody":                                 {in: free, want: corev1.VolumeAvailable},
		"for a claim that was never there":           {in: disk("", corev1.VolumePending), want: corev1.VolumeAvailable},
		"for one that no cluster has yet":            {in: disk("1", corev1.VolumeAvailable), present: true, want: corev1.VolumeAvailable},
		"for one that waits for it":                  {in: disk("1", corev1.VolumeAvailable), present: true, reports: says(corev1.VolumeAvailable), want: corev1.VolumeAvailable},
		"for one that has it":                        {in: disk("1", corev1.VolumeAvailable), present: true, reports: says(corev1.VolumeBound), want: corev1.VolumeBound},
		"of a cluster that is silent":                {in: disk("1", corev1.VolumeBound), present: true, want: corev1.VolumeBound},
		"on its way to another cluster":              {in: disk("1", corev1.VolumeBound), present: true, reports: says(corev1.VolumeReleased), want: corev1.VolumeBound},
		"for one that is gone":                       {in: disk("1", corev1.VolumeBound), reports: says(corev1.VolumeBound), want: corev1.VolumeReleased},
		"for one that is gone with everything of it": {in: disk("1", corev1.VolumeReleased), want: corev1.VolumeReleased},
		"for one that is gone, and it stays":         {in: disk("1", corev1.VolumeReleased), reports: says(corev1.VolumeFailed), want: corev1.VolumeFailed, message: `cluster "east": no plugin`},
		"free again": {in: func() *corev1.PersistentVolume {
			v := free.DeepCopy()
			v.Status.Phase = corev1.VolumeReleased
			return v
		}(), want: corev1.VolumeAvailable},
		"a cluster cannot have it":                    {in: disk("1", corev1.VolumeAvailable), present: true, reports: map[string]VolumeReport{"east": {Problem: "the name is taken"}}, want: corev1.VolumeAvailable, message: `cluster "east": the name is taken`},
		"a claim that is gone has it, by a cluster":   {in: disk("1", corev1.VolumeReleased), reports: says(corev1.VolumeBound), want: corev1.VolumeReleased},
		"a cluster says that it failed before it did": {in: disk("1", corev1.VolumeBound), present: true, reports: says(corev1.VolumeFailed), want: corev1.VolumeBound},
	} {
		t.Run(name, func(t *testing.T) {
			if got := PersistentVolume(test.in, test.present, test.reports); got.Phase != test.want || got.Message != test.message {
				t.Errorf("it is %s, %q, want %s, %q", got.Phase, got.Message, test.want, test.message)
			}
		})
	}
}

func TestVolumeHolders(t *testing.T) {
	everywhere := func(string) bool { return true }
	released := VolumeHolders{"east": {Phase: corev1.VolumeReleased}, "west": {Phase: corev1.VolumeBound}}
	if !released.Reclaimed(everywhere) {
		t.Error("what was released and is gone counts as reclaimed")
	}
	if released.Reclaimed(func(cluster string) bool { return cluster != "west" }) {
		t.Error("west still has it, or cannot be asked")
	}
	if (VolumeHolders{"east": {Phase: corev1.VolumeBound}}).Reclaimed(everywhere) || (VolumeHolders{}).Reclaimed(everywhere) {
		t.Error("nobody knows what became of the data of a volume that was not released")
	}
	in := &corev1.PersistentVolume{}
	in.Annotations = map[string]string{v1alpha1.AnnotationStatus: released.String()}
	if got := HoldersOf(in); len(got) != 2 || !got["east"].Released() || got["west"].Released() {
		t.Errorf("written as %q it reads as %v", released, got)
	}
	if in.Annotations[v1alpha1.AnnotationStatus] = "nonsense"; len(HoldersOf(in)) != 0 || (VolumeHolders{}).String() != "" {
		t.Error("nonsense is no record")
	}
}

package mirrors

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
)

func TestPodsThatOnlyJustBeginWaitForTheirNextState(t *testing.T) {
	pending := func(conditions ...corev1.PodCondition) *corev1.Pod {
		return &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: conditions}}
	}
	for name, test := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"one that was just made":            {pending(), true},
		"one that was bound":                {pending(corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}), true},
		"not one that no node has room for": {pending(corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse}), false},
		"not one that runs":                 {&corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := beginning(test.pod); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

// A pod lives as long as any of its owners does. What is known above alone, the garbage collector below must not decide about.
func TestAPodOfAControllerIsSparedForItsOtherOwners(t *testing.T) {
	loose := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "c", UID: "c"}
	space := metav1.OwnerReference{APIVersion: "v1", Kind: "Namespace", Name: "shop", UID: "uid-of-shop"}
	above := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "above", Controller: ptr.To(true)}
	lower := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "below", Controller: ptr.To(true)}
	for name, test := range map[string]struct {
		above, below []metav1.OwnerReference
		want         string
	}{
		"it has another":           {[]metav1.OwnerReference{loose, above}, []metav1.OwnerReference{lower}, `[{"apiVersion":"v1","kind":"Namespace","name":"shop","uid":"uid-of-shop"}]`},
		"and is spared":            {[]metav1.OwnerReference{loose, above}, []metav1.OwnerReference{lower, space}, ""},
		"it has none any more":     {[]metav1.OwnerReference{above}, []metav1.OwnerReference{lower, space}, `[{"$patch":"delete","uid":"uid-of-shop"}]`},
		"it has none":              {[]metav1.OwnerReference{above}, []metav1.OwnerReference{lower}, ""},
		"nobody controls it there": {[]metav1.OwnerReference{loose}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			user := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", UID: "uid-of-web-1"}}
			live := user.DeepCopy()
			user.OwnerReferences, live.OwnerReferences = test.above, test.below
			client := fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "uid-of-shop"}}, live)
			p := &Pods{Options: Options{Client: client}}
			if err := p.spare(t.Context(), user, live); err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, action := range client.Actions() {
				if patch, ok := action.(clienttesting.PatchAction); ok {
					got = string(patch.GetPatch())
				}
			}
			want := ""
			if test.want != "" {
				want = `{"metadata":{"ownerReferences":` + test.want + `,"uid":"uid-of-web-1"}}`
			}
			if got != want {
				t.Errorf("patched with %s, want %s", got, want)
			}
		})
	}
}

func TestAddressesThatAPodIsShownWithoutAreTold(t *testing.T) {
	for address, want := range map[string]string{
		"127.0.0.1": `Warning NotShown cluster "west" says that this pod has the address "127.0.0.1", which no pod can have, so it is shown without`,
		"10.2.0.1":  "",
	} {
		recorder := record.NewFakeRecorder(1)
		pod := &corev1.Pod{Status: corev1.PodStatus{PodIP: address, PodIPs: []corev1.PodIP{{IP: address}}}}
		Options{Cluster: "west", Recorder: recorder}.tellAddresses(pod, pod)
		got := ""
		if len(recorder.Events) > 0 {
			got = <-recorder.Events
		}
		if got != want {
			t.Errorf("%s: told %q, want %q", address, got, want)
		}
	}
}

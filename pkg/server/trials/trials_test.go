package trials

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/manifold-dev/manifold/pkg/syncer/lacking"
)

func TestATrialTellsWhatAdmissionSaysOfAPod(t *testing.T) {
	pods := corev1.Resource("pods")
	for name, test := range map[string]struct {
		answer               error
		wantRefused, wantErr bool
		wantAsked            int // of two tries
	}{
		"it is admitted": {wantAsked: 1},
		"it is admitted, and there is such a one": {answer: apierrors.NewAlreadyExists(pods, "web"), wantAsked: 1},
		"it violates what its namespace asks for": {
			answer: apierrors.NewForbidden(pods, "web-", errors.New(`violates PodSecurity "baseline:latest": host namespaces (hostPID=true)`)), wantRefused: true, wantAsked: 1,
		},
		"a policy denies it": {
			answer: apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), "web-", nil), wantRefused: true, wantAsked: 1,
		},
		"a webhook cannot be asked like that": {
			answer: apierrors.NewBadRequest(`admission webhook "w.example.com" does not support dry run`), wantRefused: true, wantAsked: 1,
		},
		"a webhook does not answer": {
			answer: apierrors.NewInternalError(errors.New(`failed calling webhook "w.example.com"`)), wantErr: true, wantAsked: 2,
		},
		"nobody answers": {answer: errors.New("connection refused"), wantErr: true, wantAsked: 2},
		"its quota is exhausted, which says nothing of its overrides": {
			answer: apierrors.NewForbidden(pods, "web-", errors.New("exceeded quota: compute, requested: pods=1, used: pods=2, limited: pods=2")), wantAsked: 1,
		},
		"a webhook that speaks of a quota denies it": {
			answer: apierrors.NewForbidden(pods, "web-", errors.New(`admission webhook "w" denied the request: exceeded quota: mine`)), wantRefused: true, wantAsked: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			client, asked := fake.NewClientset(), 0
			client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
				asked++
				options := action.(clienttesting.CreateActionImpl).CreateOptions
				if len(options.DryRun) != 1 || options.DryRun[0] != metav1.DryRunAll {
					t.Errorf("made with %+v, want an attempt that changes nothing", options)
				}
				return true, &corev1.Pod{}, test.answer
			})
			tried := &Trials{client.CoreV1(), cache.NewLRUExpireCache(10)}
			for range 2 {
				err := tried.Admits(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}})
				var refused *lacking.RefusedError
				if errors.As(err, &refused) != test.wantRefused || (err != nil && !test.wantRefused) != test.wantErr {
					t.Errorf("%v, want refused: %t, error: %t", err, test.wantRefused, test.wantErr)
				}
			}
			if asked != test.wantAsked {
				t.Errorf("asked %d times, want %d", asked, test.wantAsked)
			}
		})
	}
}

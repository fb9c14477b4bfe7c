// Package trials finds out what the admission of the logical cluster says of pods that nobody makes above.
package trials

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/heard"
	"github.com/manifold-dev/manifold/pkg/syncer/lacking"
)

const (
	// mostVerdicts bounds how many verdicts are remembered: several for each workload with overrides.
	mostVerdicts = 4096
	// An admission is remembered for a while, a refusal until it makes sense to ask again: what admission asks for may have changed.
	admittedFor, refusedFor = 10 * time.Minute, 10 * time.Second
)

// Trials find out whether the admission of the logical cluster lets a pod be made, by an attempt that changes nothing. They go under a name
// that nothing is exempt for.
type Trials struct {
	pods     typedcorev1.PodsGetter
	verdicts *cache.LRUExpireCache
}

// verdict is what an attempt came to; nil is an admission.
type verdict struct{ refusal *lacking.RefusedError }

// New makes pods by way of config.
func New(config *rest.Config) (*Trials, error) {
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NoWarnings{} // they were for who wrote the workload
	client, err := typedcorev1.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &Trials{client, cache.NewLRUExpireCache(mostVerdicts)}, nil
}

// Admits returns nil for a pod that is let be made, a lacking.RefusedError for one that is not, and another error if nobody can say.
func (t *Trials) Admits(ctx context.Context, pod *corev1.Pod) error {
	content, err := json.Marshal(pod)
	if err != nil {
		return fmt.Errorf("encode a pod: %w", err)
	}
	key := sha256.Sum256(content)
	if known, ok := t.verdicts.Get(key); ok {
		return known.(verdict).err()
	}
	_, err = t.pods.Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: v1alpha1.FieldManager})
	says, lasts, err := verdictOf(err)
	if err != nil {
		return err
	}
	t.verdicts.Add(key, says, lasts)
	return says.err()
}

func (v verdict) err() error {
	if v.refusal == nil {
		return nil
	}
	return v.refusal
}

// verdictOf tells an answer about the pod, and for how long it holds, from an error that says nothing about it.
func verdictOf(err error) (verdict, time.Duration, error) {
	status, answered := err.(apierrors.APIStatus) //nolint:errorlint // what a client returns is not wrapped
	switch {
	case err == nil || heard.ByQuota(err) || apierrors.IsAlreadyExists(err): // what runs counts there, and a trial is one more pod than will be
		return verdict{}, admittedFor, nil
	case !answered:
		return verdict{}, 0, err
	}
	switch status.Status().Code {
	case http.StatusForbidden, http.StatusUnprocessableEntity, http.StatusBadRequest:
		return verdict{&lacking.RefusedError{Reason: err.Error()}}, refusedFor, nil
	}
	return verdict{}, 0, err
}

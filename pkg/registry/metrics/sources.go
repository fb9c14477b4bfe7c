package metrics

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/warning"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/util/workqueue"
	client "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	listers "github.com/manifold-dev/manifold/generated/listers/manifold/v1alpha1"
)

const (
	// answerTimeout bounds how long a cluster may take. Autoscaling asks every 15 seconds, and a person waits.
	answerTimeout = 5 * time.Second
	// maxAsked bounds how many clusters are asked at a time for one request.
	maxAsked = 64
)

// Sources is where metrics come from.
type Sources struct {
	// Clusters, Nodes and Pods list what the logical cluster has, mirrors among them.
	Clusters listers.ClusterLister
	Nodes    corelisters.NodeLister
	Pods     corelisters.PodLister
	// Synced reports whether the listers know everything yet.
	Synced func() bool
	// Connect returns a client of a cluster. The error says why there is none, in a person's words.
	Connect func(cluster string) (client.MetricsV1beta1Interface, error)
}

// missing is a cluster that could not say what was asked, and why.
type missing struct {
	cluster, why string
}

func (m missing) String() string { return fmt.Sprintf("cluster %q: %s", m.cluster, m.why) }

// question is put to a cluster.
type question[T any] func(ctx context.Context, cluster client.MetricsV1beta1Interface) (T, error)

// ask puts a question to clusters, all at a time, and returns the answers and who is missing, in the order of the clusters.
func ask[T any](ctx context.Context, s Sources, clusters []string, q question[T]) (map[string]T, []missing) {
	answers, errs := make([]T, len(clusters)), make([]error, len(clusters))
	workqueue.ParallelizeUntil(ctx, maxAsked, len(clusters), func(i int) {
		ctx, cancel := context.WithTimeout(ctx, answerTimeout)
		defer cancel()
		answers[i], errs[i] = askOne(ctx, s, clusters[i], q)
	})
	found := map[string]T{}
	var absent []missing
	for i, cluster := range clusters {
		if err := errors.Join(errs[i], ctx.Err()); err != nil {
			absent = append(absent, missing{cluster: cluster, why: reason(cluster, err)})
			continue
		}
		found[cluster] = answers[i]
	}
	return found, absent
}

func askOne[T any](ctx context.Context, s Sources, cluster string, q question[T]) (answer T, err error) {
	if silence := s.silence(cluster); silence != "" {
		return answer, errors.New(silence)
	}
	connection, err := s.Connect(cluster)
	if err != nil {
		return answer, err
	}
	return q(ctx, connection)
}

// silence says since when nothing has been heard of a cluster that is known to be silent. Nobody has to wait for it again.
func (s Sources) silence(cluster string) string {
	object, err := s.Clusters.Get(cluster)
	if err != nil {
		return ""
	}
	ready := meta.FindStatusCondition(object.Status.Conditions, v1alpha1.ClusterReady)
	if ready == nil || ready.Status != metav1.ConditionUnknown {
		return ""
	}
	return ready.Message
}

// reason says in a person's words why a cluster did not answer, and what to do.
func reason(cluster string, err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("it has not answered within %s", answerTimeout)
	case apierrors.IsNotFound(err):
		return "it does not serve metrics.k8s.io; install metrics-server in it"
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("Manifold may not read its metrics; run \"manifold cluster join %s\" again to renew the rights there", cluster)
	case apierrors.IsServiceUnavailable(err):
		return fmt.Sprintf("its metrics API does not work, see APIService v1beta1.metrics.k8s.io there (%v)", err)
	}
	return err.Error()
}

// warn tells the client which clusters are missing in an answer.
func warn(ctx context.Context, absent []missing) {
	for _, m := range absent {
		warning.AddWarning(ctx, "", fmt.Sprintf("no metrics of %s", m))
	}
}

// unavailable is the answer when no cluster could say what was asked.
func unavailable(absent []missing) error {
	reasons := make([]string, 0, len(absent))
	for _, m := range absent {
		reasons = append(reasons, m.String())
	}
	return apierrors.NewServiceUnavailable("no cluster has metrics: " + strings.Join(reasons, "; "))
}

// ready returns an error as long as the listers do not know everything: what they lack would look as if it used nothing.
func (s Sources) ready() error {
	if s.Synced() {
		return nil
	}
	return apierrors.NewServiceUnavailable("the logical cluster is being read, try again in a moment")
}

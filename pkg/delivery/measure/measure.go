package measure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/utils/clock"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	listers "github.com/manifold-dev/manifold/generated/listers/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/outbound"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/read"
)

// Options say what a Measurer works with. The listers are of the logical cluster.
type Options struct {
	// Policy says who may be asked.
	Policy   outbound.Policy
	Secrets  corelisters.SecretLister
	Releases listers.ReleaseLister
	// Pods, and what they belong to, are what restarts are counted in.
	Pods         corelisters.PodLister
	ReplicaSets  appslisters.ReplicaSetLister
	Deployments  appslisters.DeploymentLister
	StatefulSets appslisters.StatefulSetLister
	Clock        clock.PassiveClock
}

// Measurer looks at metrics. It may be used by several goroutines.
type Measurer struct{ Options }

// New returns a Measurer.
func New(o Options) *Measurer { return &Measurer{o} }

// look is what one measurement is about.
type look struct {
	app     *v1alpha1.Application
	release *v1alpha1.Release
	stage   v1alpha1.Stage
	status  *v1alpha1.StageStatus
	now     time.Time
}

// found are values, and those that they are compared with.
type found struct {
	values, control []float64
	// first says that there is nothing earlier to compare with.
	first bool
}

// Measure looks once at a metric of a stage, by the name that package read gives it. Its time is when the look began. What whoever was asked
// has done wrong is part of the measurement; an error says that nothing could be asked at all.
func (m *Measurer) Measure(ctx context.Context, app *v1alpha1.Application, release *v1alpha1.Release, stage v1alpha1.Stage, metric string) (delivery.Measurement, error) {
	l := look{app: app, release: release, stage: stage, now: m.Clock.Now()}
	doing := fmt.Sprintf("measure %s in stage %s of release %s/%s", metric, stage.ID, release.Namespace, release.Name)
	options, errs := v1alpha1.DecodeOptions(&stage, field.NewPath("with"))
	if len(errs) > 0 {
		return delivery.Measurement{}, fmt.Errorf("%s: %w", doing, errs.ToAggregate())
	}
	analysis, ok := options.(*v1alpha1.AnalysisOptions)
	if !ok {
		return delivery.Measurement{}, fmt.Errorf("%s: %s measures nothing", doing, stage.Name)
	}
	if l.status = stageOf(release, stage.ID); l.status == nil || l.status.StartTime == nil {
		return delivery.Measurement{}, fmt.Errorf("%s: the stage has not begun", doing)
	}
	measure := m.named(analysis, metric)
	if measure == nil {
		return delivery.Measurement{}, fmt.Errorf("%s: the stage has no such metric", doing)
	}
	got, err := measure(ctx, l)
	if ctx.Err() != nil {
		return delivery.Measurement{}, fmt.Errorf("%s: %w", doing, ctx.Err())
	}
	out := delivery.Measurement{Metric: metric, Time: l.now, Values: got.values, Control: got.control, First: got.first}
	if err != nil {
		out.Error = delivery.Said(err.Error())
	}
	return out, nil
}

// named returns how a metric of this name is looked at, nil if there is none.
func (m *Measurer) named(analysis *v1alpha1.AnalysisOptions, name string) func(context.Context, look) (found, error) {
	for i := range analysis.Metrics {
		if read.MetricName(i) == name {
			return func(ctx context.Context, l look) (found, error) { return m.query(ctx, l, &analysis.Metrics[i]) }
		}
	}
	for i := range analysis.HTTPS {
		if read.RequestName(i) == name {
			return func(ctx context.Context, l look) (found, error) { return m.request(ctx, l, &analysis.HTTPS[i]) }
		}
	}
	if name == read.Restarts {
		return func(_ context.Context, l look) (found, error) { return m.restarts(l) }
	}
	return nil
}

func stageOf(release *v1alpha1.Release, id string) *v1alpha1.StageStatus {
	i := slices.IndexFunc(release.Status.Stages, func(s v1alpha1.StageStatus) bool { return s.ID == id })
	if i < 0 {
		return nil
	}
	return &release.Status.Stages[i]
}

// released is the variant that the release brings: the canary if there is one, else the application itself.
func (l look) released() string {
	if slices.ContainsFunc(l.release.Status.Variants, func(v v1alpha1.Variant) bool { return v.Name == delivery.Canary && len(v.Clusters) > 0 }) {
		return delivery.Canary
	}
	return delivery.Primary
}

// credentials are who asks, by a Secret of the application's namespace.
func (m *Measurer) credentials(l look, ref *v1alpha1.SecretReference) (outbound.Credentials, error) {
	if ref == nil {
		return outbound.Credentials{}, nil
	}
	secret, err := m.Secrets.Secrets(l.app.Namespace).Get(ref.Name)
	switch {
	case apierrors.IsNotFound(err):
		return outbound.Credentials{}, fmt.Errorf("secretRef: there is no Secret %s/%s", l.app.Namespace, ref.Name)
	case err != nil:
		return outbound.Credentials{}, err
	}
	out := outbound.Credentials{
		Username: string(secret.Data[v1alpha1.AnalysisSecretUsername]), Password: string(secret.Data[v1alpha1.AnalysisSecretPassword]),
		BearerToken: string(secret.Data[v1alpha1.AnalysisSecretToken]), CA: secret.Data[v1alpha1.AnalysisSecretAuthority],
	}
	if !out.Any() && len(out.CA) == 0 {
		return out, fmt.Errorf("secretRef: Secret %s/%s has none of %s, %s, %s and %s", l.app.Namespace, ref.Name, v1alpha1.AnalysisSecretToken,
			v1alpha1.AnalysisSecretUsername, v1alpha1.AnalysisSecretPassword, v1alpha1.AnalysisSecretAuthority)
	}
	return out, nil
}

// mostTime bounds how long anybody is waited for, whatever a stage says.
const mostTime = time.Minute

func timeout(of *metav1.Duration) time.Duration {
	if of == nil {
		return 0 // outbound's own
	}
	return min(of.Duration, mostTime)
}

// said is what has failed about a call, without what is secret.
func said(err error, as outbound.Credentials) error {
	return errors.New(outbound.Cause(err, as))
}

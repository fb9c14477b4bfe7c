//go:build !race

package upstream

import (
	"context"
	"fmt"
	"math/rand"
	"strconv"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/klog/v2"
	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"

	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/summary"
)

func TestAvailabilityIsTheDeploymentControllers(t *testing.T) {
	amounts := []intstr.IntOrString{
		intstr.FromInt32(0), intstr.FromInt32(1), intstr.FromInt32(5), intstr.FromInt32(50),
		intstr.FromString("0%"), intstr.FromString("1%"), intstr.FromString("25%"), intstr.FromString("33%"), intstr.FromString("100%"),
	}
	for replicas := range int32(14) {
		for _, surge := range amounts {
			for _, unavailable := range amounts {
				in := web(replicas, 2)
				in.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: &surge, MaxUnavailable: &unavailable}
				need := replicas - deploymentutil.MaxUnavailable(*in)
				for available := max(0, need-1); available <= need; available++ {
					want := corev1.ConditionFalse
					if available >= need {
						want = corev1.ConditionTrue
					}
					status := summary.Deployment(in, summary.Input{
						Decision: placement.Decision{"east": share(replicas)},
						Reports:  map[string]summary.Report{"east": report(2, replicas, replicas, available, "")},
						Now:      metav1.Now(),
					})
					got := deploymentutil.GetDeploymentCondition(status, appsv1.DeploymentAvailable).Status
					if got != want {
						t.Errorf("%d of %d available, surge %s, unavailable %s: Available = %s, want %s",
							available, replicas, surge.String(), unavailable.String(), got, want)
					}
				}
			}
		}
	}
}

// TestRevisionsAreTheDeploymentControllers walks through a random history of templates with both.
func TestRevisionsAreTheDeploymentControllers(t *testing.T) {
	owner := web(1, 2)
	random := rand.New(rand.NewSource(1))
	ours, theirs := map[string]*appsv1.ReplicaSet{}, map[string]*appsv1.ReplicaSet{}
	for step := range 200 {
		current := fmt.Sprintf("web-%d", random.Intn(5))
		for _, all := range []map[string]*appsv1.ReplicaSet{ours, theirs} {
			if all[current] == nil {
				all[current] = &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: current}}
			}
		}
		var old []*appsv1.ReplicaSet
		for name, rs := range theirs {
			if name != current {
				old = append(old, rs)
			}
		}
		next := deploymentutil.MaxRevision(klog.Background(), old) + 1
		deploymentutil.SetNewReplicaSetAnnotations(context.Background(), owner, theirs[current], strconv.FormatInt(next, 10), true, 2000)

		var mirrors []*appsv1.ReplicaSet
		for _, rs := range ours {
			mirrors = append(mirrors, rs)
		}
		revisions := summary.Revisions(current, mirrors)
		for name, rs := range ours {
			revisions[name].Annotate(rs)
			for _, key := range []string{deploymentutil.RevisionAnnotation, deploymentutil.RevisionHistoryAnnotation} {
				if got, want := rs.Annotations[key], theirs[name].Annotations[key]; got != want {
					t.Fatalf("step %d: %s of %s = %q, want %q", step, key, name, got, want)
				}
			}
		}
	}
}

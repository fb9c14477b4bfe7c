package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
	"github.com/manifold-dev/manifold/e2e/framework/membership"
)

// TestARestartWhenIdleChangesNothing ends the process in both ways and compares every version, above and below.
func TestARestartWhenIdleChangesNothing(t *testing.T) {
	s := suite.Fragile(t)
	s.Logical.Apply(manifests.App)
	expect.RolledOut(s, "web", 2)
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("both", 5), "east,west"), manifests.Pinned(manifests.Deployment("whole", 2), "west"))
	for name, replicas := range map[string]int32{"web": 2, "both": 5, "whole": 2} {
		expect.RolledOut(s, name, replicas)
		framework.Await(s.Logical, name, "has nothing more to tell", rolledOut)
	}
	unreachableWebhook(s)
	manifold := s.Environment.Manifold
	for i, end := range []func() error{manifold.Terminate, manifold.Kill} {
		before := membership.Versions(s)
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if err := manifold.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		// What comes later passes through everything, after whatever the start itself brings about.
		later := framework.NewScenario(t, s.Environment)
		name := fmt.Sprintf("later-%d", i)
		later.Logical.Apply(manifests.Pinned(manifests.Deployment(name, 2), "east,west"))
		expect.RolledOut(later, name, 2)
		for what, version := range membership.Versions(s) {
			if before[what] != version {
				t.Errorf("%s had version %q and has %q", what, before[what], version)
			}
			delete(before, what)
		}
		if len(before) > 0 {
			t.Errorf("these are gone: %v", before)
		}
	}
}

// unreachableWebhook has a webhook that nobody serves asked about what a start makes sure of.
func unreachableWebhook(s *framework.Scenario) {
	s.Helper()
	s.Logical.Apply(fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  name: e2e-%[1]s
webhooks:
- name: nobody.e2e.example.com
  clientConfig:
    service: {namespace: %[1]s, name: nobody}
  rules:
  - {apiGroups: ["", rbac.authorization.k8s.io, flowcontrol.apiserver.k8s.io, apiregistration.k8s.io], apiVersions: ["*"], operations: [CREATE],
     resources: [namespaces, clusterroles, clusterrolebindings, flowschemas, apiservices]}
  matchConditions:
  - {name: not-ours, expression: "!request.name.startsWith('e2e-')"}
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
`, s.Namespace))
	s.Cleanup(func() { s.Environment.Cleanup(s.T, "delete", "validatingwebhookconfiguration", "e2e-"+s.Namespace) })
	expect.SoonRefused(s, `service "nobody" not found`, "create", "namespace", "any", "--dry-run=server")
}

// rolledOut reports whether the last that a rollout changes has been told.
func rolledOut(d *appsv1.Deployment) bool {
	return slices.ContainsFunc(d.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
		return c.Type == appsv1.DeploymentProgressing && c.Reason == "NewReplicaSetAvailable"
	})
}

// TestAKilledManifoldConverges kills the process again and again while much is written.
func TestAKilledManifoldConverges(t *testing.T) {
	s := suite.Fragile(t)
	sides := []*framework.Side{s.East, s.West}
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("steady", 6), "east,west"), manifests.Pinned(manifests.Deployment("lonely", 2), "west"))
	expect.RolledOut(s, "steady", 6)
	expect.RolledOut(s, "lonely", 2)
	running := map[string][]types.UID{}
	for _, side := range sides {
		running[side.Name+" steady"], running[side.Name+" lonely"] = framework.PodUIDs(s, side, "steady"), framework.PodUIDs(s, side, "lonely")
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	b := &storm{Scenario: s, random: rand.New(rand.NewPCG(seed, 0)), want: map[string]*appsv1.Deployment{}}
	group, ctx := errgroup.WithContext(t.Context())
	group.Go(func() error { return b.write(ctx, 150) })
	for range 3 {
		after := b.done.Load() + int64(5+b.random.IntN(20))
		s.Logical.Poll("more is written", func() error {
			if now := b.done.Load(); now < after && now < 150 {
				return fmt.Errorf("%d writes", now)
			}
			return nil
		})
		if err := s.Environment.Manifold.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := s.Environment.Manifold.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	b.check(sides)
	for _, side := range sides {
		for _, app := range []string{"steady", "lonely"} {
			if got := framework.PodUIDs(s, side, app); !slices.Equal(got, running[side.Name+" "+app]) {
				t.Errorf("the pods of %s in %s were %v and are %v", app, side.Name, running[side.Name+" "+app], got)
			}
		}
	}
}

// storm writes Deployments as many users would who try again when nobody answers.
type storm struct {
	*framework.Scenario
	random *rand.Rand
	done   atomic.Int64
	// want is what should be in the end, nil for what was deleted. It belongs to write until that has returned.
	want map[string]*appsv1.Deployment
}

// write makes that many writes, each a creation, an update or a deletion.
func (b *storm) write(ctx context.Context, count int) error {
	pins := []string{"east", "west", "east,west"}
	random := rand.New(rand.NewPCG(b.random.Uint64(), 0))
	for range count {
		name := fmt.Sprintf("storm-%d", random.IntN(20))
		next := &appsv1.Deployment{}
		if err := yaml.Unmarshal([]byte(manifests.Pinned(manifests.Deployment(name, 1+random.IntN(4)), pins[random.IntN(len(pins))])), next); err != nil {
			return err
		}
		next.Spec.Template.Spec.Containers[0].Image = fmt.Sprintf("web:%d", 1+random.IntN(3))
		if b.want[name] != nil && random.IntN(4) == 0 {
			next = nil
		}
		if err := b.insist(ctx, name, next); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		b.want[name] = next
		b.done.Add(1)
	}
	return nil
}

// insist brings one Deployment to what it should be, however often that takes: a killed server may have done it and not said so.
func (b *storm) insist(ctx context.Context, name string, next *appsv1.Deployment) error {
	api := b.Logical.Kube.AppsV1().Deployments(b.Namespace)
	var last error
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, framework.Deadline, true, func(ctx context.Context) (bool, error) {
		if next == nil {
			last = api.Delete(ctx, name, metav1.DeleteOptions{})
			return last == nil || apierrors.IsNotFound(last), nil
		}
		var live *appsv1.Deployment
		live, last = api.Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(last):
			_, last = api.Create(ctx, next, metav1.CreateOptions{})
		case last == nil && live.DeletionTimestamp != nil:
			last = errors.New("it is still being deleted")
		case last == nil:
			live.Spec.Replicas, live.Spec.Template = next.Spec.Replicas, next.Spec.Template
			live.Annotations[v1alpha1.AnnotationClusters] = next.Annotations[v1alpha1.AnnotationClusters]
			_, last = api.Update(ctx, live, metav1.UpdateOptions{})
		}
		return last == nil, nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return nil
}

// check waits until everything is as it should be, above and below.
func (b *storm) check(sides []*framework.Side) {
	b.Helper()
	for name, want := range b.want {
		if want == nil {
			for _, side := range append(sides, b.Logical) {
				framework.AwaitGone[*appsv1.Deployment](side, name)
			}
			continue
		}
		d := framework.Await(b.Logical, name, "is as it was written last", func(d *appsv1.Deployment) bool {
			return framework.ImageOf(d) == framework.ImageOf(want) && ptr.Equal(d.Spec.Replicas, want.Spec.Replicas) && expect.Available(*want.Spec.Replicas)(d)
		})
		expect.Shares(b.Scenario, name, framework.DecisionOf(b.Scenario, d))
		for _, side := range sides {
			if _, placed := framework.DecisionOf(b.Scenario, d)[side.Name]; placed {
				framework.Await(side, name, "has the image", func(d *appsv1.Deployment) bool { return framework.ImageOf(d) == framework.ImageOf(want) })
			}
		}
	}
	// What is mirrored is what is below.
	b.Logical.Poll("the pods above are those below", func() error {
		above, below := b.pods(b.Logical), b.pods(sides...)
		if !slices.Equal(above, below) {
			return fmt.Errorf("above %v, below %v", above, below)
		}
		return nil
	})
}

func (b *storm) pods(sides ...*framework.Side) []string {
	var out []string
	for _, side := range sides {
		list, err := side.Kube.CoreV1().Pods(b.Namespace).List(b.Context(), metav1.ListOptions{})
		if err != nil {
			return []string{err.Error()}
		}
		for _, pod := range list.Items {
			out = append(out, fmt.Sprint(pod.Name, " ", pod.UID))
		}
	}
	slices.Sort(out)
	return out
}

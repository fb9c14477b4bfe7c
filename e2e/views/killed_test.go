package views

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

// writer writes through the view of a cluster as a program does that tries again when nobody answers.
type writer struct {
	cluster string
	client  kubernetes.Interface
	space   string
	done    *atomic.Int64
	// last is what was acknowledged last of each ConfigMap. It belongs to write until that has returned.
	last map[string]string
}

const (
	settingsOfEach = 5
	writesOfEach   = 60
)

func (w *writer) name(i int) string { return fmt.Sprintf("%s-%d", w.cluster, i%settingsOfEach) }

func (w *writer) write(ctx context.Context) error {
	for i := range writesOfEach {
		name, value := w.name(i), fmt.Sprint(i)
		if err := insist(ctx, func(ctx context.Context) error { return w.put(ctx, name, value) }); err != nil {
			return fmt.Errorf("write %s through the view of %s: %w", name, w.cluster, err)
		}
		w.last[name] = value
		w.done.Add(1)
	}
	return nil
}

func (w *writer) put(ctx context.Context, name, value string) error {
	api := w.client.CoreV1().ConfigMaps(w.space)
	live, err := api.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = api.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"colour": value}}, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	live.Data = map[string]string{"colour": value}
	_, err = api.Update(ctx, live, metav1.UpdateOptions{})
	return err
}

// insist does something until it is done.
func insist(ctx context.Context, do func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, framework.Deadline, true, func(ctx context.Context) (bool, error) {
		last = do(ctx)
		return last == nil, nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return nil
}

// readBy is a Deployment of one pod that reads all settings of a cluster, so that they come there.
func readBy(cluster string) string {
	return manifests.Edited(manifests.Deployment("reader-"+cluster, 1), func(d *appsv1.Deployment) {
		for i := range settingsOfEach {
			d.Spec.Template.Spec.Containers[0].EnvFrom = append(d.Spec.Template.Spec.Containers[0].EnvFrom, corev1.EnvFromSource{
				ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: fmt.Sprintf("%s-%d", cluster, i)}},
			})
		}
	})
}

// TestAKilledManifoldKeepsWhatWasWrittenThroughViews kills the process again and again while much is written through the views of two clusters, and while a
// workload is moved between them.
func TestAKilledManifoldKeepsWhatWasWrittenThroughViews(t *testing.T) {
	s := suite.Fragile(t)
	deployer(s)
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("moving", 2), "east"))
	expect.RolledOut(s, "moving", 2)
	var done atomic.Int64
	group, ctx := errgroup.WithContext(t.Context())
	var writers []*writer
	for _, cluster := range []string{"east", "west"} {
		view := through(s, cluster)
		view.Apply(readBy(cluster))
		config, err := clientcmd.BuildConfigFromFlags("", view.Kubeconfig)
		if err != nil {
			t.Fatal(err)
		}
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		w := &writer{cluster: cluster, client: client, space: s.Namespace, done: &done, last: map[string]string{}}
		writers = append(writers, w)
		group.Go(func() error { return w.write(ctx) })
	}
	group.Go(func() error {
		for i := range 5 { // the last time to west
			patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AnnotationClusters, []string{"west", "east"}[i%2])
			if err := insist(ctx, func(ctx context.Context) error {
				_, err := s.Logical.Kube.AppsV1().Deployments(s.Namespace).Patch(ctx, "moving", types.MergePatchType, patch, metav1.PatchOptions{})
				return err
			}); err != nil {
				return fmt.Errorf("move: %w", err)
			}
			after := done.Load() + writesOfEach/4
			if err := insist(ctx, func(context.Context) error {
				if now := done.Load(); now < after && now < 2*writesOfEach {
					return fmt.Errorf("%d writes", now)
				}
				return nil
			}); err != nil {
				return err
			}
		}
		return nil
	})
	for range 3 {
		after := done.Load() + 15
		s.Logical.Poll("more is written", func() error {
			if now := done.Load(); now < after && now < 2*writesOfEach {
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

	sides := map[string]*framework.Side{"east": s.East, "west": s.West}
	other := map[string]string{"east": "west", "west": "east"}
	for _, w := range writers {
		for name, want := range w.last {
			framework.Await(s.Logical, name, "is what was acknowledged last, and its cluster's alone", func(c *corev1.ConfigMap) bool {
				return c.Data["colour"] == want && c.Annotations[v1alpha1.AnnotationView] == w.cluster && c.Annotations[v1alpha1.AnnotationClusters] == w.cluster
			})
			framework.Await(sides[w.cluster], name, "comes to its cluster", func(c *corev1.ConfigMap) bool { return c.Data["colour"] == want })
			expect.Refused(t, sides[other[w.cluster]].Try("get", "configmap", name), "not found")
		}
		framework.Await(sides[w.cluster], "reader-"+w.cluster, "runs", expect.Available(1))
		expect.Refused(t, sides[other[w.cluster]].Try("get", "deployment", "reader-"+w.cluster), "not found")
	}
	framework.Await(s.West, "moving", "is where it was moved to last", expect.Available(2))
	framework.AwaitGone[*appsv1.Deployment](s.East, "moving")
	framework.Await(s.Logical, "moving", "is all there", expect.Available(2))
}

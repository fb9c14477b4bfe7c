package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

const (
	// scaleTimeout bounds a step: what takes longer does not work.
	scaleTimeout = 10 * time.Minute
	// calmTimeout is how long the machine may take to become quiet.
	calmTimeout = 20 * time.Second
	// deleted is how many of the namespaces are deleted: their controller takes seconds for each ten of them, here as there.
	deleted = 100
	// scaleWorkers is how many requests are under way at a time where many are needed.
	scaleWorkers = 8
	// reads is how often lists and watches are repeated; the median counts.
	reads = 3
	// chunk is the size of the pages that kubectl reads.
	chunk = 500
	// large is the size of the large ConfigMap: what an API server takes of one, with some room for its name.
	large = 1<<20 - 1<<10
)

// site is where things of unusual size are made.
type site struct {
	name    string
	client  kubernetes.Interface
	sizes   sizes
	machine *machine
	// pin chooses the clusters of the namespaces.
	pin   string
	steps []measured
}

// measured is a step and how long it took, in seconds.
type measured struct {
	step         string
	took, memory float64
}

// run does everything and returns what was measured, also if something does not work.
func (s *site) run(ctx context.Context) ([]measured, error) {
	for _, part := range []func(context.Context) error{s.workload, s.configMaps, s.largeConfigMap, s.namespaces} {
		if err := part(ctx); err != nil {
			return s.steps, fmt.Errorf("%s: %w", s.name, err)
		}
		s.calm(ctx)
	}
	return s.steps, ctx.Err()
}

// calm waits until little goes on, but not long: events of many pods are shown for minutes, which costs little and waits for nobody.
func (s *site) calm(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, calmTimeout)
	defer cancel()
	_ = s.machine.settle(ctx) // it makes the figures better, and is not what is measured
}

// measure adds a step.
func (s *site) measure(ctx context.Context, step string, do func() error) error {
	fmt.Fprintf(os.Stderr, "bench: %s: %s\n", s.name, step)
	start := time.Now()
	if err := do(); err != nil {
		return fmt.Errorf("%s: %w", step, err)
	}
	took := time.Since(start).Seconds()
	memory, err := s.memory()
	if err != nil {
		return err
	}
	s.steps = append(s.steps, measured{step, took, memory})
	return ctx.Err()
}

// read adds a step that changes nothing, as the median of a few times.
func (s *site) read(ctx context.Context, step string, do func() error) error {
	s.calm(ctx)
	fmt.Fprintf(os.Stderr, "bench: %s: %s\n", s.name, step)
	var took []float64
	for range reads {
		start := time.Now()
		if err := do(); err != nil {
			return fmt.Errorf("%s: %w", step, err)
		}
		took = append(took, time.Since(start).Seconds())
	}
	memory, err := s.memory()
	s.steps = append(s.steps, measured{step, median(took), memory})
	return err
}

func (s *site) namespace(ctx context.Context, name string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if s.pin != "" {
		namespace.Annotations = map[string]string{v1alpha1.AnnotationClusters: s.pin}
	}
	if _, err := s.client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create namespace %q: %w", name, err)
	}
	return untilServiceAccount(ctx, api{s.name, s.client}, name)
}

// workload runs one Deployment of many replicas, reads its pods, and scales it to nothing.
func (s *site) workload(ctx context.Context) error {
	const namespace, name = "scale-workload", "wide"
	if err := s.namespace(ctx, namespace); err != nil {
		return err
	}
	pods := s.client.CoreV1().Pods(namespace)
	replicas := int32(s.sizes.Replicas)
	steps := []func() error{
		func() error {
			return s.measure(ctx, fmt.Sprintf("%d replicas until ready", replicas), func() error {
				if _, err := s.client.AppsV1().Deployments(namespace).Create(ctx, deployment(name, replicas), metav1.CreateOptions{}); err != nil {
					return err
				}
				return s.untilReady(ctx, namespace, 1, replicas)
			})
		},
		func() error {
			return s.read(ctx, "list the pods", func() error {
				list, err := pods.List(ctx, metav1.ListOptions{})
				return expect(err, func() int { return len(list.Items) }, s.sizes.Replicas)
			})
		},
		func() error {
			return s.read(ctx, "list the pods as kubectl does", func() error { return s.table(ctx, "pods", namespace) })
		},
		func() error {
			return s.read(ctx, "watch the pods from the beginning", func() error { return s.watchAll(ctx, "pods", namespace, s.sizes.Replicas) })
		},
		func() error { return s.restart(ctx) },
		func() error {
			return s.measure(ctx, "scale to none until all pods are gone", func() error {
				patch := []byte(`{"spec":{"replicas":0}}`)
				_, err := s.client.AppsV1().Deployments(namespace).Patch(ctx, name, "application/merge-patch+json", patch, metav1.PatchOptions{})
				return errors.Join(err, s.untilNone(ctx, "pods", namespace, &corev1.Pod{}))
			})
		},
	}
	return inOrder(append(steps, func() error { return s.drop(ctx, "delete its namespace", namespace) }))
}

// configMaps fills a namespace that runs something.
func (s *site) configMaps(ctx context.Context) error {
	const namespace = "scale-configmaps"
	if err := s.namespace(ctx, namespace); err != nil {
		return err
	}
	configMaps := s.client.CoreV1().ConfigMaps(namespace)
	count := s.sizes.ConfigMaps
	return inOrder([]func() error{
		func() error {
			return s.measure(ctx, fmt.Sprintf("create %d ConfigMaps", count), func() error {
				return times(count, func(i int) error {
					config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("config-%d", i)}, Data: map[string]string{"key": strings.Repeat("x", 100)}}
					_, err := configMaps.Create(ctx, config, metav1.CreateOptions{})
					return err
				})
			})
		},
		func() error {
			return s.read(ctx, "list the ConfigMaps", func() error {
				list, err := configMaps.List(ctx, metav1.ListOptions{})
				return expect(err, func() int { return len(list.Items) }, count)
			})
		},
		func() error {
			return s.read(ctx, "list the ConfigMaps as kubectl does", func() error { return s.table(ctx, "configmaps", namespace) })
		},
		func() error {
			return s.read(ctx, "watch the ConfigMaps from the beginning", func() error { return s.watchAll(ctx, "configmaps", namespace, count) })
		},
		func() error {
			return s.measure(ctx, "a Deployment beside them until ready", func() error {
				d := deployment("beside", 2)
				d.Spec.Template.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{envFrom("config-7")}
				_, err := s.client.AppsV1().Deployments(namespace).Create(ctx, d, metav1.CreateOptions{})
				return errors.Join(err, s.untilReady(ctx, namespace, 1, 2))
			})
		},
		func() error { return s.drop(ctx, "delete the namespace with the ConfigMaps", namespace) },
	})
}

func envFrom(name string) corev1.EnvFromSource {
	return corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}
}

// largeConfigMap runs something that needs a ConfigMap of 1 MB.
func (s *site) largeConfigMap(ctx context.Context) error {
	const namespace = "scale-large"
	if err := s.namespace(ctx, namespace); err != nil {
		return err
	}
	configMaps := s.client.CoreV1().ConfigMaps(namespace)
	config := func(letter string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "large"}, Data: map[string]string{"key": strings.Repeat(letter, large)}}
	}
	return inOrder([]func() error{
		func() error {
			return s.measure(ctx, "a Deployment with a ConfigMap of 1 MB until ready", func() error {
				if _, err := configMaps.Create(ctx, config("a"), metav1.CreateOptions{}); err != nil {
					return err
				}
				d := deployment("web", 4)
				d.Spec.Template.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{envFrom("large")}
				_, err := s.client.AppsV1().Deployments(namespace).Create(ctx, d, metav1.CreateOptions{})
				return errors.Join(err, s.untilReady(ctx, namespace, 1, 4))
			})
		},
		func() error {
			return s.read(ctx, "change the ConfigMap", func() error {
				_, err := configMaps.Update(ctx, config("b"), metav1.UpdateOptions{})
				return err
			})
		},
		func() error { return s.drop(ctx, "delete the namespace with the ConfigMap of 1 MB", namespace) },
	})
}

// namespaces makes many of them, empty at first, then with a Deployment each.
func (s *site) namespaces(ctx context.Context) error {
	count := s.sizes.Namespaces
	name := func(i int) string { return fmt.Sprintf("scale-%d", i) }
	return inOrder([]func() error{
		func() error {
			return s.measure(ctx, fmt.Sprintf("create %d namespaces", count), func() error {
				return times(count, func(i int) error { return s.namespace(ctx, name(i)) })
			})
		},
		func() error {
			return s.measure(ctx, "a Deployment in each until all are ready", func() error {
				err := times(count, func(i int) error {
					_, err := s.client.AppsV1().Deployments(name(i)).Create(ctx, deployment("app", 1), metav1.CreateOptions{})
					return err
				})
				return errors.Join(err, s.untilReady(ctx, metav1.NamespaceAll, count, 1))
			})
		},
		func() error {
			return s.read(ctx, "list the Deployments of all namespaces as kubectl does", func() error { return s.table(ctx, "deployments", "") })
		},
		func() error {
			return s.read(ctx, "list the pods of all namespaces", func() error {
				list, err := s.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: "app=app"})
				return expect(err, func() int { return len(list.Items) }, count)
			})
		},
		func() error {
			count := min(count, deleted)
			return s.measure(ctx, fmt.Sprintf("delete %d of them until they are gone", count), func() error {
				err := times(count, func(i int) error { return s.client.CoreV1().Namespaces().Delete(ctx, name(i), metav1.DeleteOptions{}) })
				if err != nil {
					return err
				}
				return times(count, func(i int) error { return untilGone(ctx, api{s.name, s.client}, name(i)) })
			})
		},
	})
}

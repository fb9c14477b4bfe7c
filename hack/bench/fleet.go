package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned"
	"github.com/manifold-dev/manifold/hack/bench/simulated"
	"github.com/manifold-dev/manifold/hack/stock/logical"
)

// fleetTimeout bounds the joining of a fleet.
const fleetTimeout = 10 * time.Minute

// fleetOptions say what a fleet is made of.
type fleetOptions struct {
	binary, dir string
	// clusters is how many there are, each with so many cores, and rollout how long a Deployment takes there.
	clusters int
	cores    int64
	rollout  time.Duration
	args     []string
}

// fleet is a logical cluster in front of simulated ones.
type fleet struct {
	ends     []*simulated.Cluster
	server   *logical.Server
	client   *kubernetes.Clientset
	manifold *versioned.Clientset
}

// startFleet starts everything on empty data, and returns when all clusters are ready.
func startFleet(ctx context.Context, o fleetOptions) (f *fleet, err error) {
	f = &fleet{}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.stop())
		}
	}()
	for i := range o.clusters {
		c, err := simulated.Start(fmt.Sprintf("end-%03d", i), o.cores, o.rollout)
		if err != nil {
			return f, err
		}
		f.ends = append(f.ends, c)
	}
	if err := os.RemoveAll(o.dir); err != nil {
		return f, fmt.Errorf("remove the data of an earlier run: %w", err)
	}
	if f.server, err = logical.Start(ctx, logical.Options{Binary: o.binary, Dir: o.dir, Args: o.args}); err != nil {
		return f, err
	}
	config, err := f.server.RESTConfig()
	if err != nil {
		return f, err
	}
	if f.manifold, err = versioned.NewForConfig(config); err != nil {
		return f, err
	}
	if f.client, err = kubernetes.NewForConfig(protobuf(config)); err != nil {
		return f, err
	}
	fmt.Fprintf(os.Stderr, "bench: join %d simulated clusters\n", len(f.ends))
	return f, f.join(ctx)
}

// stop ends everything, the logical cluster first.
func (f *fleet) stop() (err error) {
	if f.server != nil {
		err = f.server.Stop()
	}
	for _, end := range f.ends {
		end.Silence()
	}
	return err
}

// hub is the logical cluster as one to measure.
func (f *fleet) hub() *hub { return &hub{Server: f.server, client: f.client} }

// join registers the clusters as "manifold cluster join" does, and waits until all are ready.
func (f *fleet) join(ctx context.Context) error {
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.SystemNamespace}}
	if _, err := f.client.CoreV1().Namespaces().Create(ctx, system, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	for _, end := range f.ends {
		kubeconfig, err := end.Kubeconfig()
		if err != nil {
			return err
		}
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: end.Name()}, Data: map[string][]byte{"kubeconfig": kubeconfig}}
		if _, err := f.client.CoreV1().Secrets(v1alpha1.SystemNamespace).Create(ctx, secret, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("store the credential of %s: %w", end.Name(), err)
		}
		cluster := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: end.Name()}}
		cluster.Spec.Connection.SecretRef = &v1alpha1.SecretReference{Namespace: v1alpha1.SystemNamespace, Name: end.Name()}
		if _, err := f.manifold.ManifoldV1alpha1().Clusters().Create(ctx, cluster, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("register %s: %w", end.Name(), err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, fleetTimeout)
	defer cancel()
	for _, end := range f.ends {
		if _, err := f.condition(ctx, end.Name(), metav1.ConditionTrue); err != nil {
			return fmt.Errorf("wait until %s is ready: %w", end.Name(), err)
		}
	}
	return nil
}

// condition waits until the Ready condition of a cluster has a status, and returns it.
func (f *fleet) condition(ctx context.Context, name string, status metav1.ConditionStatus) (*metav1.Condition, error) {
	clusters := f.manifold.ManifoldV1alpha1().Clusters()
	for {
		watch, err := clusters.Watch(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()})
		if err != nil {
			return nil, err
		}
		for event := range watch.ResultChan() {
			cluster, ok := event.Object.(*v1alpha1.Cluster)
			if !ok {
				continue
			}
			if ready := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ClusterReady); ready != nil && ready.Status == status {
				watch.Stop()
				return ready, nil
			}
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
}

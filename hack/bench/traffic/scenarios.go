package traffic

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/manifold-dev/manifold/hack/stock"
)

// scenario is something that happens while requests are sent.
type scenario struct {
	name string
	// replicas of the Deployment that answers, and the clusters that it is pinned to at first.
	replicas int
	clusters string
	// inside are the clusters that clients are in.
	inside []string
	// gateways says that it is about gateways: it cannot be without them.
	gateways bool
	// prepare makes what answers, and ask says who asks. Without them that is the Deployment "web" with its Service, and clients of that.
	prepare func(context.Context, *run) error
	ask     func(context.Context, *run) (*clients, error)
	happen  func(context.Context, *run) error
	// bound is how long after the event requests of a client may fail. Without it none may.
	bound func(client string) time.Duration
}

// Names returns the names of all scenarios.
func Names() []string {
	var names []string
	for _, s := range scenarios() {
		names = append(names, s.name)
	}
	return names
}

func scenarios() []scenario {
	both := []string{east, west}
	return []scenario{
		{name: "rest", replicas: 4, clusters: east, inside: both, happen: func(ctx context.Context, _ *run) error { return pause(ctx, after) }},
		{name: "move", replicas: 4, clusters: east, inside: both, happen: thereAndBack},
		{name: "drain", replicas: 4, clusters: "east,west", inside: []string{east}, happen: drain}, // nobody is left in west to ask
		{name: "rollout", replicas: 4, clusters: east, inside: both, happen: rolloutInMove},
		{name: "scale", replicas: 2, clusters: "east,west", inside: both, happen: upAndDown},
		{name: "reach", replicas: 1, clusters: east, ask: nobody, happen: comeAndGo},
		{name: "split", gateways: true, prepare: deliver, ask: atGateways, happen: canary},
		{name: "crash", replicas: 4, clusters: east, inside: both, happen: crashInMove},
		{name: "api", replicas: 4, clusters: "east,west", inside: both, happen: withoutAPI},
		{name: "loss", replicas: 4, clusters: "east,west", inside: []string{east}, happen: lose, bound: lossBound},
	}
}

// thereAndBack moves everything to the other cluster and back.
func thereAndBack(ctx context.Context, r *run) error {
	if err := r.move(ctx, west); err != nil {
		return err
	}
	return r.move(ctx, east)
}

// drain empties a cluster, and lets it be used again.
func drain(ctx context.Context, r *run) error {
	err := r.command(ctx, "", "cluster", "drain", west)
	if err == nil {
		err = r.settled(ctx, east)
	}
	return errors.Join(err, r.command(ctx, "", "cluster", "uncordon", west))
}

// rolloutInMove begins a move, and a rollout in the middle of it.
func rolloutInMove(ctx context.Context, r *run) error {
	if err := r.beginMove(ctx); err != nil {
		return err
	}
	if err := r.command(ctx, "", r.in("kubectl", "set", "image", "deployment/web", "web=web:v2")...); err != nil {
		return err
	}
	return r.settled(ctx, west)
}

// beginMove begins a move and returns when the other cluster has something of it.
func (r *run) beginMove(ctx context.Context) error {
	if err := r.command(ctx, "", r.in("move", "deployment/web", "--to", west, "--wait=false")...); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		list, err := r.cluster(west).Client().CoreV1().Pods(r.namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
		return err == nil && len(list.Items) > 0, nil
	})
	if err != nil {
		return fmt.Errorf("wait until the move begins: %w", err)
	}
	r.event = time.Now()
	return nil
}

func upAndDown(ctx context.Context, r *run) error {
	for _, replicas := range []string{"20", "2"} {
		if err := r.command(ctx, "", r.in("kubectl", "scale", "deployment/web", "--replicas="+replicas)...); err != nil {
			return err
		}
		if err := r.settled(ctx, east, west); err != nil {
			return err
		}
	}
	return nil
}

// crashInMove kills Manifold in the middle of a move, and starts it again.
func crashInMove(ctx context.Context, r *run) error {
	if err := r.beginMove(ctx); err != nil {
		return err
	}
	if err := errors.Join(r.server.Kill(), pause(ctx, before), r.server.Start(ctx)); err != nil {
		return err
	}
	return r.settled(ctx, west)
}

// apiAway is how long a cluster is without its API server: long enough to count as unreachable.
const apiAway = 20 * time.Second

// withoutAPI kills a cluster's API server for a while. Its pods go on.
func withoutAPI(ctx context.Context, r *run) error {
	c := r.cluster(east)
	if err := c.Kill(stock.APIServer); err != nil {
		return err
	}
	r.event = time.Now()
	if err := errors.Join(pause(ctx, apiAway), c.Restart(ctx, stock.APIServer)); err != nil {
		return err
	}
	return r.settled(ctx, east, west)
}

// lossLasts is how long a cluster stays lost: requests should not fail any more by then, from wherever they come.
const lossLasts = 75 * time.Second

// lose cuts a cluster off with all its pods.
func lose(ctx context.Context, r *run) error {
	c := r.cluster(west)
	if err := c.PauseAll(); err != nil {
		return err
	}
	r.event = time.Now()
	return errors.Join(pause(ctx, lossLasts), c.ResumeAll())
}

// slack is for what follows from a moment that is known: writes, watches, and the pods that take over.
const slack = 10 * time.Second

// lossBound is what docs/services.md says of each client. In the other cluster nobody is led to the lost one who has a ready pod at hand. Who goes by the
// endpoints of the logical cluster is led there until the cluster counts as silent, and who comes from outside until its workloads have been given up there.
func lossBound(client string) time.Duration {
	switch client {
	case inside(above):
		return gracePeriod + slack
	case outside:
		return gracePeriod + toleration + slack + timeToLive
	}
	return slack // over connections that were kept from before
}

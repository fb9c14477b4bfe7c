package traffic

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	podutil "k8s.io/kubectl/pkg/util/podutils"

	"github.com/manifold-dev/manifold/hack/stock/datapath"
)

// times is how often the pods come and go.
const times = 5

// comeAndGo has the only pod come and go in east, and measures how long after it is ready there somebody in west has an answer from it.
func comeAndGo(ctx context.Context, r *run) error {
	client, err := r.network.Client(datapath.From{Cluster: west, Namespace: r.namespace})
	if err != nil {
		return err
	}
	for range times {
		if err := r.scale(ctx, 0); err != nil {
			return err
		}
		if err := r.untilReached(ctx, client, false); err != nil {
			return err
		}
		ready, err := r.watchReady(ctx)
		if err != nil {
			return err
		}
		if err := r.scale(ctx, 1); err != nil {
			return err
		}
		if err := r.untilReached(ctx, client, true); err != nil {
			return err
		}
		answered := time.Now()
		select {
		case at, ok := <-ready:
			if !ok {
				return errors.New("the watch of the pods in east has ended")
			}
			r.delays[inside(west)] = append(r.delays[inside(west)], max(0, answered.Sub(at)))
		case <-time.After(stepTimeout):
			return errors.New("no pod in east was seen to become ready")
		}
	}
	return nil
}

func (r *run) scale(ctx context.Context, replicas int) error {
	return r.command(ctx, "", r.in("kubectl", "scale", "deployment/web", fmt.Sprintf("--replicas=%d", replicas))...)
}

// untilReached waits until a client has an answer, or has none any more.
func (r *run) untilReached(ctx context.Context, client *datapath.Client, want bool) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, 5*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		answer, err := client.Ask(ctx, "http://web/")
		if err == nil {
			err = r.expect(answer)
		}
		return (err == nil) == want, nil
	})
	if err != nil {
		return fmt.Errorf("wait until http://web is reached (%t) in west: %w", want, err)
	}
	return nil
}

// watchReady sends the moment at which the API of east tells of a pod that is ready. None may be there yet.
func (r *run) watchReady(ctx context.Context) (<-chan time.Time, error) {
	pods := r.cluster(east).Client().CoreV1().Pods(r.namespace)
	options := metav1.ListOptions{LabelSelector: "app=web"}
	list, err := pods.List(ctx, options)
	if err != nil {
		return nil, err
	}
	options.ResourceVersion = list.ResourceVersion
	watching, err := pods.Watch(ctx, options)
	if err != nil {
		return nil, err
	}
	ready := make(chan time.Time, 1)
	go func() {
		defer close(ready)
		defer watching.Stop()
		for event := range watching.ResultChan() {
			pod, is := event.Object.(*corev1.Pod)
			if is && event.Type != watch.Deleted && pod.DeletionTimestamp == nil && podutil.IsPodReady(pod) {
				ready <- time.Now()
				return
			}
		}
	}()
	return ready, nil
}

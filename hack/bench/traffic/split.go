package traffic

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/hack/stock/datapath/load"
)

// percents are what a canary gets of the requests, one after another.
var percents = []int32{1, 10, 50, 90}

const (
	// counted are how many requests each gateway gets meanwhile.
	counted = 10_000
	// takesUp is how long a gateway may take until it goes by what its cluster holds: Traefik looks at what has changed every two seconds.
	takesUp = 3 * time.Second
)

// application is an Application in both clusters, whose canary gets more and more of the requests to a host, whenever somebody agrees.
const application = `
apiVersion: delivery.manifold.dev/v1alpha1
kind: Application
metadata: {name: web, namespace: NAMESPACE}
spec:
  targets:
  - {name: first, cluster: east}
  - {name: second, cluster: west}
  traffic: {method: HTTPRoute, host: HOST, gateways: [{name: front, namespace: gateways}], drainSeconds: DRAIN}
  pipeline:
    stages:
    - {name: K8S_CANARY_ROLLOUT, id: canary, with: {replicas: 1, perCluster: true}}
STEPS
    - {name: K8S_PRIMARY_ROLLOUT, id: primary}
    - {name: K8S_TRAFFIC_ROUTING, id: back, with: {primary: 100}}
    - {name: K8S_CANARY_CLEAN, id: clean}
  source:
    inline:
      objects:
      - apiVersion: v1
        kind: Service
        metadata: {name: web}
        spec: {selector: {app: web}, ports: [{name: http, port: 80, targetPort: http}]}
      - apiVersion: apps/v1
        kind: Deployment
        metadata: {name: web}
        spec:
          replicas: 3
          selector: {matchLabels: {app: web}}
          template:
            metadata: {labels: {app: web}, annotations: {kwok.x-k8s.io/start: 500ms}}
            spec:
              terminationGracePeriodSeconds: 5
              containers: [{name: web, image: "web:VERSION", ports: [{name: http, containerPort: 8080}], resources: {requests: {cpu: 10m}}}]
`

// agreed is the stage in which a release waits, while the canary has a part of the requests.
func agreed(percent int32) string { return fmt.Sprintf("at-%d", percent) }

// release applies a version of the Application.
func (r *run) release(ctx context.Context, version string) error {
	var steps []string
	for _, percent := range percents {
		steps = append(steps, fmt.Sprintf("    - {name: K8S_TRAFFIC_ROUTING, id: to-%d, with: {canary: %d}}", percent, percent),
			fmt.Sprintf("    - {name: WAIT_APPROVAL, id: %s}", agreed(percent)))
	}
	text := strings.NewReplacer("NAMESPACE", r.namespace, "HOST", r.host(), "STEPS", strings.Join(steps, "\n"), "VERSION", version,
		"DRAIN", fmt.Sprint(drainTime.Seconds())).Replace(application)
	return r.command(ctx, text, "kubectl", "apply", "-f", "-")
}

// deliver makes the Application and waits for its first release.
func deliver(ctx context.Context, r *run) error {
	if err := r.command(ctx, "", "kubectl", "create", "namespace", r.namespace); err != nil {
		return err
	}
	if err := r.release(ctx, "v1"); err != nil {
		return err
	}
	_, err := r.released(ctx, "web-v1", succeeded)
	return err
}

// canary releases a second version by way of a canary, and counts what part of the requests that gets at each step.
func canary(ctx context.Context, r *run) error {
	if err := r.release(ctx, "v2"); err != nil {
		return err
	}
	for _, percent := range percents {
		name, err := r.released(ctx, "web-v2", func(release *v1alpha1.Release) bool {
			return slices.ContainsFunc(release.Status.Stages, func(stage v1alpha1.StageStatus) bool {
				return stage.ID == agreed(percent) && stage.Phase == v1alpha1.StageRunning
			})
		})
		if err != nil {
			return err
		}
		if err := pause(ctx, takesUp); err != nil {
			return err
		}
		if err := r.count(ctx, percent); err != nil {
			return err
		}
		if err := r.command(ctx, "", r.in("release", "approve", name, "--stage", agreed(percent))...); err != nil {
			return err
		}
	}
	_, err := r.released(ctx, "web-v2", succeeded)
	return err
}

func succeeded(release *v1alpha1.Release) bool {
	return release.Status.Phase == v1alpha1.ReleaseSucceeded
}

// released waits until a release of a revision is as it should be, and returns its name.
func (r *run) released(ctx context.Context, revision string, is func(*v1alpha1.Release) bool) (name string, err error) {
	var last v1alpha1.ReleaseStatus
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	err = wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		list, err := r.manifold.DeliveryV1alpha1().Releases(r.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, nil
		}
		for i := range list.Items {
			if release := &list.Items[i]; release.Spec.Revision == revision {
				last = release.Status
				if is(release) {
					name = release.Name
					return true, nil
				}
			}
		}
		return false, nil
	})
	if err != nil {
		return "", fmt.Errorf("wait for the release of %s, which is %s: %s: %w", revision, last.Phase, last.Message, err)
	}
	return name, nil
}

// count counts what part of the next requests at each gateway goes to the canary.
func (r *run) count(ctx context.Context, percent int32) error {
	begin := map[string]load.Report{}
	for name, stream := range r.streams {
		begin[name] = stream.Report()
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second*time.Duration(counted/r.options.Rate)+stepTimeout)
	defer cancel()
	for name, stream := range r.streams {
		err := wait.PollUntilContextCancel(ctx, 500*time.Millisecond, true, func(context.Context) (bool, error) {
			now := stream.Report()
			answered := answers(now) - answers(begin[name])
			if answered < counted {
				return false, nil
			}
			canary := now.Versions["v2"] - begin[name].Versions["v2"]
			r.shares[name] = append(r.shares[name], Share{Wanted: percent, Got: 100 * float64(canary) / float64(answered), Requests: answered})
			return true, nil
		})
		if err != nil {
			return fmt.Errorf("wait for %d answers %s: %w", counted, name, err)
		}
	}
	return nil
}

// answers are how many requests were answered.
func answers(r load.Report) int { return r.Sent - r.Failed }

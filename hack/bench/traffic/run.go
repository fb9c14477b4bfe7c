package traffic

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/manifold-dev/manifold/hack/stock/datapath"
	"github.com/manifold-dev/manifold/hack/stock/datapath/gateway"
	"github.com/manifold-dev/manifold/hack/stock/datapath/load"
	"github.com/manifold-dev/manifold/hack/stock/datapath/pods"
)

// run is one scenario in a namespace of its own.
type run struct {
	*site
	scenario  scenario
	namespace string
	// event is when something happened that requests may fail by, if the scenario has such a moment.
	event time.Time
	// streams are the requests of the clients, by their names, while something happens.
	streams map[string]*load.Load
	// shares and delays are what clients found besides, by their names.
	shares map[string][]Share
	delays map[string][]time.Duration
}

// The Deployment that answers is "web". "visitor" has the namespace run in both clusters all the time, as the clients in them do that ask.
const manifest = `
apiVersion: v1
kind: Namespace
metadata: {name: NAMESPACE}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: NAMESPACE}
spec: {selector: {app: web}, ports: [{name: http, port: 80, targetPort: http}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: NAMESPACE, annotations: {manifold.dev/drain-seconds: "DRAIN"}}
spec:
  rules:
  - host: HOST
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {name: http}}}}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: NAMESPACE, annotations: {manifold.dev/clusters: "CLUSTERS"}}
spec:
  replicas: REPLICAS
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, annotations: {kwok.x-k8s.io/start: 500ms}}
    spec:
      terminationGracePeriodSeconds: 5
      containers: [{name: web, image: "web:v1", ports: [{name: http, containerPort: 8080}], resources: {requests: {cpu: 10m}}}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: visitor, namespace: NAMESPACE, annotations: {manifold.dev/clusters: "east,west"}}
spec:
  replicas: 2
  selector: {matchLabels: {app: visitor}}
  template:
    metadata: {labels: {app: visitor}}
    spec:
      containers: [{name: visitor, image: "visitor:v1", resources: {requests: {cpu: 10m}}}]
`

const (
	// stepTimeout bounds every step of a scenario. A move waits for addresses that leave, and for the pods that end after that.
	stepTimeout = 3 * time.Minute
	// before and after are how long requests are sent before something happens, and when it is over.
	before = 3 * time.Second
	after  = 8 * time.Second
	// firstAnswer is how long a client waits for its first answer, which says that it reaches the Service at all.
	firstAnswer = 20 * time.Second
	// drainTime is how long pods stay whose address has left: longer than anybody believes in an address, and than a gateway keeps a connection.
	drainTime = 10 * time.Second
)

// measure makes what the scenario needs, starts the clients, lets it happen, and returns what they counted.
func (r *run) measure(ctx context.Context) (rows []Row, err error) {
	prepare, ask := r.scenario.prepare, r.scenario.ask
	if prepare == nil {
		prepare = deploy
	}
	if ask == nil {
		ask = everywhere
	}
	defer func() { err = errors.Join(err, r.clean(context.WithoutCancel(ctx))) }()
	if err := prepare(ctx, r); err != nil {
		return nil, err
	}
	clients, err := ask(ctx, r)
	if err != nil {
		return nil, err
	}
	defer clients.end()
	r.streams, r.shares, r.delays = map[string]*load.Load{}, map[string][]Share{}, map[string][]time.Duration{}
	for _, name := range clients.names {
		options := clients.asking[name]
		if err := reached(ctx, options); err != nil {
			rows = append(rows, Row{Scenario: r.scenario.name, Client: name, Error: "no answer before it began: " + err.Error()})
			continue
		}
		r.streams[name] = load.Start(options)
	}
	failed := errors.Join(pause(ctx, before), r.scenario.happen(ctx, r), pause(ctx, after))
	for _, name := range clients.names {
		if stream, ok := r.streams[name]; ok {
			rows = append(rows, r.row(name, stream.Stop()))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.delays)) {
		rows = append(rows, Row{Scenario: r.scenario.name, Client: name, Delays: r.delays[name]})
	}
	return rows, failed
}

// row is what a client counted, and what it may have lost.
func (r *run) row(client string, counted load.Report) Row {
	row := Row{Scenario: r.scenario.name, Client: client, Counted: counted, Shares: r.shares[client]}
	if !r.event.IsZero() && counted.LastFailure.After(r.event) {
		row.Last = counted.LastFailure.Sub(r.event).Seconds()
	}
	if r.scenario.bound != nil {
		row.Bound = r.scenario.bound(client).Seconds()
	}
	return row
}

// deploy makes the Deployment that answers, and waits for it.
func deploy(ctx context.Context, r *run) error {
	text := strings.NewReplacer("NAMESPACE", r.namespace, "HOST", r.host(), "CLUSTERS", r.scenario.clusters, "REPLICAS", strconv.Itoa(r.scenario.replicas),
		"DRAIN", strconv.Itoa(int(drainTime.Seconds()))).Replace(manifest)
	if err := r.command(ctx, text, "kubectl", "apply", "-f", "-"); err != nil {
		return err
	}
	for _, name := range []string{"web", "visitor"} {
		if err := r.command(ctx, "", r.in("kubectl", "rollout", "status", "deployment/"+name, "--timeout=2m")...); err != nil {
			return err
		}
	}
	return nil
}

// clients are those of one scenario.
type clients struct {
	names  []string
	asking map[string]load.Options
	end    func()
}

func newClients() *clients { return &clients{asking: map[string]load.Options{}, end: func() {}} }

// add adds a client that asks at the rate that is measured.
func (r *run) add(c *clients, name string, options load.Options) {
	options.Rate, options.Expect = r.options.Rate, r.expect
	c.names = append(c.names, name)
	c.asking[name] = options
}

// inside is what a client in a cluster is called, and outside what one is that comes from outside.
func inside(cluster string) string { return "in " + cluster }

const outside = "outside"

// everywhere are clients in the clusters of the scenario, in the logical cluster, and outside if there are gateways.
func everywhere(ctx context.Context, r *run) (*clients, error) {
	c := newClients()
	for _, place := range append([]string{above}, r.scenario.inside...) {
		client, err := r.network.Client(datapath.From{Cluster: place, Namespace: r.namespace})
		if err != nil {
			return nil, err
		}
		r.add(c, inside(place), load.Options{URL: "http://web", Dial: client.DialContext})
	}
	if len(r.gateways) > 0 {
		published := newPublished(r.client, r.namespace, "web")
		published.start(ctx)
		c.end = published.stop
		r.add(c, outside, load.Options{URL: "http://" + r.host(), Dial: published.dial})
	}
	return c, nil
}

// nobody asks all the time.
func nobody(context.Context, *run) (*clients, error) { return newClients(), nil }

// expect refuses answers from anybody but the Service's pods.
func (r *run) expect(a pods.Answer) error {
	if a.Namespace != r.namespace || a.App != "web" {
		return fmt.Errorf("answered by app %q of namespace %q", a.App, a.Namespace)
	}
	return nil
}

// reached waits until a client has an answer.
func reached(ctx context.Context, options load.Options) error {
	stream := options
	stream.Rate = 10
	l := load.Start(stream)
	defer l.Stop()
	ctx, cancel := context.WithTimeout(ctx, firstAnswer)
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(context.Context) (bool, error) {
		counted := l.Report()
		return counted.Sent > counted.Failed, nil
	})
	if err != nil {
		return fmt.Errorf("%s", load.List(l.Report().Reasons))
	}
	return nil
}

// pause lets requests go on.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// command runs a command of Manifold.
func (r *run) command(ctx context.Context, stdin string, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	cmd := r.server.Command(ctx, args...)
	cmd.Stdin = strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("manifold %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// in adds the namespace to the arguments of a command.
func (r *run) in(args ...string) []string { return append(args, "--namespace", r.namespace) }

// move moves the Deployment and waits until it is there and nowhere else.
func (r *run) move(ctx context.Context, to string) error {
	if err := r.command(ctx, "", r.in("move", "deployment/web", "--to", to)...); err != nil {
		return err
	}
	return r.settled(ctx, to)
}

// settled waits until all replicas are ready in the clusters named, and no pod is left in the others.
func (r *run) settled(ctx context.Context, in ...string) error {
	var last error
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		last = r.placed(ctx, in...)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait until web is in %q: %w", in, last)
	}
	return nil
}

func (r *run) placed(ctx context.Context, in ...string) error {
	web, err := r.client.AppsV1().Deployments(r.namespace).Get(ctx, "web", metav1.GetOptions{})
	if err != nil {
		return err
	}
	var errs []error
	total, allowed := 0, map[string]bool{}
	for _, name := range in {
		allowed[name] = true
	}
	for _, c := range r.clusters {
		list, err := c.Client().CoreV1().Pods(r.namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
		if err != nil {
			return err
		}
		total += len(list.Items)
		if n := len(list.Items); n > 0 && !allowed[c.Name()] {
			errs = append(errs, fmt.Errorf("%d pods are in %q", n, c.Name()))
		}
	}
	if want := int(*web.Spec.Replicas); total != want || !rolledOut(web) {
		errs = append(errs, fmt.Errorf("there are %d pods, and %d of %d replicas are available", total, web.Status.AvailableReplicas, want))
	}
	return errors.Join(errs...)
}

func rolledOut(d *appsv1.Deployment) bool {
	want := *d.Spec.Replicas
	return d.Status.ObservedGeneration >= d.Generation && d.Status.UpdatedReplicas == want && d.Status.AvailableReplicas == want && d.Status.Replicas == want
}

// clean removes the namespace. Nobody waits for it: it is no other scenario's.
func (r *run) clean(ctx context.Context) error {
	return r.command(ctx, "", "kubectl", "delete", "namespace", r.namespace, "--wait=false")
}

// addressOf is where a gateway listens that an Ingress names by its address.
func addressOf(ip string) string { return net.JoinHostPort(ip, strconv.Itoa(gateway.Port)) }

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/yaml"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

// What pipelines may take: in seconds until 95 of 100 changes are shown, and in percent of a core while nothing happens.
const (
	pipelineShown = 2
	pipelineCPU   = 2
)

// pipelineEnvironments are those of each pipeline, each with a target in each of the clusters.
var pipelineEnvironments = []string{"dev", "test", "staging", "prod"}

const pipelineClusters = 5

// pipelineSizes are those of what -pipelines makes.
type pipelineSizes struct {
	Pipelines int           `json:"pipelines"`
	Changes   int           `json:"changes"`
	Rest      time.Duration `json:"rest"`
}

// runPipelines measures how soon pipelines show that the version of an app has changed in all targets of an environment, what they cost while nothing
// happens, and whether clusters are asked when pipelines are shown.
func runPipelines(ctx context.Context, o options, root, dir string) (err error) {
	sizes := o.pipelineSizes
	report := &deliveryReport{Time: time.Now().UTC().Truncate(time.Second), Sizes: sizes}
	f, err := startFleet(ctx, fleetOptions{
		binary: filepath.Join(root, o.manifold), dir: filepath.Join(dir, "pipelines"), clusters: pipelineClusters, cores: 100,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.stop()) }()
	p, err := newPlumbing(ctx, f, root)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	if err := p.watch(ctx, &watching); err != nil {
		return err
	}
	names := appNames(sizes.Pipelines)
	fmt.Fprintf(os.Stderr, "bench: create %d apps in %d environments\n", len(names), len(pipelineEnvironments))
	if err := p.createApps(ctx, names); err != nil {
		return err
	}
	m := &machine{hub: f.hub()}
	fmt.Fprintf(os.Stderr, "bench: no pipelines for %s\n", sizes.Rest)
	empty, _, err := m.rest(ctx, sizes.Rest)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "bench: create %d pipelines\n", len(names))
	begin := time.Now()
	if err := p.createPipelines(ctx, names); err != nil {
		return err
	}
	for _, name := range names {
		if _, err := p.shown(ctx, name, pipelineEnvironments[len(pipelineEnvironments)-1], "1"); err != nil {
			return err
		}
	}
	report.add("s", time.Since(begin).Seconds(), "%d pipelines of %d targets are created and shown", len(names), len(pipelineEnvironments)*pipelineClusters)
	fmt.Fprintf(os.Stderr, "bench: leave them alone for %s\n", sizes.Rest)
	before := f.reads()
	full, writes, err := m.rest(ctx, sizes.Rest)
	if err != nil {
		return err
	}
	report.add("%", empty, "core of the logical cluster at rest, no pipelines")
	report.add("%", full, "core of the logical cluster at rest, %d pipelines", len(names))
	report.bound(pipelineCPU, "%", full-empty, "core that the pipelines take at rest")
	report.bound(0, "", sum(writes), "API writes while they rest")
	report.bound(0, "", f.reads()-before, "workloads that were read from clusters while they rest")
	if err := p.measureChanges(ctx, names, sizes.Changes, report); err != nil {
		return err
	}
	if err := p.measureShows(ctx, names, f, report); err != nil {
		return err
	}
	report.print(os.Stdout)
	return o.write(report)
}

// reads is how often clusters were asked for workloads.
func (f *fleet) reads() (out float64) {
	for _, end := range f.ends {
		for call, n := range end.Reads() {
			for _, resource := range []string{" deployments", " daemonsets", " statefulsets", " cronjobs", " helmreleases", " kustomizations"} {
				if strings.HasSuffix(call, resource) {
					out += n
				}
			}
		}
	}
	return out
}

// plumbing makes pipelines, and sees what they show.
type plumbing struct {
	*fleet
	dynamic dynamic.Interface

	mu sync.Mutex
	// at has when a version was first shown in all targets of an environment, by pipeline, environment and version.
	at    map[string]time.Time
	moved chan struct{} // holds one when something has changed
}

var benchPipelines = weave.GroupVersions[0].WithResource(weave.Resource)

func newPlumbing(ctx context.Context, f *fleet, root string) (*plumbing, error) {
	config, err := f.server.RESTConfig()
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	p := &plumbing{fleet: f, dynamic: client, at: map[string]time.Time{}, moved: make(chan struct{}, 1)}
	return p, p.define(ctx, root)
}

// define defines the kind, and waits until it is served.
func (p *plumbing) define(ctx context.Context, root string) error {
	text, err := os.ReadFile(filepath.Join(root, "config", "crds", "weave", "pipelines", "definition.yaml"))
	if err != nil {
		return fmt.Errorf("read the definition of pipelines: %w", err)
	}
	definition := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, &definition.Object); err != nil {
		return fmt.Errorf("read the definition of pipelines: %w", err)
	}
	if _, err := p.dynamic.Resource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")).Create(ctx, definition, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("define pipelines: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, waitTimeout)
	defer cancel()
	return wait.PollUntilContextCancel(ctx, looking, true, func(ctx context.Context) (bool, error) {
		_, err := p.dynamic.Resource(benchPipelines).List(ctx, metav1.ListOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
}

// createApps makes the namespaces of the environments, which go to all clusters, and a Deployment of each app in each of them.
func (p *plumbing) createApps(ctx context.Context, names []string) error {
	var clusters []string
	for _, end := range p.ends {
		clusters = append(clusters, end.Name())
	}
	for _, environment := range append(slices.Clone(pipelineEnvironments), deliveryNamespace) {
		object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: environment, Annotations: map[string]string{v1alpha1.AnnotationClusters: strings.Join(clusters, ",")}}}
		if _, err := p.client.CoreV1().Namespaces().Create(ctx, object, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create namespace %q: %w", environment, err)
		}
		policy := &v1alpha1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: "everywhere"}}
		policy.Spec.Division = &v1alpha1.Division{Type: v1alpha1.Duplicate}
		if _, err := p.manifold.ManifoldV1alpha1().PlacementPolicies(environment).Create(ctx, policy, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create PlacementPolicy %s/%s: %w", environment, policy.Name, err)
		}
	}
	return forAll(names, func(name string) error {
		for _, environment := range pipelineEnvironments {
			of := deployment(name, 0) // simulated clusters have no pods, and what a status counts is to be shown
			if _, err := p.client.AppsV1().Deployments(environment).Create(ctx, of, metav1.CreateOptions{}); err != nil {
				return fmt.Errorf("create Deployment %s/%s: %w", environment, name, err)
			}
		}
		return nil
	})
}

func (p *plumbing) createPipelines(ctx context.Context, names []string) error {
	return forAll(names, func(name string) error {
		object := weave.Pipeline{ObjectMeta: metav1.ObjectMeta{Namespace: deliveryNamespace, Name: name}}
		object.Spec.AppRef = &weave.AppReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name}
		for _, environment := range pipelineEnvironments {
			of := weave.Environment{Name: environment}
			for _, end := range p.ends {
				of.Targets = append(of.Targets, weave.Target{Namespace: environment, ClusterRef: &weave.ClusterReference{Kind: weave.KindCluster, Name: end.Name()}})
			}
			object.Spec.Environments = append(object.Spec.Environments, of)
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&object)
		if err != nil {
			return err
		}
		delete(content, "status")
		content["apiVersion"], content["kind"] = weave.GroupVersions[0].String(), weave.Kind
		_, err = p.dynamic.Resource(benchPipelines).Namespace(deliveryNamespace).Create(ctx, &unstructured.Unstructured{Object: content}, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("create Pipeline %q: %w", name, err)
		}
		return nil
	})
}

// watch notes when versions are shown, until the context ends.
func (p *plumbing) watch(ctx context.Context, watching *sync.WaitGroup) error {
	informer := dynamicinformer.NewFilteredDynamicInformer(p.dynamic, benchPipelines, deliveryNamespace, 0, cache.Indexers{}, nil).Informer()
	notice := func(obj any) { p.notice(obj.(*unstructured.Unstructured), time.Now()) }
	handle, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: notice, UpdateFunc: func(_, obj any) { notice(obj) }})
	if err != nil {
		return err
	}
	watching.Go(func() { informer.RunWithContext(ctx) })
	begin, cancel := context.WithTimeout(ctx, waitTimeout)
	defer cancel()
	if !cache.WaitForCacheSync(begin.Done(), handle.HasSynced) {
		return fmt.Errorf("watch pipelines: %w", begin.Err())
	}
	return nil
}

func shownKey(pipeline, environment, version string) string {
	return pipeline + " " + environment + " " + version
}

// notice notes which versions all targets of an environment have.
func (p *plumbing) notice(object *unstructured.Unstructured, now time.Time) {
	pipeline := weave.Pipeline{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &pipeline); err != nil {
		return // it is shown as it is stored, so this cannot be
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for environment, status := range pipeline.Status.Environments {
		version := ""
		for i, target := range status.Targets {
			if !target.Ready || len(target.Workloads) != 1 || i > 0 && target.Workloads[0].Version != version {
				version = ""
				break
			}
			version = target.Workloads[0].Version
		}
		key := shownKey(pipeline.Name, environment, version)
		if _, known := p.at[key]; !known && version != "" && len(status.Targets) == pipelineClusters {
			p.at[key] = now
		}
	}
	select {
	case p.moved <- struct{}{}:
	default:
	}
}

// shown waits until a pipeline shows a version in all targets of an environment, and returns when it first did.
func (p *plumbing) shown(ctx context.Context, pipeline, environment, version string) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, waitTimeout)
	defer cancel()
	key := shownKey(pipeline, environment, version)
	for {
		p.mu.Lock()
		at, known := p.at[key]
		p.mu.Unlock()
		if known {
			return at, nil
		}
		select {
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("wait until Pipeline %q shows version %s in %s: %w", pipeline, version, environment, ctx.Err())
		case <-p.moved:
		}
	}
}

// measureChanges changes versions one after another, each of another pipeline and environment than the one before.
func (p *plumbing) measureChanges(ctx context.Context, names []string, changes int, report *deliveryReport) error {
	fmt.Fprintf(os.Stderr, "bench: change %d versions\n", changes)
	var took []float64
	for i := range changes {
		name, environment, version := names[i%len(names)], pipelineEnvironments[i%len(pipelineEnvironments)], fmt.Sprintf("v%d", i+2)
		patch := fmt.Sprintf(`[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"app:%s"}]`, version)
		begin := time.Now()
		if _, err := p.client.AppsV1().Deployments(environment).Patch(ctx, name, types.JSONPatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("change Deployment %s/%s: %w", environment, name, err)
		}
		at, err := p.shown(ctx, name, environment, version)
		if err != nil {
			return err
		}
		took = append(took, at.Sub(begin).Seconds())
	}
	report.add("s", percentile(took, 0.5), "a change is rolled out in %d clusters and shown as ready in all, median of %d", pipelineClusters, len(took))
	report.bound(pipelineShown, "s", percentile(took, 0.95), "the same, 95 %%")
	return nil
}

// measureShows reads all pipelines, and counts what clusters are asked meanwhile.
func (p *plumbing) measureShows(ctx context.Context, names []string, f *fleet, report *deliveryReport) error {
	if err := pause(ctx, restTime); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "bench: show all pipelines\n")
	before, begin := f.reads(), time.Now()
	if err := forAll(names, func(name string) error {
		_, err := p.dynamic.Resource(benchPipelines).Namespace(deliveryNamespace).Get(ctx, name, metav1.GetOptions{})
		return err
	}); err != nil {
		return fmt.Errorf("show a pipeline: %w", err)
	}
	report.add("ms", 1000*time.Since(begin).Seconds()/float64(len(names)), "a pipeline is shown")
	report.bound(0, "", f.reads()-before, "workloads that are read from clusters when %d pipelines are shown", len(names))
	return nil
}

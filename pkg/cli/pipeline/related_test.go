package pipeline

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/manifold-dev/manifold/pkg/cli/tree"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

func object(apiVersion, kind, name string, more map[string]any) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"namespace": "podinfo", "name": name}}}
	for key, value := range more {
		out.Object[key] = value
	}
	return out
}

// getter reads from these objects, and shows the tree of a workload as its name.
func getter(objects ...*unstructured.Unstructured) (*GetOptions, *strings.Builder) {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{
		{Group: "source.toolkit.fluxcd.io", Version: "v1"}, {Group: "helm.toolkit.fluxcd.io", Version: "v2"}, {Group: "kustomize.toolkit.fluxcd.io", Version: "v1"},
		{Group: "apps", Version: "v1"}, {Group: "batch", Version: "v1"},
	})
	kinds := map[schema.GroupVersionResource]string{}
	for _, o := range append(objects, object("apps/v1", "Deployment", "", nil), object("batch/v1", "CronJob", "", nil)) {
		mapper.Add(o.GroupVersionKind(), meta.RESTScopeNamespace)
		resource, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
		kinds[resource] = o.GetKind() + "List"
	}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds)
	for _, o := range objects {
		resource, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
		if err := client.Tracker().Create(resource, o, o.GetNamespace()); err != nil {
			panic(err)
		}
	}
	var out strings.Builder
	return &GetOptions{
		IOStreams: genericiooptions.IOStreams{Out: &out}, mapper: mapper, subject: subject{client: client}, Related: "dev",
		grow: func(_ context.Context, root *unstructured.Unstructured) (*tree.Node, error) {
			return &tree.Node{Kind: root.GetKind(), Name: root.GetName(), Health: tree.Healthy}, nil
		},
	}, &out
}

func names(node *tree.Node) []string {
	var out []string
	for _, child := range node.Children {
		out = append(out, string(child.Relation)+" "+child.Kind+"/"+child.Name+" "+string(child.Health))
		out = append(out, names(child)...)
	}
	return out
}

func TestW32RelatedObjectsOfAnAppOnACluster(t *testing.T) {
	ready := map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}, "artifact": map[string]any{"revision": "v1"}}
	repository := object("source.toolkit.fluxcd.io/v1", "HelmRepository", "charts", map[string]any{"spec": map[string]any{"url": "oci://registry.example"}, "status": ready})
	git := object("source.toolkit.fluxcd.io/v1", "GitRepository", "shop", map[string]any{"spec": map[string]any{"url": "https://git.example"}})
	helm := object("helm.toolkit.fluxcd.io/v2", "HelmRelease", "podinfo", map[string]any{"spec": map[string]any{
		"chart": map[string]any{"spec": map[string]any{"sourceRef": map[string]any{"kind": "HelmRepository", "name": "charts"}}},
	}})
	kustomization := object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "apps", map[string]any{
		"spec": map[string]any{"sourceRef": map[string]any{"kind": "GitRepository", "name": "gone"}},
		"status": map[string]any{"inventory": map[string]any{"entries": []any{
			map[string]any{"id": "podinfo_web_apps_Deployment", "v": "v1"}, map[string]any{"id": "podinfo_lost_apps_Deployment"}, map[string]any{"id": "no id"},
		}}},
	})
	made := object("apps/v1", "Deployment", "web", nil)
	made.SetLabels(map[string]string{"helm.toolkit.fluxcd.io/name": "podinfo", "helm.toolkit.fluxcd.io/namespace": "podinfo"})
	other := object("apps/v1", "Deployment", "other", nil)
	for name, test := range map[string]struct {
		of   *unstructured.Unstructured
		want []string
	}{
		"a HelmRelease, by its labels":      {helm, []string{"Needs HelmRepository/charts Healthy", "Owns Deployment/web Healthy"}},
		"a Kustomization, by its inventory": {kustomization, []string{"Needs GitRepository/gone Missing", "Owns Deployment/lost Missing", "Owns Deployment/web Healthy"}},
		"what is no object of Flux":         {made, nil},
	} {
		t.Run(name, func(t *testing.T) {
			o, _ := getter(repository, git, helm, kustomization, made, other)
			node := &tree.Node{}
			o.sources(t.Context(), node, test.of, deepest)
			if err := o.content(t.Context(), node, test.of); err != nil {
				t.Fatal(err)
			}
			if got := names(node); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestSourcesThatNameEachOtherComeToAnEnd(t *testing.T) {
	circle := object("source.toolkit.fluxcd.io/v1", "ExternalArtifact", "loop", map[string]any{"spec": map[string]any{"sourceRef": map[string]any{"kind": "ExternalArtifact", "name": "loop"}}})
	o, _ := getter(circle)
	node := &tree.Node{}
	o.sources(t.Context(), node, circle, deepest)
	if got := names(node); len(got) != deepest {
		t.Errorf("got %q, want %d sources", got, deepest)
	}
}

func TestWhatAClusterHasByItselfIsToldOf(t *testing.T) {
	o, out := getter(object("apps/v1", "Deployment", "web", nil))
	p := podinfo()
	if err := o.related(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`Cluster "dev-us" has HelmRelease/podinfo by itself; its state is what the cluster lets pipelines see. To see more, look there: flux trace helmrelease podinfo -n podinfo`,
		"HelmRelease podinfo/podinfo", "dev-us", "6.1.8",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("told %q, want %q", out, want)
		}
	}
	o.Related = "qa"
	if err := o.related(t.Context(), p); err == nil || !strings.Contains(err.Error(), `no environment "qa"`) {
		t.Errorf("an environment that there is not: %v", err)
	}
	o.Related = "dev"
	p.Status.Environments = map[string]*weave.EnvironmentStatus{}
	if err := o.related(t.Context(), p); err == nil || !strings.Contains(err.Error(), "nothing is known") {
		t.Errorf("an environment of which nothing is known: %v", err)
	}
}

func TestW32WhatBelongsToAnObjectOfFluxInAClusterIsShown(t *testing.T) {
	of := func(cluster, environment, name string) map[string]any {
		return map[string]any{
			"group": weave.Group, "environment": environment, "cluster": cluster, "object": map[string]any{"kind": "HelmRelease", "namespace": "podinfo", "name": name}, "more": true,
			"sources": []any{map[string]any{"kind": "HelmRepository", "namespace": "podinfo", "name": "charts-of-" + cluster + "-" + environment}},
			"made":    []any{map[string]any{"kind": "Deployment", "namespace": "podinfo", "name": "made-in-" + cluster + "-\x1b[31m"}},
		}
	}
	answer := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "delivery.manifold.dev/v1alpha1", "kind": "PipelineRelated", "metadata": map[string]any{"name": "podinfo"},
		"workloads": []any{of("dev-us", "dev", "podinfo"), of("dev-us", "prod", "podinfo"), of("mars", "dev", "podinfo"), of("dev-us", "dev", "other")},
		"errors": []any{
			map[string]any{"group": weave.Group, "environment": "dev", "cluster": "dev-us", "namespace": "podinfo", "message": "of dev-us not all is known"},
			map[string]any{"group": weave.Group, "environment": "prod", "cluster": "dev-us", "namespace": "podinfo", "message": "of prod nothing is known"},
		},
	}}
	for name, test := range map[string]struct {
		err      error
		wants    []string
		unwanted []string
	}{
		"what may be got": {
			wants:    []string{"HelmRepository podinfo/charts-of-dev-us-dev", "Deployment podinfo/made-in-dev-us-", "not shown", "! of dev-us not all is known"},
			unwanted: []string{"charts-of-dev-us-prod", "charts-of-mars", "of prod nothing is known", "\x1b"},
		},
		"what may not": {err: errors.New("you may not"), wants: []string{"! what belongs to it is not known: you may not", "HelmRelease podinfo/podinfo"}},
	} {
		t.Run(name, func(t *testing.T) {
			o, out := getter()
			asked := 0
			o.client.(*fake.FakeDynamicClient).PrependReactor("get", "pipelines", func(action clienttesting.Action) (bool, runtime.Object, error) {
				if action.GetSubresource() != "related" || action.GetResource().Group != "delivery.manifold.dev" {
					return false, nil, nil
				}
				asked++
				return true, answer, test.err
			})
			p := podinfo()
			p.APIVersion = weave.Group + "/" + weave.Version
			if err := o.related(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			for _, want := range test.wants {
				if !strings.Contains(out.String(), want) {
					t.Errorf("it lacks %q:\n%s", want, out)
				}
			}
			for _, unwanted := range test.unwanted {
				if strings.Contains(out.String(), unwanted) {
					t.Errorf("it has %q:\n%s", unwanted, out)
				}
			}
			if asked != 1 {
				t.Errorf("it was asked for %d times", asked)
			}
		})
	}
}

func TestWhoMayNotReadTheNamespaceHereSeesWhatThePipelineShowsOfTheCluster(t *testing.T) {
	o, out := getter(object("helm.toolkit.fluxcd.io/v2", "HelmRelease", "another", nil))
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "helm.toolkit.fluxcd.io", Resource: "helmreleases"}, "podinfo", errors.New("no right"))
	o.client.(*fake.FakeDynamicClient).PrependReactor("get", "helmreleases", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, forbidden })
	p := podinfo()
	if err := o.related(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.Contains(got, "HelmRelease podinfo/podinfo") || !strings.Contains(got, "no right") || strings.Contains(got, "by itself") {
		t.Errorf("it shows\n%s", got)
	}
	for i := range p.Status.Environments["dev"].Targets {
		p.Status.Environments["dev"].Targets[i].Name = "" // of the logical cluster
	}
	if err := o.related(t.Context(), p); !apierrors.IsForbidden(err) {
		t.Errorf("of the logical cluster: error %v, want %v", err, forbidden)
	}
}

func TestOfAWorkloadInAClusterIsShownWhatTheStatusTells(t *testing.T) {
	target := &weave.TargetStatus{Kind: "GitopsCluster", Name: "east", Namespace: "shop"}
	for name, test := range map[string]struct {
		of       weave.WorkloadStatus
		health   tree.Health
		problems []string
		children []string
	}{
		"one that is well": {
			of: weave.WorkloadStatus{
				Kind: "HelmRelease", Name: "podinfo", Version: "6.1.8", Ready: true, Message: "installed", Images: []string{"podinfo:6.1.8"},
				Conditions: []metav1.Condition{{Type: "Ready", Status: "True", Reason: "Installed"}},
			},
			health: tree.Healthy, children: []string{"Owns condition/Ready Healthy", "Owns image/podinfo:6.1.8 Healthy"},
		},
		"one that has failed": {
			of: weave.WorkloadStatus{
				Kind: "HelmRelease", Name: "podinfo", Version: "6.1.8", Failed: true, Message: "no such chart",
				Conditions: []metav1.Condition{{Type: "Ready", Status: "False", Reason: "NoChart"}},
			},
			health: tree.Degraded, problems: []string{"no such chart"}, children: []string{"Owns condition/Ready Degraded"},
		},
		"one on its way": {of: weave.WorkloadStatus{Kind: "Deployment", Name: "web", Version: "2", Message: "1 of 2"}, health: tree.Progressing, problems: []string{"1 of 2"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := seen(target, &test.of)
			if got.Health != test.health || got.Status != test.of.Version || !slices.Equal(got.Clusters, []string{"east"}) || !slices.Equal(got.Problems, test.problems) {
				t.Errorf("got %+v", got)
			}
			if children := names(got); !slices.Equal(children, test.children) {
				t.Errorf("got %q, want %q", children, test.children)
			}
		})
	}
}

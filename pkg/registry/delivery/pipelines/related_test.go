package pipelines

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

// may lets a user do what is listed, as "get pipelines.pipelines.weave.works shop/podinfo".
func may(rights ...string) authorizer.Authorizer {
	return authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if slices.Contains(rights, a.GetVerb()+" "+a.GetResource()+"."+a.GetAPIGroup()+" "+a.GetNamespace()+"/"+a.GetName()) {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	})
}

// kustomization is one that a cluster has.
func kustomization(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": map[string]any{"namespace": "web", "name": name},
		"spec":   map[string]any{"sourceRef": map[string]any{"kind": "GitRepository", "name": "fleet"}},
		"status": map[string]any{"inventory": map[string]any{"entries": []any{map[string]any{"id": "web_web_apps_Deployment"}}}},
	}}
}

func TestW32W39WhatBelongsToAnObjectOfFluxInAClusterIsToldToWhomMayGetThat(t *testing.T) {
	const pipeline, older, get = "get pipelines.pipelines.weave.works shop/podinfo", "get pipelines.pipelines.wego.weave.works shop/podinfo", "get kustomizations.kustomize.toolkit.fluxcd.io web/"
	of := func(group, name string) v1alpha1.RelatedWorkload {
		return v1alpha1.RelatedWorkload{
			Group: group, Environment: "prod", Cluster: "east", Object: v1alpha1.RelatedObject{APIGroup: "kustomize.toolkit.fluxcd.io", Kind: "Kustomization", Namespace: "web", Name: name},
			Sources: []v1alpha1.RelatedObject{{APIGroup: "source.toolkit.fluxcd.io", Kind: "GitRepository", Namespace: "web", Name: "fleet"}},
			Made:    []v1alpha1.RelatedObject{{APIGroup: "apps", Kind: "Deployment", Namespace: "web", Name: "web"}},
		}
	}
	for name, test := range map[string]struct {
		may  []string
		want []v1alpha1.RelatedWorkload
		// errors are what messages say, and missing that there is no such pipeline for the caller.
		errors  []string
		missing bool
	}{
		"who may get all of it":                         {may: []string{pipeline, get + "a", get + "b"}, want: []v1alpha1.RelatedWorkload{of(weave.Group, "a"), of(weave.Group, "b")}},
		"who may get one of them":                       {may: []string{pipeline, get + "b"}, want: []v1alpha1.RelatedWorkload{of(weave.Group, "b")}, errors: []string{`you may not get them in namespace "web"`}},
		"who may get none of them":                      {may: []string{pipeline}, errors: []string{"what belongs to kustomizations.kustomize.toolkit.fluxcd.io is left out"}},
		"of the pipelines of both groups":               {may: []string{pipeline, older, get + "a", get + "b"}, want: []v1alpha1.RelatedWorkload{of(weave.Group, "a"), of(weave.Group, "b"), of(weave.OlderGroup, "a"), of(weave.OlderGroup, "b")}},
		"who may not get the pipeline":                  {may: []string{get + "a", get + "b"}, missing: true},
		"who may get another pipeline":                  {may: []string{"get pipelines.pipelines.weave.works shop/other"}, missing: true},
		"who may get such objects of another namespace": {may: []string{pipeline, "get kustomizations.kustomize.toolkit.fluxcd.io shop/a"}, errors: []string{"left out"}},
	} {
		t.Run(name, func(t *testing.T) {
			newer, before := podinfo(), podinfo()
			for _, p := range []*weave.Pipeline{newer, before} {
				p.Namespace = "shop"
				p.Spec.Environments = []weave.Environment{{Name: "prod", Targets: []weave.Target{{Namespace: "web"}, {Namespace: "web", ClusterRef: &weave.ClusterReference{Kind: "Cluster", Name: "east"}}}}}
			}
			there := []*unstructured.Unstructured{in(t, weave.Group, newer)}
			if slices.Contains(test.may, older) {
				there = append(there, in(t, weave.OlderGroup, before))
			}
			client := clientOf()
			for _, o := range there {
				resource := o.GroupVersionKind().GroupVersion().WithResource(weave.Resource)
				if err := client.Tracker().Create(resource, o, "shop"); err != nil {
					t.Fatal(err)
				}
			}
			storage := Related(client, may(test.may...), func(_ context.Context, _ *weave.Pipeline, target weave.Target) ([]*unstructured.Unstructured, string) {
				if target.ClusterRef == nil {
					return nil, ""
				}
				return []*unstructured.Unstructured{kustomization("a"), kustomization("b")}, ""
			})
			got, err := storage["pipelines/related"].(rest.Getter).Get(as(t, "jane"), "podinfo", &metav1.GetOptions{})
			if test.missing {
				if !apierrors.IsNotFound(err) {
					t.Errorf("it is %v, %v, want it not found", got, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			answer := got.(*v1alpha1.PipelineRelated)
			if diff := cmp.Diff(test.want, answer.Workloads); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if len(answer.Errors) != len(test.errors) {
				t.Fatalf("the errors are %+v, want %q", answer.Errors, test.errors)
			}
			for i, want := range test.errors {
				if e := answer.Errors[i]; !strings.Contains(e.Message, want) || e.Cluster != "east" || e.Environment != "prod" || e.Namespace != "web" {
					t.Errorf("the error is %+v, want %q", e, want)
				}
			}
		})
	}
}

func TestWhatIsNotKnownOfAClusterIsToldBesideWhatIs(t *testing.T) {
	p := podinfo()
	p.Namespace = "shop"
	p.Spec.Environments = []weave.Environment{{Name: "prod", Targets: []weave.Target{{Namespace: "web", ClusterRef: &weave.ClusterReference{Kind: "Cluster", Name: "east"}}, {Namespace: "web", ClusterRef: &weave.ClusterReference{Kind: "Cluster", Name: "west"}}}}}
	client := clientOf()
	if err := client.Tracker().Create(weave.GroupVersions[0].WithResource(weave.Resource), in(t, weave.Group, p), "shop"); err != nil {
		t.Fatal(err)
	}
	all := authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
		return authorizer.DecisionAllow, "", nil
	})
	storage := Related(client, all, func(_ context.Context, _ *weave.Pipeline, target weave.Target) ([]*unstructured.Unstructured, string) {
		if target.ClusterRef.Name == "west" {
			return nil, `cluster "west" does not answer`
		}
		return []*unstructured.Unstructured{kustomization("a")}, ""
	})
	got, err := storage["pipelines/related"].(rest.Getter).Get(as(t, "jane"), "podinfo", &metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := []v1alpha1.RelatedError{{Group: weave.Group, Environment: "prod", Cluster: "west", Namespace: "web", Message: `cluster "west" does not answer`}}
	answer := got.(*v1alpha1.PipelineRelated)
	if diff := cmp.Diff(want, answer.Errors); diff != "" || len(answer.Workloads) != 1 {
		t.Errorf("told of are %+v (-want +got)\n%s", answer.Workloads, diff)
	}
}

package admission

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

// pipelines refuses Pipelines of Weave GitOps that make no sense, whatever definition they are served by, and those that would show their writer what he may
// not see, or do what he may not. It warns of targets that are not there. A GitopsCluster shows how a Cluster is, so it is for who may see that.
type pipelines struct {
	*admission.Handler
	authorizer authorizer.Authorizer
	namespaces corelisters.NamespaceLister
	joined     func() []*v1alpha1.Cluster
}

var (
	_ admission.MutationInterface   = &pipelines{}
	_ admission.ValidationInterface = &pipelines{}
)

// SetAuthorizer implements initializer.WantsAuthorizer.
func (p *pipelines) SetAuthorizer(a authorizer.Authorizer) { p.authorizer = a }

// SetExternalKubeInformerFactory implements initializer.WantsExternalKubeInformerFactory.
func (p *pipelines) SetExternalKubeInformerFactory(f informers.SharedInformerFactory) {
	informer := f.Core().V1().Namespaces()
	p.namespaces = informer.Lister()
	p.SetReadyFunc(informer.Informer().HasSynced)
}

// ValidateInitialization implements admission.InitializationValidator.
func (p *pipelines) ValidateInitialization() error {
	if p.authorizer == nil || p.namespaces == nil {
		return errors.New(PipelinesPlugin + " needs an authorizer and the namespaces")
	}
	return nil
}

// Admit notes who has named the targets of a pipeline, which goes on being shown only as long as they may see it. What others write there has been taken back by the
// plugin before, as all that Manifold notes.
func (p *pipelines) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetSubresource() != "" || !isPipeline(a.GetResource().GroupResource()) || isManifold(a.GetUserInfo()) {
		return nil
	}
	after, err := pipelineOf(a, a.GetObject())
	if err != nil || after == nil {
		return err
	}
	before, err := pipelineOf(a, a.GetOldObject())
	if a.GetOperation() == admission.Create || err != nil {
		before = nil // what cannot be read says nothing
	}
	by := weave.Author{User: a.GetUserInfo().GetName(), Groups: a.GetUserInfo().GetGroups()}
	note := weave.Note(before, after, by, func(of weave.Author, right weave.Right) bool { return May(ctx, p.authorizer, of, right) })
	object := a.GetObject().(*unstructured.Unstructured)
	annotations := object.GetAnnotations()
	if annotations[v1alpha1.AnnotationAuthors] == note {
		return nil
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1alpha1.AnnotationAuthors] = note
	if note == "" {
		delete(annotations, v1alpha1.AnnotationAuthors)
	}
	object.SetAnnotations(annotations)
	return nil
}

// isPipeline reports whether a resource is that of pipelines, in either group.
func isPipeline(resource schema.GroupResource) bool {
	return resource.Resource == weave.Resource && (resource.Group == weave.Group || resource.Group == weave.OlderGroup)
}

// Validate refuses what is wrong, and then what its writer has no right to.
func (p *pipelines) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetSubresource() != "" {
		return nil
	}
	switch resource := a.GetResource().GroupResource(); {
	case resource == weave.GitopsClusters.GroupResource() && a.GetOperation() == admission.Create:
		return p.view(ctx, a)
	case isPipeline(resource):
		return p.pipeline(ctx, a)
	}
	return nil
}

// view asks for the right to see the Cluster that a GitopsCluster is a view of.
func (p *pipelines) view(ctx context.Context, a admission.Attributes) error {
	return ask(ctx, p.authorizer, a, weave.Need{Path: field.NewPath("metadata", "name"), Right: weave.Right{
		Verb: "get", Resource: schema.GroupResource{Group: v1alpha1.GroupName, Resource: "clusters"}, Name: a.GetName(),
	}})
}

func (p *pipelines) pipeline(ctx context.Context, a admission.Attributes) error {
	after, err := pipelineOf(a, a.GetObject())
	if err != nil || after == nil {
		return err
	}
	before, err := pipelineOf(a, a.GetOldObject())
	if a.GetOperation() == admission.Create || err != nil {
		before = nil // what cannot be read says nothing
	}
	if before != nil && equality.Semantic.DeepEqual(before.Spec, after.Spec) {
		return nil
	}
	if errs := weave.Validate(after); len(errs) > 0 {
		return apierrors.NewInvalid(a.GetKind().GroupKind(), a.GetName(), errs)
	}
	for _, need := range weave.Needs(before, after) {
		if err := ask(ctx, p.authorizer, a, need); err != nil {
			return err
		}
	}
	if !p.WaitForReady() {
		return admission.NewForbidden(a, errors.New("the namespaces are not known yet: try again"))
	}
	for _, text := range weave.Missing(before, after, p.clusterExists(), p.namespaceExists) {
		warning.AddWarning(ctx, "", text)
	}
	return nil
}

// pipelineOf reads a pipeline, nil if there is none. It is in the namespace of the request, and nowhere else.
func pipelineOf(a admission.Attributes, object runtime.Object) (*weave.Pipeline, error) {
	of, is := object.(*unstructured.Unstructured)
	if !is || of == nil {
		return nil, nil
	}
	read, err := weave.Read(of)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	read.Namespace = a.GetNamespace()
	return read, nil
}

func (p *pipelines) clusterExists() func(string) bool {
	joined := p.joined()
	return func(name string) bool {
		return slices.ContainsFunc(joined, func(cluster *v1alpha1.Cluster) bool { return cluster.Name == name })
	}
}

func (p *pipelines) namespaceExists(name string) bool {
	_, err := p.namespaces.Get(name)
	return !apierrors.IsNotFound(err)
}

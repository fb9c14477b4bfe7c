// Package manifests reads what revisions hold by way of the API, with the rights of whoever asks: also Secrets are read by these.
package manifests

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned"
	listers "github.com/manifold-dev/manifold/generated/listers/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/contents"
)

// New returns a reader for one command, whose requests end when its context does.
func New(ctx context.Context, delivery versioned.Interface, core kubernetes.Interface) *contents.Reader {
	return contents.New(revisions{ctx: ctx, client: delivery}, secrets{ctx: ctx, client: core})
}

// errNoList is of listers that get single objects alone.
var errNoList = errors.New("only single objects are read here")

// revisions gets single revisions from the API. It is a lister, as who reads contents asks for one.
type revisions struct {
	ctx       context.Context //nolint:containedctx // listers get none
	client    versioned.Interface
	namespace string
}

func (r revisions) ApplicationRevisions(namespace string) listers.ApplicationRevisionNamespaceLister {
	r.namespace = namespace
	return r
}

func (r revisions) Get(name string) (*v1alpha1.ApplicationRevision, error) {
	return r.client.DeliveryV1alpha1().ApplicationRevisions(r.namespace).Get(r.ctx, name, metav1.GetOptions{})
}

func (revisions) List(labels.Selector) ([]*v1alpha1.ApplicationRevision, error) {
	return nil, errNoList
}

// secrets gets single Secrets from the API.
type secrets struct {
	ctx       context.Context //nolint:containedctx // listers get none
	client    kubernetes.Interface
	namespace string
}

func (s secrets) Secrets(namespace string) corelisters.SecretNamespaceLister {
	s.namespace = namespace
	return s
}

func (s secrets) Get(name string) (*corev1.Secret, error) {
	return s.client.CoreV1().Secrets(s.namespace).Get(s.ctx, name, metav1.GetOptions{})
}

func (secrets) List(labels.Selector) ([]*corev1.Secret, error) { return nil, errNoList }

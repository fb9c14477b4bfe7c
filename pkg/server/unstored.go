package server

import (
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/registry/delivery/pipelines"
)

// unstored is what the group of delivery serves and does not store: what people ask of pipelines.
func (m *controllers) unstored() (map[string]rest.Storage, error) {
	asks, err := dynamic.NewForConfig(asJSON(m.identities.As(v1alpha1.AsksUser)))
	if err != nil {
		return nil, err
	}
	return pipelines.Storage(asks, clock.RealClock{}), nil
}

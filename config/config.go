// Package config holds the objects that a logical cluster starts with.
package config

import (
	_ "embed"
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

//go:embed policies/default.yaml
var defaultPolicy []byte

// DefaultPolicy returns a new copy of the policy that is made on first start: the workloads of a namespace stay together. It is to
// be made once and not put back, so that admins can edit and delete it. An error means that the embedded manifest is broken.
func DefaultPolicy() (*v1alpha1.ClusterPlacementPolicy, error) {
	policy := &v1alpha1.ClusterPlacementPolicy{}
	if err := yaml.UnmarshalStrict(defaultPolicy, policy); err != nil {
		return nil, fmt.Errorf("read the embedded ClusterPlacementPolicy %q: %w", v1alpha1.DefaultPolicyName, err)
	}
	return policy, nil
}

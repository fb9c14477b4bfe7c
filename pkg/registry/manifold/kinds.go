// Package manifold says how Manifold's own kinds are stored and shown.
package manifold

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/registry/group"
)

// Group returns the group manifold.dev.
func Group(typer runtime.ObjectTyper) group.Group {
	return group.Group{Version: v1alpha1.SchemeGroupVersion, Categories: []string{"manifold"}, Kinds: kinds(typer)}
}

func kinds(typer runtime.ObjectTyper) []group.Kind {
	return []group.Kind{
		{
			Plural: "clusters", Singular: "cluster", ShortName: "mcl",
			Object:   func() runtime.Object { return &v1alpha1.Cluster{} },
			List:     func() runtime.Object { return &v1alpha1.ClusterList{} },
			Strategy: clusterStrategy{group.NewStrategy(typer)},
			Status:   clusterStatusStrategy{clusterStrategy{group.NewStrategy(typer)}},
			Columns:  clusterColumns(),
		},
		{
			Plural: "placementpolicies", Singular: "placementpolicy", ShortName: "pp",
			Object:   func() runtime.Object { return &v1alpha1.PlacementPolicy{} },
			List:     func() runtime.Object { return &v1alpha1.PlacementPolicyList{} },
			Strategy: placementPolicyStrategy{group.NewStrategy(typer)},
			Status:   placementPolicyStatusStrategy{placementPolicyStrategy{group.NewStrategy(typer)}}, Columns: placementPolicyColumns(),
		},
		{
			Plural: "clusterplacementpolicies", Singular: "clusterplacementpolicy", ShortName: "cpp",
			Object:   func() runtime.Object { return &v1alpha1.ClusterPlacementPolicy{} },
			List:     func() runtime.Object { return &v1alpha1.ClusterPlacementPolicyList{} },
			Strategy: clusterPlacementPolicyStrategy{group.NewStrategy(typer)},
			Status:   clusterPlacementPolicyStatusStrategy{clusterPlacementPolicyStrategy{group.NewStrategy(typer)}}, Columns: clusterPlacementPolicyColumns(),
		},
	}
}

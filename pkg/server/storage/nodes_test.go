package storage

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	api "k8s.io/kubernetes/pkg/apis/core"

	"github.com/manifold-dev/manifold/pkg/server/storage/storagetest"
)

func TestNodesAreNoWayToMachines(t *testing.T) {
	storagetest.Proxying(t, nodeProxyREST{}, map[string]storagetest.Proxied{
		"not to a node":      {ID: "east", Options: &api.NodeProxyOptions{}, Refusal: apierrors.IsForbidden},
		"not to its kubelet": {ID: "https:east:10250", Options: &api.NodeProxyOptions{}, Refusal: apierrors.IsForbidden},
	})
}

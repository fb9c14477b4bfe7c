// Package kinds makes the kinds known to the stock server's scheme that it does not serve itself. The scheme is one for the whole process, so this is
// done as the process starts, as the stock kinds do it, and never while a server runs.
package kinds

import (
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	metricsinstall "k8s.io/metrics/pkg/apis/metrics/install"

	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/registry/delivery"
)

func init() {
	utilruntime.Must(manifold.Install(legacyscheme.Scheme))
	utilruntime.Must(delivery.Install(legacyscheme.Scheme))
	metricsinstall.Install(legacyscheme.Scheme)
}

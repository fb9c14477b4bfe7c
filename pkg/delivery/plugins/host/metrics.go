package host

import (
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

var (
	ready = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Name: "manifold_plugin_ready", Help: "Whether the process of a plugin runs and answers.", StabilityLevel: metrics.ALPHA,
	}, []string{"plugin"})
	restarts = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "manifold_plugin_restarts_total", Help: "Starts of a plugin after its process had ended, or was ended because it did not answer.", StabilityLevel: metrics.ALPHA,
	}, []string{"plugin"})
	calls = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "manifold_plugin_calls_total", Help: "Calls of a plugin that have ended, by method and gRPC status.", StabilityLevel: metrics.ALPHA,
	}, []string{"plugin", "method", "code"})
	inFlight = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Name: "manifold_plugin_calls_in_flight", Help: "Calls of a plugin that have not ended.", StabilityLevel: metrics.ALPHA,
	}, []string{"plugin"})
)

func init() { legacyregistry.MustRegister(ready, restarts, calls, inFlight) }

// forget drops the numbers of a plugin that is no more.
func forget(plugin string) {
	of := map[string]string{"plugin": plugin}
	ready.Delete(of)
	restarts.Delete(of)
	inFlight.Delete(of)
}

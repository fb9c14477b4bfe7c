// Package plugins says what delivery asks of plugins: programs that speak the gRPC protocol of PipeCD's plugins, version 1, which plan,
// execute and observe deployments to platforms that the project itself knows nothing of. The rooms below it hold the messages of the
// protocol (wire), read configuration of PipeCD's agent (piped), obtain programs (fetch), run them as processes (process), keep them
// alive (host), and answer their calls (services).
package plugins

import (
	"encoding/json"

	"google.golang.org/grpc"
)

// Directory tells which plugins there are at this moment. It is safe for concurrent use.
type Directory interface {
	// Get returns a plugin that is ready. If it is not, why says so, for people.
	Get(name string) (p Plugin, why string)
	// Offers returns the names of the plugins that offer a stage, ready or not, sorted. More than one makes the stage ambiguous.
	Offers(stage string) []string
	// Changed is called after a plugin became ready, was lost, or offers other stages. It must not block.
	Changed(func(plugin string))
}

// Services of the protocol. A plugin serves any of them.
const (
	ServiceDeployment  = "Deployment"
	ServiceLiveState   = "LiveState"
	ServicePlanPreview = "PlanPreview"
	ServiceDrift       = "Drift"
)

// Plugin is one that is ready. Whatever it says is input from a stranger.
type Plugin struct {
	Name string
	// Called is how it knows itself, and how files of PipeCD call it. It differs from the name where that could not be the name of an object.
	Called string
	// Stages are the names of the stages that it says it has, sorted.
	Stages []string
	// Services are those of the protocol that it serves.
	Services []string
	// Conn reaches it. A call on it fails with Unavailable once the process has gone.
	Conn grpc.ClientConnInterface
	// Targets are its deploy targets, as an admin has configured them.
	Targets []Target
	// Incarnation counts the starts of its process, so that whoever waits for a call can tell that another process answers now.
	Incarnation int64
}

// Target is a deploy target of a plugin.
type Target struct {
	Name   string
	Labels map[string]string
	// Config is opaque to the host.
	Config json.RawMessage
}

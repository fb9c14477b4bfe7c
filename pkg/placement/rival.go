package placement

import (
	"cmp"
	"slices"
	"strings"
)

// Level is what the pods of one priority request in a cluster.
type Level struct {
	Priority int32
	Requests Resources
}

// Lower is what a cluster runs of which workloads of higher priority may take the room.
type Lower struct {
	// Levels are sums by priority, the lowest first.
	Levels []Level
	// Beyond bounds how much room that gives, by resource: others cannot make room within the cluster's limits. Nothing bounds what is not
	// named.
	Beyond Resources
}

// Rival is another workload that runs where one runs that is decided about, or may run.
type Rival struct {
	// Name is what people call it: "Deployment shop/web".
	Name     string
	Priority int32
	Requests Resources
	Decision Decision
	// Running says by cluster how many replicas are there, also where the decision wants fewer; nil where that is not known.
	Running map[string]int32
	// Bound is true if it cannot run elsewhere.
	Bound bool
}

// Preemption is what a workload takes from others in a cluster.
type Preemption struct {
	Cluster string `json:"cluster"`
	// Waiting is how many replicas are not placed before others have moved out of the cluster.
	Waiting int32 `json:"waiting,omitempty"`
	// Moving are those that have another place, where they come to run before they give up this one.
	Moving []Victim `json:"moving,omitempty"`
	// Stopped are those that have none. The scheduler of the cluster stops them, or others of its choice, once the replicas arrive.
	Stopped []Victim `json:"stopped,omitempty"`
}

// Victim is what makes room for a workload of higher priority in a cluster.
type Victim struct {
	// Name is that of the workload; "" stands for pods that are nobody's here.
	Name     string `json:"name,omitempty"`
	Priority int32  `json:"priority"`
	Replicas int32  `json:"replicas"`
}

// Displaced says what a workload may keep in a cluster where others of higher priority want room.
type Displaced struct {
	// Keep is how many replicas.
	Keep int32
	// By names who wants the room.
	By string
}

// ByPriority sorts rivals by priority, the lowest first.
func ByPriority(rivals []Rival) []Rival {
	return slices.SortedFunc(slices.Values(rivals), func(a, b Rival) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), strings.Compare(a.Name, b.Name))
	})
}

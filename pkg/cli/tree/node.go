package tree

// Relation is how an object is tied to the one above it in a tree.
type Relation string

// The relations.
const (
	// RunsIn leads to a cluster that the object is in.
	RunsIn Relation = "RunsIn"
	// Owns leads to what belongs to the object and goes with it.
	Owns Relation = "Owns"
	// Needs leads to what the object names and cannot do without.
	Needs Relation = "Needs"
	// ReachedBy leads to what selects the object or goes along with it.
	ReachedBy Relation = "ReachedBy"
	// ScaledBy leads to an autoscaler of the object.
	ScaledBy Relation = "ScaledBy"
	// OwnedBy leads to what the object belongs to.
	OwnedBy Relation = "OwnedBy"
	// NeededBy leads to what names the object.
	NeededBy Relation = "NeededBy"
	// LeadsTo leads to what the object selects, scales or goes along with.
	LeadsTo Relation = "LeadsTo"
	// Concerns leads to what the object concerns because it lives in its namespace.
	Concerns Relation = "Concerns"
)

// Health is how an object fares.
type Health string

// The kinds of health, from good to bad.
const (
	Healthy     Health = "Healthy"
	Suspended   Health = "Suspended"
	Progressing Health = "Progressing"
	Unknown     Health = "Unknown"
	Degraded    Health = "Degraded"
	Missing     Health = "Missing"
)

// Node is one object in a tree, or several of a kind that fare alike. It is what -o json and -o yaml print.
type Node struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	// Name is empty where Count objects are shown together.
	Name  string `json:"name,omitempty"`
	Count int    `json:"count,omitempty"`
	// Relation says how the object is tied to the one above it.
	Relation Relation `json:"relation,omitempty"`
	// Clusters are those that the object is in.
	Clusters []string `json:"clusters,omitempty"`
	// Ready is how many are ready of how many that are wanted; nil for an object that has no parts.
	Ready  *Ready `json:"ready,omitempty"`
	Health Health `json:"health"`
	// Status says in a few words how it fares.
	Status string `json:"status,omitempty"`
	// Problems say what is wrong, each a sentence.
	Problems []string `json:"problems,omitempty"`
	Children []*Node  `json:"children,omitempty"`
}

// Ready is how many are ready of how many that are wanted.
type Ready struct {
	Ready int32 `json:"ready"`
	Of    int32 `json:"of"`
}

// bad reports whether somebody should look.
func (n *Node) bad() bool {
	return n.Health == Degraded || n.Health == Missing || n.Health == Unknown || len(n.Problems) > 0
}

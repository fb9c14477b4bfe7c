package placement

// Strategy names a way to hand out replicas.
type Strategy string

// The strategies.
const (
	// Whole puts all replicas on one cluster.
	Whole Strategy = "Whole"
	// Together puts them where the namespace's other workloads are, and what does not fit there elsewhere.
	Together Strategy = "Together"
	// Duplicate gives each chosen cluster all of them.
	Duplicate Strategy = "Duplicate"
	// EachCluster puts the workload on each chosen cluster, where the nodes say how many replicas it has.
	EachCluster Strategy = "EachCluster"
	// ByEven, ByWeights, ByCapacity and ByPacking divide them.
	ByEven     Strategy = "Even"
	ByWeights  Strategy = "Weights"
	ByCapacity Strategy = "Capacity"
	ByPacking  Strategy = "Packing"
)

// Divides reports whether the strategy gives each cluster a part.
func (s Strategy) Divides() bool {
	return s == ByEven || s == ByWeights || s == ByCapacity || s == ByPacking
}
